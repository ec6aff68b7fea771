// Ctrl+K: to any channel, agent or page by its name.
import { $, $$ } from "./dom.js";

const dialog = $("#switcher");
const field = $("#go");
let places = new Map();

const open = () => {
  const links = [...$$("#rail a[href]:not([href='#main'])"), ...$$(".more a, .topic")];
  places = new Map(links.map((a) => [($(".name", a) || a).textContent.trim(), a.href]));
  const options = [...places.keys()].map((name) => Object.assign(document.createElement("option"), { value: name }));
  $("#places").replaceChildren(...options);
  field.value = "";
  dialog.showModal();
};
const chosen = () => {
  const typed = field.value.trim().toLowerCase();
  const names = typed ? [...places.keys()] : [];
  return names.find((name) => name.toLowerCase() === typed)
    ?? names.find((name) => name.toLowerCase().replace("#", "").startsWith(typed))
    ?? names.find((name) => name.toLowerCase().includes(typed));
};
document.addEventListener("keydown", (event) => {
  if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || $("dialog[open]")) return;
  event.preventDefault();
  open();
});
dialog.addEventListener("submit", () => {
  const name = chosen();
  if (name !== undefined) location.assign(places.get(name));
});
