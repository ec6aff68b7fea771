// Brings the page up to date: fetches it again, and has it patched.
import { $, $$, here, lifted, load, parsed } from "./dom.js";
import { renewRows } from "./list.js";
import { say } from "./notices.js";
import { LEFT, renew } from "./patch.js";
import { EXPIRED, call, endCard, noteMove, tick } from "./requests.js";

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
  if (ended) endCard($("#details .card"), `Over, with nothing left to decide: ${$("#details h2").innerText}.`);
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
let took = 0; // ms
// The rail may be some seconds old, the page itself not; "soon" is the rail at once.
export const stale = (what) => {
  due.add(what);
  if (loading || (waiting && what === "rail")) return;
  clearTimeout(waiting);
  const soon = Math.min(Math.max(120, 3 * took), 2000); // what takes long is asked for less often
  waiting = setTimeout(refresh, what === "rail" ? 2000 : soon);
};
const refresh = async () => {
  const wanted = due;
  due = new Set();
  waiting = 0;
  loading = true;
  try {
    const alone = !wanted.has("main") && !wanted.has("all");
    const begun = Date.now();
    const page = await load(alone ? partOfPage("/rail") : here());
    took = Date.now() - begun;
    if (!$("#rail", page)) throw new Error("this is no page"); // what was there stays
    await lifted(); // nothing moves under a press
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
      renew(old, fresh);
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
    if (wanted.has("all") && list) {
      renewRows(list);
      tellPatched();
    }
  } catch { // the server is gone, which the stream says, or was busy: no event says it again
    setTimeout(() => wanted.forEach(stale), 5000);
  }
  loading = false;
  const left = [...due];
  if (left.length) stale(left.find((what) => what !== "rail") || "rail");
};
for (const name of [EXPIRED, LEFT]) document.addEventListener(name, () => stale("main"));
// What changes without mail says after how many seconds it is to be looked at again.
let next = 0;
const again = () => {
  const seconds = Number($("[data-again]")?.dataset.again);
  clearTimeout(next);
  if (seconds) next = setTimeout(() => (document.hidden ? again() : stale("main")), seconds * 1000);
};
again();
