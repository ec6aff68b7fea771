// Requests to decide: they call the person, their time runs, and they are decided by two keys.
import { $, $$ } from "./dom.js";
import { say } from "./notices.js";
import { sound } from "./sound.js";

const callsIn = (rail) => new Map($$("#calls li", rail).map((li) => [li.dataset.key, $("a", li)]));
let known = callsIn(document);
// ``rail``: with what calls the person, the newest first. What was not there before is named first, and opened.
export const call = (decisions, rail) => {
  document.body.dataset.decisions = decisions;
  const icon = $("#icon");
  icon.href = decisions ? icon.dataset.waiting : icon.dataset.calm;
  const now = callsIn(rail);
  const fresh = [...now].filter(([key]) => !known.has(key));
  known = now;
  if (!fresh.length || document.hasFocus()) return;
  sound();
  if (!window.Notification || Notification.permission !== "granted") return;
  const [, first] = fresh[0];
  const others = now.size - 1;
  const more = others ? `, and ${others} ${others === 1 ? "other waits" : "others wait"}` : "";
  const notice = new Notification(first.textContent + more, { tag: "agent-mailbox", renotify: true });
  notice.onclick = () => {
    window.focus();
    notice.close();
    location.assign(first.getAttribute("href"));
  };
};
const asks = $("#notify");
if (asks && window.Notification && window.isSecureContext && Notification.permission === "default") {
  asks.hidden = false;
  asks.addEventListener("click", async () => { asks.hidden = (await Notification.requestPermission()) !== "default"; });
}

// By the console's clock: a phone's own may be minutes off. Some seconds are the way of the page.
const off = Number(document.body.dataset.now) - Date.now();
export const present = () => Date.now() + (Math.abs(off) > 30000 ? off : 0);

// -- time that passes ----------------------------------------------------------------------------------------------

const spelt = (seconds) => {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(parts.findIndex(([size]) => seconds >= size), 0);
  if (seconds < 60) return `${seconds} s`;
  const [[size, unit], next] = [parts[at], parts[at + 1]];
  const rest = Math.floor((seconds % size) / next[0]);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${next[1]}` : ""}`;
};
export const EXPIRED = "expired"; // the event on the document when the list of requests is not up to date
let expired = 0;
export const tick = () => {
  const now = present();
  for (const time of $$("time[data-since]")) {
    const seconds = Math.max(Math.floor((now - Date.parse(time.dateTime)) / 1000), 0);
    time.textContent = seconds < 60 ? `${seconds} s` : spelt(seconds - seconds % 60);
  }
  for (const left of $$("[data-until]")) {
    const seconds = Math.ceil((Number(left.dataset.until) - now) / 1000);
    const isLine = left.matches(".item time");
    left.textContent = isLine ? brief(seconds) : seconds > 0 ? `(${spelt(seconds)} left)` : "(expired)";
    if (isLine) left.classList.toggle("soon", seconds < 600);
    if (seconds <= 0) expire(left.closest(".card"));
  }
};
const brief = (seconds) => {
  if (seconds <= 0) return "over";
  const [size, unit] = seconds < 120 ? [1, "s"] : seconds < 7200 ? [60, "min"] : seconds < 172800 ? [3600, "h"] : [86400, "d"];
  return `${Math.floor(seconds / size)} ${unit}`;
};
// Nothing can be pressed any more; ``words`` say why.
export const endCard = (card, words) => {
  card.classList.add("expired");
  $$("button", card).forEach((button) => { button.disabled = true; });
  if (words) say("news", words);
};
const expire = (card) => {
  if (card) endCard(card);
  if (Date.now() - expired > 5000) { // the server leaves it out from now on
    expired = Date.now();
    setTimeout(() => document.dispatchEvent(new Event(EXPIRED)), 3000);
  }
};

// -- deciding --------------------------------------------------------------------------------------------------------

// A click on a request that just vanished must not decide the one that took its place. A key names its request.
const SETTLES = 700;
let moved = 0;
let pressed = false;
document.addEventListener("click", ({ detail }) => { pressed = detail > 0; }, true); // 0: by a key
export const noteMove = () => { moved = Date.now(); };
export const mayMiss = () => pressed && Date.now() - moved < SETTLES;

let denied = null; // the reason's field in which Enter denies
export const prepare = (which, at) => {
  const button = at && $(which, at);
  if (!button || button.disabled) return false;
  at.scrollIntoView({ block: "nearest" });
  denied = which === ".deny" ? $("[name=reason]", at) : null;
  (denied || button).focus(); // only Enter confirms: one key alone decides nothing
  say("news", denied ? "Deny: write why; Enter denies, Esc cancels." : "Press Enter to confirm, Esc to cancel.");
  return true;
};
document.addEventListener("focusout", ({ target }) => { if (target === denied) denied = null; });
export const denies = (field) => {
  if (field !== denied) return false;
  $(".deny", field.form).click();
  return true;
};
