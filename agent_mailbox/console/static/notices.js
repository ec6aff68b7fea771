// The notice over the page: the answer to a button, and news. It is in sight wherever the page is scrolled to.
import { $ } from "./dom.js";

const SHOWN = 10000; // ms; a problem stays until it is closed
let fades = 0;

// A line of it, which begins with ``head``, with a button that closes it.
export const lineOf = (kind, head, text, link, shut) => {
  const line = document.createElement("p");
  const close = document.createElement("button");
  line.className = `said ${kind}`;
  close.type = "button";
  close.className = "quiet";
  close.textContent = "Close";
  close.addEventListener("click", shut);
  line.append(Object.assign(document.createElement("strong"), { textContent: head }), text, " ");
  if (link) {
    const a = document.createElement("a");
    a.href = link.href;
    a.textContent = link.text;
    line.append(a, " ");
  }
  line.append(close);
  return line;
};
const HEADS = { done: "Done: ", problem: "Refused: " };
export const say = (kind, text, link, head = HEADS[kind] ?? "") => {
  $("#said").replaceChildren(lineOf(kind, head, text, link, unsay));
  clearTimeout(fades);
  fades = kind === "problem" ? 0 : setTimeout(unsay, SHOWN);
};
// What could not be loaded; that one is signed out says more.
export const fail = (text) => { if (!$("#said .signed-out")) say("problem", text, null, ""); };
export const unsay = () => {
  const there = $("#said").children.length;
  clearTimeout(fades);
  $("#said").replaceChildren();
  return Boolean(there);
};
