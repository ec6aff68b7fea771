// Receipts: which messages somebody has not seen, as news of it come.
import { $, $$, load, partOf } from "./dom.js";
import { joinRows } from "./list.js";
let ids = new Set();
const receipts = async () => {
  const about = [...ids];
  const wanted = about.filter((id) => document.querySelector(`[data-receipt="${CSS.escape(id)}"]`)).slice(-100);
  ids = new Set();
  if (about.includes(shownBeside())) renewBeside();
  if (!wanted.length) return;
  const answer = await fetch(`/receipts?ids=${wanted.map(encodeURIComponent).join(",")}`);
  if (!answer.ok) return;
  for (const [id, [sign, words, isQuiet]] of Object.entries(await answer.json())) {
    for (const shown of $$(`[data-receipt="${CSS.escape(id)}"]`)) {
      shown.firstElementChild.textContent = sign;
      $(".words", shown).textContent = words;
      shown.classList.toggle("quiet", isQuiet);
    }
  }
  joinRows();
};
const shownBeside = () => $("#details .whole")?.dataset.message;
const renewBeside = async () => {
  const id = shownBeside();
  const link = $(`[data-open="${CSS.escape(id)}"]`);
  const page = link && await load(partOf(link.href)).catch(() => null);
  const fresh = page && $(".of-receipts", page);
  if (fresh && shownBeside() === id) $("#details .of-receipts")?.replaceWith(fresh);
};
// Of these messages; of none named, of all that somebody has not seen.
export const noteReads = (about) => {
  if (!ids.size) setTimeout(receipts, 150);
  const open = () => $$("[data-receipt]:not(.quiet)").map((shown) => shown.dataset.receipt);
  (about.length ? about : [...open(), shownBeside()].filter(Boolean)).forEach((id) => ids.add(id));
};
