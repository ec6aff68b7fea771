// Brings the page up to date: fetches it again, and replaces what changed around the person.
import { $, $$, here, load, parsed } from "./dom.js";
import { renewRows } from "./list.js";
import { say } from "./notices.js";
import { EXPIRED, call, endCard, noteMove, tick } from "./requests.js";

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
    return before.matches(".card, .step, .holds, .item") && busy(before) ? before : node;
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

export const PATCHED = "patched"; // the event on the document after the page was brought up to date
const tellPatched = () => document.dispatchEvent(new Event(PATCHED));

// What was decided here is gone, though an event or a page from before that may still list it.
const gone = new Set();
export const noteGone = (line) => {
  gone.add(line.dataset.key);
  line.remove();
};

// One request came or went: the list takes its line alone, and all others stay as they are.
export const placeEntries = ({ order, entry }) => {
  const list = $("[data-patch=stops]");
  const given = entry && $(".item", parsed(entry));
  const fresh = given && !gone.has(given.dataset.key) && given;
  const shown = list ? $$(":scope > .item", list) : [];
  if (!list || !shown.length || !order.length) { // its words change, too
    stale("main");
    return;
  }
  const open = $("#details .card:not(.expired)")?.dataset.request;
  const ended = open && shown.some((one) => one.id === `r-${open}`) && !order.includes(`r-${open}`);
  if (ended) endCard($("#details .card"), "This request is over: nothing is left to decide.");
  shown.filter((one) => !order.includes(one.dataset.key)).forEach((one) => one.remove());
  const old = fresh && shown.find((one) => one.dataset.key === fresh.dataset.key);
  if (fresh && !old) {
    const later = order.slice(order.indexOf(fresh.dataset.key) + 1);
    const next = $$(":scope > .item", list).find((one) => later.includes(one.dataset.key));
    if (next) next.before(fresh);
    else list.append(fresh);
    say("news", "1 new request to decide.");
    stale("soon"); // the rail, which calls the person
  }
  $("h2 .count", list.closest("section")).textContent = order.length;
  const now = $$(":scope > .item", list).map((one) => one.dataset.key);
  tick();
  tellPatched();
  if (order.some((key) => !now.includes(key) && !gone.has(key))) stale("main"); // one was missed
};

// -- the rail ---------------------------------------------------------------------------------------------------------

const partOfPage = (path) => {
  const at = new URLSearchParams(location.search);
  at.set("page", location.pathname);
  return `${path}?${at}`;
};
const renew = (old, fresh) => {
  if (!old || !fresh || same(fresh, old)) return;
  const folds = (part) => $$("details", part).map((d, i) => [d.dataset.fold ?? i, d]);
  const opened = new Map(folds(old).map(([key, d]) => [key, d.open]));
  const at = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
  old.replaceChildren(...fresh.childNodes);
  folds(old).forEach(([key, d]) => { d.open = opened.get(key) ?? d.open; });
  if (at) $(`a[href="${CSS.escape(at)}"]`, old)?.focus({ preventScroll: true });
};
// What is beside a channel changes with its mail, its members and their work.
const renewColumns = async () => {
  const page = $("#topics") && await load(partOfPage("/columns"));
  if (page) for (const id of ["topics", "members", "reach"]) renew($(`#${id}`), $(`#${id}`, page));
};
// Counts a message that came in, until the server's own count is there.
export const countNew = (keys) => {
  const counted = (link) => keys.includes(link.dataset.channel) && link.dataset.muted === undefined;
  for (const a of $$("#rail a[data-channel]").filter(counted)) {
    a.dataset.new = Number(a.dataset.new) + 1;
    a.classList.add("fresh");
    $(".number", a).textContent = a.dataset.new < 100 ? a.dataset.new : "99+";
    $(".count", a).hidden = false;
  }
  stale("rail");
};

// -- when -----------------------------------------------------------------------------------------------------------

let due = new Set();
let waiting = 0;
let loading = false;
// The rail may be some seconds old, the page itself not; "soon" is the rail at once.
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
    const alone = !wanted.has("main") && !wanted.has("all");
    const page = await load(alone ? partOfPage("/rail") : here());
    const calls = $("#calls", page)?.parentNode.cloneNode(true);
    renew($("#rail"), $("#rail", page));
    if (!$("#place-menu[open]")) renew($("#place-menu"), $("#place-menu", page));
    await renewColumns();
    const decisions = Number(page.body.dataset.decisions || 0);
    document.title = `${decisions ? `(${decisions}) ` : ""}${document.title.replace(/^\(\d+\) /, "")}`;
    if (calls) call(decisions, calls);
    const fresh = $("#main > [data-patch]", page);
    const old = $("#main > [data-patch]");
    if (fresh && old && (wanted.has("main") || wanted.has("all"))) {
      $$(".item", fresh).filter((one) => gone.has(one.dataset.key)).forEach((one) => one.remove());
      const before = $$(".card, .item", old).map((one) => one.dataset.key);
      patch(old, fresh);
      old.dataset.again = fresh.dataset.again ?? "";
      again();
      const now = $$(".card, .item", old).map((one) => one.dataset.key);
      const more = now.filter((key) => key.startsWith("r-") && !before.includes(key)).length;
      if ($(".card", old) && before.some((key, at) => now[at] !== key)) noteMove();
      tick();
      tellPatched();
      if (more) say("news", `${more} new ${more === 1 ? "request" : "requests"} to decide.`);
    }
    const list = $("[data-live]", page);
    if (wanted.has("all") && list) renewRows(list);
  } catch { /* the server is gone; the stream says so */ }
  loading = false;
  const left = [...due];
  if (left.length) stale(left.find((what) => what !== "rail") || "rail");
};
document.addEventListener(EXPIRED, () => stale("main"));
// What changes without mail says after how many seconds it is to be looked at again.
let next = 0;
const again = () => {
  const seconds = Number($("[data-again]")?.dataset.again);
  clearTimeout(next);
  if (seconds) next = setTimeout(() => (document.hidden ? again() : stale("main")), seconds * 1000);
};
again();
