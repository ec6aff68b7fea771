// The notice over the page: the answer to a button, and news. It is in sight wherever the page is scrolled to.
import { $ } from "./dom.js";

const SHOWN = 10000; // ms; a problem stays until it is closed
let fades = 0;

export const say = (kind, text, link) => {
  const line = document.createElement("p");
  const what = document.createElement("strong");
  const close = document.createElement("button");
  line.className = `said ${kind}`;
  what.textContent = kind === "done" ? "Done: " : kind === "problem" ? "Refused: " : "";
  close.type = "button";
  close.className = "quiet";
  close.textContent = "Close";
  close.addEventListener("click", unsay);
  line.append(what, text, " ");
  if (link) {
    const a = document.createElement("a");
    a.href = link.href;
    a.textContent = link.text;
    line.append(a, " ");
  }
  line.append(close);
  $("#said").replaceChildren(line);
  clearTimeout(fades);
  fades = kind === "problem" ? 0 : setTimeout(unsay, SHOWN);
};
// What could not be loaded; that one is signed out says more.
export const fail = (text) => { if (!$("#said .signed-out")) say("problem", text); };
export const unsay = () => {
  const there = $("#said").children.length;
  clearTimeout(fades);
  $("#said").replaceChildren();
  return Boolean(there);
};
