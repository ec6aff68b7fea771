// Tells the server how far the person has seen a channel: up to the last message that was in sight, as one scrolls.
import { $, $$ } from "./dom.js";
import { atEnd } from "./list.js";
import { say } from "./notices.js";
import { PATCHED } from "./refresh.js";

const form = $("#seen");
const REST = 400; // ms for which a place stays in sight before it counts
const AGAIN = 5000; // ms after which a busy console is told again
let told = form?.hidden ? Number(form.elements.until.value) : 0; // it is shown if anything is new
let waiting = 0;
let sending = false;

// How far it is: the last row whose end is above the composer. What is new and further up was skipped, and stays new.
// The server keeps an instant: of a batch that was sent in one, no row counts until its last is in sight.
const reached = () => {
  const rows = $$("[data-live] .message");
  if (atEnd()) return rows.at(-1);
  const first = $("#news");
  if (!first || first.getBoundingClientRect().top > window.innerHeight) return null;
  const edge = Math.min($(".talk > .compose")?.getBoundingClientRect().top ?? window.innerHeight, window.innerHeight);
  const below = rows.find((row) => row.getBoundingClientRect().bottom > edge);
  return rows.findLast((row) => row.getBoundingClientRect().bottom <= edge && row.dataset.at !== below?.dataset.at);
};
const tell = async () => {
  waiting = 0;
  const last = !document.hidden && document.hasFocus() && reached();
  if (!last || sending || Number(last.dataset.at) <= told) return;
  const until = Number(last.dataset.at);
  const fields = new URLSearchParams(new FormData(form));
  fields.set("until", until);
  sending = true;
  const answer = await fetch(form.action, {
    method: "POST", body: fields, headers: { accept: "application/json" },
  }).catch(() => null);
  sending = false;
  if (!answer || answer.status >= 500) setTimeout(look, AGAIN);
  if (!answer?.ok) return;
  told = until;
  form.hidden = last === $$("[data-live] .message").at(-1);
  look();
};
export const look = () => {
  if (form && !waiting) waiting = setTimeout(tell, REST);
};
for (const name of ["scroll", "focus", "resize"]) window.addEventListener(name, look);
for (const name of ["visibilitychange", PATCHED]) document.addEventListener(name, look);

// The next new mail: on this page, else in the next channel that has some.
export const next = () => {
  const line = $("#news")?.getBoundingClientRect();
  if (line && (line.top < 0 || line.bottom > window.innerHeight)) { // one in sight was shown already
    $("#news").scrollIntoView({ block: "center" });
    return;
  }
  const links = $$("#rail a[data-new]");
  const at = links.findIndex((a) => a.matches("[aria-current]"));
  const a = [...links.slice(at + 1), ...links.slice(0, Math.max(at, 0))].find((link) => Number(link.dataset.new));
  if (a) location.assign(a.href);
  else say("news", "There is no other new mail.");
};
