// The keyboard: single keys move, open, decide and write; they can be turned off (WCAG 2.1.4).
import { $, $$, attempt } from "./dom.js";
import { chosenItem, putOff, step } from "./inbox.js";
import { say, unsay } from "./notices.js";
import { isLoading, open, ready, shut } from "./panel.js";
import { closeMenus } from "./rail.js";
import { denies, prepare } from "./requests.js";
import { next } from "./seen.js";
import { undo } from "./undo.js";

const entries = () => $$("#main .card, #main .message, #main .entry").filter((node) => node.getClientRects().length);
const move = (by) => {
  if ($("#inbox")) return void step(by);
  const all = entries();
  if (!all.length) return;
  const now = all.findIndex((node) => node === document.activeElement || node.contains(document.activeElement));
  const list = $("[data-live]");
  const begin = by > 0 ? (list ? all.length - 1 : 0) : all.length - 1;
  const there = all[now < 0 ? begin : Math.min(Math.max(now + by, 0), all.length - 1)];
  there.focus({ preventScroll: true });
  there.scrollIntoView({ block: "nearest" });
};
const current = () => document.activeElement?.closest?.(".card, .message, .entry");
const go = {
  i: "/", w: "/", f: "/fleet", a: "/fleet", c: "/conversations", t: "/timeline", d: "/dead", m: "/archive", b: "/tasks",
};
let leader = 0;
const keys = {
  j: () => move(1),
  k: () => move(-1),
  Enter: () => {
    const at = current();
    if (at !== document.activeElement) return false;
    const a = $("[data-open], [data-go]", at);
    if (at.matches(".item.opened") && document.body.matches(".detailed")) change();
    else if (at.matches(".card")) change();
    else if (!a) $("textarea, input:not([type=hidden], [type=checkbox])", at)?.focus();
    else if (a.dataset.open !== undefined) open(a.href, true, at.matches(".item"));
    else a.click();
  },
  y: () => {
    const button = $(".approve", shownCard() ?? $("#details:not([hidden]) .acts") ?? document.createElement("p"));
    if (!button || button.disabled) return false;
    button.click();
  },
  a: () => prepare(".approve", shownCard()),
  Y: () => prepare(".always", shownCard()),
  d: () => prepare(".deny", shownCard()),
  e: () => change(),
  s: () => putOff(),
  x: () => {
    const box = $(".choose input", chosenItem() ?? document.createElement("p"));
    if (!box) return false;
    box.click();
  },
  r: () => {
    const at = current();
    const a = at?.matches(".message") && $("[data-open]", at);
    if (a) open(a.href).then(() => $("#reply")?.focus());
    else ($("#reply") || $("#body"))?.focus();
  },
  "/": () => $("#find").focus(),
  u: () => undo(),
  g: () => { leader = Date.now(); },
  c: () => location.assign("/new"),
  n: () => prepare(".deny", shownCard()) || next(),
  "?": () => $("#keys").showModal(),
};
// The request that a key decides: the one that is shown beside the list, or has the focus.
const shownCard = () => {
  const at = current();
  if (at?.matches(".card")) return at;
  return $("#details:not([hidden]) .card") ?? (at ? null : entries().find((node) => node.matches(".card")));
};
const change = () => {
  const card = shownCard();
  if (!card) return false;
  $$("details.change", card).forEach((d) => { d.open = true; });
  $("textarea, input:not([type=hidden], [type=checkbox])", card)?.focus();
};

// While a message is being loaded, keys wait for it: none is lost, and none meets another request.
let waits = 0;
let turn = Promise.resolve();
const later = (key) => {
  waits += 1;
  turn = turn.then(ready).then(() => replay(key)).finally(() => { waits -= 1; });
};
const replay = (key) => {
  const at = document.activeElement;
  if (!at.matches("input, textarea, select")) {
    if (key === "Enter" && at.matches("button, a")) at.click();
    else if (Object.hasOwn(keys, key)) keys[key]();
  } else if (key === "Enter") enter(at);
  else if (key.length === 1 && at.setRangeText) at.setRangeText(key, at.selectionStart, at.selectionEnd, "end");
};
const enter = (field) => {
  if (!denies(field)) say("news", "Nothing is decided. Press Approve or Deny.");
};

document.addEventListener("keydown", (event) => {
  const field = event.target.matches("input, textarea, select");
  const isBare = !event.ctrlKey && !event.metaKey && !event.altKey && !$("dialog[open]");
  if (event.isComposing) return; // Enter and Escape end a word there, as in Japanese
  if (event.repeat && isBare && !field && Object.hasOwn(keys, event.key) && !"jk".includes(event.key)) {
    event.preventDefault(); // a key that is held down decides one request
    return;
  }
  if ((waits || ($("#inbox") && isLoading())) && isBare && !field && (event.key === "Enter" || event.key.length === 1)) {
    event.preventDefault();
    later(event.key);
  } else if (event.key === "Enter" && field && event.target.form?.matches(".decide")) {
    if (event.target.matches("textarea") && !event.ctrlKey && !event.metaKey) return; // a line break
    event.preventDefault();
    enter(event.target);
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field && event.target.form) {
    event.preventDefault();
    event.target.form.requestSubmit($("button", event.target.form));
  } else if (event.key === "Escape" && !$("dialog[open]")) {
    if (closeMenus()) return;
    if (field) (event.target.closest(".card, .message") || $("#main")).focus({ preventScroll: true });
    else if (event.target.matches(".card button")) event.target.closest(".card").focus({ preventScroll: true });
    else undo() || unsay() || shut();
  } else if (!field && $("#single-keys").checked && isBare) {
    const place = Date.now() - leader < 1500 && go[event.key];
    if (place) location.assign(place);
    else if (!Object.hasOwn(keys, event.key) || keys[event.key]() === false) return;
    event.preventDefault();
  }
});

const single = $("#single-keys");
single.checked = attempt(() => localStorage.getItem("single-keys")) !== "off";
single.addEventListener("change", () => attempt(() => localStorage.setItem("single-keys", single.checked ? "on" : "off")));
$("#keys-button").hidden = false;
$("#keys-button").addEventListener("click", keys["?"]);
