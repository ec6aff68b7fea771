// Decisions wait a moment before they are sent: for so long nobody can have acted on them, and the person may undo.
import { $ } from "./dom.js";

const WAITS = 5000; // ms
let held = null;

export const sendNow = () => {
  const it = held;
  if (!it) return;
  shut();
  it.send();
};
export const undo = () => {
  const it = held;
  if (!it) return false;
  shut();
  it.undone();
  return true;
};
const shut = () => {
  clearTimeout(held.ends);
  clearInterval(held.ticks);
  held = null;
  $("#held").replaceChildren();
};

export const isHeld = (request) => held?.request === request;
export const hold = (request, what, send, undone) => {
  sendNow(); // one at a time: who decides on goes on
  const until = Date.now() + WAITS;
  const line = document.createElement("p");
  const left = document.createElement("span");
  const tick = () => { left.textContent = ` Sent in ${Math.max(Math.ceil((until - Date.now()) / 1000), 1)} s.`; };
  line.className = "said";
  line.append(what, left);
  for (const [text, act] of [["Undo", undo], ["Send now", sendNow]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.addEventListener("click", act);
    line.append(" ", button);
  }
  tick();
  $("#held").replaceChildren(line);
  held = { request, send, undone, ends: setTimeout(sendNow, WAITS), ticks: setInterval(tick, 500) };
};
window.addEventListener("pagehide", sendNow);
