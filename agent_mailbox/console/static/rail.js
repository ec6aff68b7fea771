// The rail keeps which of its kinds are unfolded, in this browser.
import { $, $$, attempt } from "./dom.js";

const KEY = "rail-folds";
const load = () => attempt(() => JSON.parse(localStorage.getItem(KEY))) ?? {};
$$("#rail details[data-fold]").forEach((fold) => {
  const isOpen = load()[fold.dataset.fold];
  if (isOpen !== undefined && !$("[aria-current]", fold)) fold.open = isOpen;
});
// Only a person's press is kept: a page opens the kind of its own place by itself.
document.addEventListener("click", (event) => {
  const fold = event.target.closest?.("#rail details[data-fold] > summary")?.parentNode;
  if (fold) attempt(() => localStorage.setItem(KEY, JSON.stringify({ ...load(), [fold.dataset.fold]: !fold.open })));
});

// A menu closes by a press elsewhere, and once something in it was chosen.
export const closeMenus = (which = () => true) => {
  const open = $$("details.menu[open]").filter(which);
  for (const menu of open) {
    if (menu.contains(document.activeElement)) $("summary", menu).focus({ preventScroll: true }); // else the focus is lost
    menu.open = false;
  }
  return open.length > 0;
};
document.addEventListener("click", ({ target }) => {
  closeMenus((menu) => !menu.contains(target) || target.closest("a, button"));
});

// Filters apply at once.
document.addEventListener("change", ({ target }) => {
  if (target.matches("form[data-at-once] select")) target.form.requestSubmit();
});
