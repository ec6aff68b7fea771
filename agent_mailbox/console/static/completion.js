// Completes each of several addresses, and names in a text: a browser's own list completes the whole field alone.
import { $, $$ } from "./dom.js";

const field = $("#to[list]");
const options = $$("#addresses option").map((option) => [option.value, option]);
field?.addEventListener("input", () => {
  const before = field.value.slice(0, field.value.lastIndexOf(",") + 1);
  const written = before.split(",").map((word) => word.trim());
  for (const [value, option] of options) {
    option.value = before ? `${before} ${value}` : value;
    option.disabled = written.includes(value);
  }
});

// Names in a text: Tab takes the first one that is offered. A line above says whom the text tells, too.
const area = $("#names") && $("#body");
const line = $("#named");
const names = $$("#names option").map((option) => option.value);
const NAMED = /(?<![\w@.])@([\w.+-]+)/g;
const begun = () => area.value.slice(0, area.selectionStart).match(/(?<![\w@.])@([\w.+-]+)$/)?.[1];
const spell = (word) => names.find((name) => name.toLowerCase() === word.replace(/[.+-]+$/, "").toLowerCase());
const complete = (name) => {
  area.setRangeText(`${name} `, area.selectionStart - begun().length, area.selectionStart, "end");
  area.focus();
  area.dispatchEvent(new Event("input", { bubbles: true }));
};
const offer = () => {
  const word = begun()?.toLowerCase();
  const found = word ? names.filter((name) => name.toLowerCase().startsWith(word) && name.toLowerCase() !== word) : [];
  line.replaceChildren(...found.slice(0, 6).map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `@${name}`;
    button.addEventListener("click", () => complete(name));
    return button;
  }));
  line.hidden = !found.length;
  const told = new Set([...area.value.matchAll(NAMED)].map((one) => spell(one[1])).filter(Boolean));
  $("#mentioned").textContent = told.size ? `; tells ${[...told].join(", ")} directly` : "";
};
area?.addEventListener("input", offer);
area?.form.addEventListener("reset", () => setTimeout(offer));
area?.addEventListener("keydown", (event) => {
  if (event.key !== "Tab" || event.shiftKey || event.isComposing || line.hidden) return;
  event.preventDefault();
  complete($("button", line).textContent.slice(1));
});
