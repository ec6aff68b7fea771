// Brings a part of the page up to date, around the person: what did not change stays, and so does what they are in.
import { $, $$ } from "./dom.js";

// The person is in it: a menu is open, a field is in use, or something is chosen or written.
const busy = (node) => Boolean($("details[open]", node)) || dirty(node) ||
  (node !== document.activeElement && node.contains(document.activeElement)
    && ["INPUT", "TEXTAREA", "SELECT", "BUTTON"].includes(document.activeElement.tagName));
const changed = (field) =>
  field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
const dirty = (node) =>
  $$("input:not([type=hidden]), textarea", node).some((field) => changed(field) && field.checkVisibility());
const HELD = ".card, .step, .holds, .item"; // as it is while the person is in it
const held = (node) => node.matches?.(HELD) && busy(node);
let late = false; // something held is older than what the server has

// What a node is about. A form is about what it would send: no press may send what another form was to send.
const about = (node) => {
  if (node.nodeType !== Node.ELEMENT_NODE) return undefined;
  const given = node.dataset.key ?? node.getAttribute("id") ?? node.dataset.fold;
  if (given !== undefined) return given;
  if (node.matches("form")) {
    const sent = $$("input[type=hidden]", node).filter(({ name }) => !["message_id", "next"].includes(name));
    return [node.getAttribute("action"), ...sent.map(({ value }) => value)].join(" ");
  }
  return (node.matches("a") ? node : node.matches("li, tr") && $("a[href]", node))?.getAttribute?.("href") ?? undefined;
};

// Brings a node up to what a fresh one is, in place: what is as it was stays the same node, where it was.
const renewNode = (old, fresh) => {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if (held(old)) {
    late = true;
    return;
  }
  const mine = ({ name }) => (name === "open" && old.matches("details")) || name === "data-sending"
    || (name === "value" && old.name === "message_id"); // a second try has the same id
  const over = [...old.attributes].filter((one) => !mine(one) && !fresh.hasAttribute(one.name));
  over.forEach((one) => old.removeAttribute(one.name));
  [...fresh.attributes].filter((one) => !mine(one) && old.getAttribute(one.name) !== one.value)
    .forEach((one) => old.setAttribute(one.name, one.value));
  patch(old, fresh);
};

// Those with a menu of their own stay where they are while it is open. Else they move, with what is written in them.
let staying = new Map();
let movable = new Map();
const stays = (node) => [...staying.values()].includes(node);
const patch = (old, fresh) => {
  const known = new Map();
  const free = [];
  for (const node of old.childNodes) {
    const what = about(node);
    if (what === undefined) free.push(node);
    else if (!known.has(what)) known.set(what, node);
  }
  const next = [];
  for (const node of [...fresh.childNodes]) {
    const what = about(node);
    if (staying.has(what) && !old.contains(staying.get(what)) && node.matches(".holds")) continue;
    const at = free.findIndex((one) => one.nodeName === node.nodeName);
    const other = node.matches?.(".holds") ? movable.get(what) : undefined;
    const before = what === undefined ? free.splice(at, at < 0 ? 0 : 1)[0] : known.get(what) ?? other;
    known.delete(what);
    if (before?.nodeName === node.nodeName) renewNode(before, node);
    next.push(before?.nodeName === node.nodeName ? before : node);
  }
  for (const node of [...old.children].filter((one) => stays(one) && !next.includes(one))) {
    next.splice(next.indexOf(node.previousElementSibling) + 1, 0, node);
    late = true;
  }
  place(old, next);
};
// Kept nodes are not moved if it can be helped: that would lose the focus and the cursor.
const place = (old, next) => {
  const kept = new Set(next);
  [...old.childNodes].filter((node) => !kept.has(node)).forEach((node) => node.remove());
  for (let at = old.firstChild, n = 0; n < next.length; n += 1) {
    const node = next[n];
    if (node.parentNode === old && (stays(node) || node.contains(document.activeElement))) {
      while (at && at !== node) { // these come behind it
        const other = at;
        at = at.nextSibling;
        other.remove();
      }
    }
    if (node === at) at = at.nextSibling;
    else old.insertBefore(node, at);
  }
};
export const renew = (old, fresh) => {
  if (!old || !fresh) return;
  const at = old.contains(document.activeElement) ? document.activeElement : null;
  const link = at?.getAttribute("href");
  const key = at?.closest("[data-key]")?.dataset.key;
  movable = new Map($$(".holds", old).map((node) => [about(node), node]));
  staying = new Map([...movable].filter(([, node]) => busy(node)));
  const first = [...staying.values()][0];
  const top = first?.getBoundingClientRect().top;
  patch(old, fresh);
  if (first) window.scrollBy(0, first.getBoundingClientRect().top - top);
  staying = movable = new Map();
  if (!at || document.activeElement !== document.body) return; // what had the focus is in another place now
  const there = (link && $(`a[href="${CSS.escape(link)}"]`, old)) ?? (key && $(`[data-key="${CSS.escape(key)}"]`, old));
  there?.focus({ preventScroll: true });
};
export const LEFT = "left"; // the event on the document when the person left what was held, and it is out of date
for (const name of ["focusout", "toggle"]) document.addEventListener(name, () => {
  if (!late) return;
  late = false;
  document.dispatchEvent(new Event(LEFT));
}, true);
