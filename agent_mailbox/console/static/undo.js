// Decisions wait a moment before they are sent: for so long nobody can have acted on them, and the person may undo.
// Several may wait. The line of each, or its card, is out of sight meanwhile.
import { $, $$ } from "./dom.js";
import { noteMove, present } from "./requests.js";

const WAITS = 5000; // ms
const LATEST = 2000; // ms before a request expires
const held = new Map();
const sent = new Set(); // those whose answer has not come
const unseen = new CSSStyleSheet(); // a rule outlives the patching of a card
document.adoptedStyleSheets.push(unseen);

const show = () => {
  const rule = (id) => `#${CSS.escape(`r-${id}`)}, #main .card[data-request="${CSS.escape(id)}"] { display: none }`;
  unseen.replaceSync([...held.keys(), ...sent].filter(Boolean).map(rule).join(""));
  $("#held").replaceChildren(...[...held.values()].map(({ line }) => line));
};
const shut = (request) => {
  const it = held.get(request);
  held.delete(request);
  clearTimeout(it.ends);
  clearInterval(it.ticks);
  show();
  return it;
};
const sendOne = async (request, leaves = false) => {
  sent.add(request);
  await shut(request).send(leaves);
  sent.delete(request);
  show();
};
const undoOne = (request) => shut(request).undone();

export const undo = () => {
  const last = [...held.keys()].at(-1);
  if (last === undefined) return false;
  undoOne(last);
  return true;
};

export const isHeld = (request) => held.has(request) || sent.has(request);
export const hold = (request, card, what, send, undone) => {
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
    line, send, undone, ends: setTimeout(() => sendOne(request), until - Date.now()), ticks: setInterval(tick, 500),
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
window.addEventListener("pagehide", () => [...held.keys()].forEach((request) => sendOne(request, true)));
