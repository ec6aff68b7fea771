// Decisions wait a moment before they are sent: for so long nobody can have acted on them, and the person may undo.
// Several may wait. The line of each, or its card, is out of sight meanwhile.
import { $, $$, attempt, SIGNED_OUT } from "./dom.js";
import { lineOf } from "./notices.js";
import { noteMove, present } from "./requests.js";

const WAITS = 5000; // ms
const LATEST = 2000; // ms before a request expires
const held = new Map();
const sent = new Map(); // those whose answer has not come
const lost = new Map(); // by its line what does not count, or perhaps not: each stays until it is closed
const unseen = new CSSStyleSheet(); // a rule outlives the patching of a card
document.adoptedStyleSheets.push(unseen);

const show = () => {
  const rule = (id) => `#${CSS.escape(`r-${id}`)}, #main .card[data-request="${CSS.escape(id)}"] { display: none }`;
  unseen.replaceSync([...held.keys(), ...sent.keys()].filter(Boolean).map(rule).join(""));
  $("#held").replaceChildren(...lost.keys(), ...[...held.values()].map(({ line }) => line));
};
const shut = (request) => {
  const it = held.get(request);
  held.delete(request);
  clearTimeout(it.ends);
  clearInterval(it.ticks);
  show();
  return it;
};
const lose = (ids, ...words) => {
  const line = lineOf("problem", ...words, () => {
    lost.delete(line);
    show();
  });
  lost.set(line, ids);
};
const sendOne = async (request, leaves = false) => {
  const { ids } = held.get(request);
  sent.set(request, ids);
  const { what, send } = shut(request);
  const fate = await send(leaves);
  sent.delete(request);
  if (fate) lose(ids, `${fate.head}: `, `${what} ${fate.said}`, fate.link);
  show();
  return fate;
};
const undoOne = (request) => shut(request).undone();

export const undo = () => {
  const last = [...held.keys()].at(-1);
  if (last === undefined) return false;
  undoOne(last);
  return true;
};

// Sends all at once, if there are any; gives what is to be told of each.
export const sendHeld = (leaves) => held.size && Promise.all([...held.keys()].map((request) => sendOne(request, leaves)));
document.addEventListener(SIGNED_OUT, () => sendHeld());

// Nobody hears the answer to what a page sends as it closes, nor its lines. It leaves their ids in this browser: a later
// page looks which of these requests still wait, and says so. No server and no other program can make it say that.
const LEFT = "left";
const ANSWERED = 3000; // ms that a console has for what a closed page sent
const leftIds = () => attempt(() => JSON.parse(localStorage.getItem(LEFT))) ?? [];
window.addEventListener("pagehide", () => {
  const mine = [...[...held.values()].map(({ ids }) => ids), ...sent.values(), ...lost.values()].flat();
  if (mine.length) attempt(() => localStorage.setItem(LEFT, JSON.stringify([...new Set([...leftIds(), ...mine])])));
  sendHeld(true);
});
export const tellLeft = () => leftIds().length && setTimeout(async () => {
  const waiting = await fetch("/waiting").then((answer) => answer.ok && answer.json()).catch(() => null);
  if (!waiting) return; // a later page asks again
  const ids = leftIds();
  attempt(() => localStorage.removeItem(LEFT));
  for (const [words, href] of ids.map((id) => waiting[id]).filter(Boolean)) {
    const said = `${words}. A page that was closed had your decision, and the console has none.`;
    lose(ids.filter((id) => waiting[id]?.[1] === href), "Not decided: ", said, { href, text: "Decide it" });
  }
  show();
}, ANSWERED);

export const isHeld = (request) => held.has(request) || sent.has(request);
export const hold = (request, ids, card, what, send, undone) => {
  const until = Date.now() + waits(card);
  const line = document.createElement("p");
  const left = document.createElement("span");
  const tick = () => { left.textContent = ` Sent in ${Math.max(Math.ceil((until - Date.now()) / 1000), 1)} s.`; };
  line.className = "said";
  line.append(Object.assign(document.createElement("span"), { className: "what", textContent: what }), left);
  for (const [text, act] of [["Undo", undoOne], ["Send now", sendOne]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.addEventListener("click", () => act(request));
    line.append(" ", button);
  }
  tick();
  const next = following(card);
  held.set(request, {
    line, ids, what, send, undone, ends: setTimeout(() => sendOne(request), until - Date.now()), ticks: setInterval(tick, 500),
  });
  show();
  noteMove();
  next?.focus({ preventScroll: true });
};
const waits = (card) => {
  const expires = Number(card && $("[data-until]", card)?.dataset.until);
  return expires ? Math.max(Math.min(WAITS, expires - present() - LATEST), 0) : WAITS;
};
const following = (card) => {
  if ($("#inbox")) return null;
  const cards = $$("#main .card").filter((one) => one === card || one.getClientRects().length);
  const at = cards.indexOf(card);
  return at < 0 ? null : cards[at + 1] || cards[at - 1];
};
