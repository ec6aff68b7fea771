// Decisions wait a moment before they are sent: for so long nobody can have acted on them, and the person may undo.
// Several may wait. The line of each, or its card, is out of sight meanwhile.
import { $, $$, SIGNED_OUT } from "./dom.js";
import { lineOf } from "./notices.js";
import { noteMove, present } from "./requests.js";

const WAITS = 5000; // ms
const LATEST = 2000; // ms before a request expires
const held = new Map();
const sent = new Set(); // those whose answer has not come
const lost = new Set(); // the lines of those that do not count, or perhaps not: each stays until it is closed
const unseen = new CSSStyleSheet(); // a rule outlives the patching of a card
document.adoptedStyleSheets.push(unseen);

const show = () => {
  const rule = (id) => `#${CSS.escape(`r-${id}`)}, #main .card[data-request="${CSS.escape(id)}"] { display: none }`;
  unseen.replaceSync([...held.keys(), ...sent].filter(Boolean).map(rule).join(""));
  $("#held").replaceChildren(...lost, ...[...held.values()].map(({ line }) => line));
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
  const { what, send } = shut(request);
  const fate = await send(leaves);
  sent.delete(request);
  if (fate) {
    const line = lineOf("problem", `${fate.head}: `, `${what} ${fate.said}`, fate.link, () => {
      lost.delete(line);
      show();
    });
    lost.add(line);
  }
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
window.addEventListener("pagehide", () => sendHeld(true));

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
    line, what, send, undone, ends: setTimeout(() => sendOne(request), until - Date.now()), ticks: setInterval(tick, 500),
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
