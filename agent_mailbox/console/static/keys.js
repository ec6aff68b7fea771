// The keyboard: single keys move, open, decide and write; they can be turned off (WCAG 2.1.4).
import { $, $$, attempt } from "./dom.js";
import { say, unsay } from "./notices.js";
import { open, shut } from "./panel.js";
import { denies, prepare } from "./requests.js";
import { next } from "./seen.js";
import { undo } from "./undo.js";

const entries = () => $$("#main .card, #main .message, #main .entry").filter((node) => node.getClientRects().length);
const move = (by) => {
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
const go = { w: "/", a: "/agents", c: "/channels", p: "/pending", t: "/timeline", d: "/dead", m: "/archive", b: "/tasks" };
let leader = 0;
const keys = {
  j: () => move(1),
  k: () => move(-1),
  Enter: () => {
    const at = current();
    if (at !== document.activeElement) return false;
    const a = $("[data-open], [data-go]", at);
    $$("details.change", at).forEach((d) => { d.open = true; });
    if (!a) $("textarea, input:not([type=hidden], [type=checkbox])", at)?.focus();
    else if (a.dataset.open !== undefined) open(a.href);
    else a.click();
  },
  a: () => decide(".approve"),
  d: () => decide(".deny"),
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
  n: () => next(),
  "?": () => $("#keys").showModal(),
};
const decide = (which) => {
  const at = current();
  prepare(which, at?.matches(".card") ? at : entries().find((node) => node.matches(".card")));
};

document.addEventListener("keydown", (event) => {
  const field = event.target.matches("input, textarea, select");
  if (event.key === "Enter" && field && event.target.form?.matches(".decide")) {
    if (event.target.matches("textarea") && !event.ctrlKey && !event.metaKey) return; // a line break
    event.preventDefault();
    if (!denies(event.target)) say("news", "Nothing is decided. Press Approve or Deny.");
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field && event.target.form) {
    event.preventDefault();
    event.target.form.requestSubmit($("button", event.target.form));
  } else if (event.key === "Escape" && !$("dialog[open]")) {
    if (field) (event.target.closest(".card, .message") || $("#main")).focus({ preventScroll: true });
    else if (event.target.matches(".card button")) event.target.closest(".card").focus({ preventScroll: true });
    else undo() || unsay() || shut();
  } else if (!field && $("#single-keys").checked && !event.ctrlKey && !event.metaKey && !event.altKey && !$("dialog[open]")) {
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
