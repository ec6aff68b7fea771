// Marks what a search found, without a change of the page: the words stay as their writer wrote them.
import { $, $$ } from "./dom.js";

const MOST = 2000; // marks on a page
const plain = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();

export const markFound = () => {
  const sought = $("[data-sought]")?.dataset.sought.split(" ").map((word) => plain(word).replace(/[*"]/g, "")).filter(Boolean);
  if (!sought?.length || !CSS.highlights) return;
  const ranges = [];
  for (const part of $$("#main :is(.body, .subject, .who)")) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && ranges.length < MOST) mark(walker.currentNode, sought, ranges);
  }
  CSS.highlights.set("found", new Highlight(...ranges));
};
const mark = (node, sought, ranges) => {
  const text = plain(node.data);
  if (text.length !== node.data.length) return; // an accent moved the places: rather no mark than a wrong one
  for (const word of sought) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      if (/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) continue;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + word.length);
      ranges.push(range);
    }
  }
};
