// The inbox: which line is chosen, and which one comes next.
import { $, $$ } from "./dom.js";
import { isLoading, loadAhead, marked, open, ready } from "./panel.js";
import { PATCHED } from "./refresh.js";
import { noteMove } from "./requests.js";

const visible = () => $$("#inbox .item").filter((item) => item.checkVisibility());
export const chosenItem = () => $("#inbox .item.opened");
const isWide = () => matchMedia("(min-width: 721px)").matches;

export const choose = (item, keep = true) => {
  if (keep) item.focus({ preventScroll: true });
  if (keep) item.scrollIntoView({ block: "nearest" });
  const there = open($("[data-open]", item).href, keep, true);
  there.then(() => {
    const after = beside(item);
    if (after && after !== item) loadAhead($("[data-open]", after).href);
  });
  return there;
};
// The line that comes after one, or before it at the end.
export const beside = (item, by = 1) => {
  const all = visible();
  const at = all.indexOf(item);
  return at < 0 ? all[0] : all[at + by] ?? (by > 0 ? all[at - 1] : all[at]);
};
export const step = async (by) => {
  await ready();
  const at = document.activeElement?.closest("#inbox .item") ?? chosenItem();
  const first = !at || (document.activeElement === document.body && by > 0 && at === visible()[0]);
  const item = first ? visible()[0] : beside(at, by);
  if (item) await choose(item);
};
// What is decided is out of sight already; the next line is shown.
export const moveOn = (next) => {
  if (!$("#inbox")) return;
  noteMove();
  if (next?.isConnected) {
    choose(next);
    return;
  }
  const line = Object.assign(document.createElement("p"), { className: "nothing", textContent: "Nothing more waits here." });
  history.replaceState(null, "", location.pathname);
  document.body.classList.remove("detailed");
  $("#details").replaceChildren(line);
};
// On a wide screen something is always shown beside the list.
const fill = () => {
  marked();
  if (!$("#inbox")) return;
  const first = visible()[0];
  if (!first || !isWide() || $("#details :is(.card, .whole)") || isLoading()) return;
  noteMove();
  choose(first, false);
};
document.addEventListener(PATCHED, fill);
window.addEventListener("popstate", fill);

// An hour later it is here again, in each browser.
export const putOff = () => {
  const item = chosenItem();
  if (!item) return;
  const next = beside(item);
  const form = $("#put-off");
  form.elements.id.value = item.dataset.message;
  form.requestSubmit();
  moveOn(next === item ? null : next);
};
