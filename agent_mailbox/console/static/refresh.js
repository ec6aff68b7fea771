// Brings the page up to date: fetches it again, and replaces what changed around the person.
import { $, $$, here, load } from "./dom.js";
import { say } from "./notices.js";
import { EXPIRED, call, noteMove, tick } from "./requests.js";

// -- patching -------------------------------------------------------------------------------------------------------

const busy = (node) => $("details[open]", node) ? true :
  node.contains(document.activeElement) && document.activeElement !== node
    ? ["INPUT", "TEXTAREA", "SELECT", "BUTTON"].includes(document.activeElement.tagName) || dirty(node)
    : dirty(node);
const changed = (field) =>
  field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
const dirty = (node) => $$("input:not([type=hidden]), textarea", node).some(changed);

// Replaces children by their keys; fields that the person is editing stay as they are.
const patch = (old, fresh) => {
  const known = new Map($$(":scope > [data-key]", old).map((node) => [node.dataset.key, node]));
  const next = [...fresh.children].map((node) => {
    const before = known.get(node.dataset.key);
    if (!before || same(before, node)) return before || node;
    const inner = $("[data-patch]", before);
    const other = $("[data-patch]", node);
    if (inner && other) {
      patch(inner, other);
      $("h2", before).replaceWith($("h2", node));
      return before;
    }
    return before.matches(".card") && busy(before) ? before : node;
  });
  const focus = document.activeElement?.closest?.("[data-key]")?.dataset.key;
  const kept = new Set(next);
  [...old.childNodes].filter((node) => !kept.has(node)).forEach((node) => node.remove());
  let at = old.firstChild;
  for (const node of next) { // kept nodes are not moved: that would lose the focus and the cursor
    if (node === at) at = at.nextSibling;
    else old.insertBefore(node, at);
  }
  if (focus && document.activeElement === document.body) {
    old.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }
};
const same = (one, other) => one.outerHTML === other.outerHTML;

// -- when -----------------------------------------------------------------------------------------------------------

let due = new Set();
let waiting = 0;
let loading = false;
// The rail may be some seconds old, the page itself not.
export const stale = (what) => {
  due.add(what);
  if (loading || (waiting && what === "rail")) return;
  clearTimeout(waiting);
  waiting = setTimeout(refresh, what === "rail" ? 2000 : 120);
};
const refresh = async () => {
  const wanted = due;
  due = new Set();
  waiting = 0;
  loading = true;
  try {
    const page = await load(here());
    const rail = $("#rail", page);
    if (rail && !same(rail, $("#rail"))) {
      const marked = $$("#rail .fresh").map((a) => a.dataset.channel);
      const shut = $$("#rail details").map((d) => d.open);
      const at = document.activeElement?.closest("#rail a")?.getAttribute("href");
      $("#rail").replaceChildren(...rail.children);
      $$("#rail details").forEach((d, i) => { d.open = shut[i] ?? true; });
      $$("#rail a[data-channel]").filter((a) => marked.includes(a.dataset.channel)).forEach(markFresh);
      if (at) $(`#rail a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
    }
    document.title = page.title;
    call(Number(page.body.dataset.decisions || 0));
    const fresh = $("#main > [data-patch]", page);
    const old = $("#main > [data-patch]");
    if (fresh && old && (wanted.has("main") || wanted.has("all"))) {
      const before = $$(".card", old).map((card) => card.id);
      patch(old, fresh);
      const now = $$(".card", old).map((card) => card.id);
      const more = now.filter((id) => !before.includes(id)).length;
      if (before.some((id, at) => now[at] !== id)) noteMove();
      tick();
      if (more) say("news", `${more} new ${more === 1 ? "request" : "requests"} to decide.`);
    }
    const list = $("[data-live]", page);
    if (wanted.has("all") && list) $("[data-live]")?.replaceChildren(...list.children);
  } catch { /* the server is gone; the stream says so */ }
  loading = false;
  const left = [...due];
  if (left.length) stale(left.find((what) => what !== "rail") || "rail");
};
document.addEventListener(EXPIRED, () => stale("main"));

export const markFresh = (a) => {
  if (a.classList.contains("fresh")) return;
  a.classList.add("fresh");
  const word = document.createElement("span");
  word.className = "count";
  word.textContent = "new";
  a.append(" ", word);
};
