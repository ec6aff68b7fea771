// Tells the server how far the person has seen a channel: up to its last message, once that is in sight.
import { $, $$ } from "./dom.js";
import { atEnd } from "./list.js";
import { say } from "./notices.js";

const form = $("#seen");
let told = form?.hidden ? Number(form.elements.until.value) : 0; // it is shown if anything is new

export const look = async () => {
  const last = $$("[data-live] .message").at(-1);
  if (!form || !last || document.hidden || !document.hasFocus() || !atEnd()) return;
  if (Number(last.dataset.at) <= told) return;
  told = Number(last.dataset.at);
  form.elements.until.value = told;
  const answer = await fetch(form.action, {
    method: "POST",
    body: new URLSearchParams(new FormData(form)),
    headers: { accept: "application/json" },
  }).catch(() => null);
  if (answer?.ok) form.hidden = true;
  else told = 0; // the next look says it again
};
for (const name of ["scroll", "focus"]) window.addEventListener(name, look);
document.addEventListener("visibilitychange", look);

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
