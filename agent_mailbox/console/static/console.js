// Keeps a page live and adds keyboard commands. Every page and form works without it, too.
"use strict";
(() => {
const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const MOST = 400; // rows kept in a list: a screen shows 20, and older ones can be loaded again
const policy = window.trustedTypes
  ? trustedTypes.createPolicy("console", { createHTML: (text) => text }) // only HTML from our own server comes here
  : { createHTML: (text) => text };
const parsed = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");
const body = document.body;
const here = () => location.pathname + location.search;
let heard = body.dataset.number; // the newest event that this page has
let stream = null;

const load = async (url) => {
  const answer = await fetch(url, { headers: { accept: "text/html" }, credentials: "same-origin" });
  if (answer.status === 401) location.reload();
  return parsed(await answer.text());
};

// -- notices ------------------------------------------------------------------------------------------------------

const say = (kind, text) => {
  const line = document.createElement("p");
  const what = document.createElement("strong");
  line.className = `said ${kind}`;
  what.textContent = kind === "done" ? "Done: " : kind === "problem" ? "Refused: " : "";
  line.append(what, text);
  $("#said").replaceChildren(line);
};

// -- updating a page -----------------------------------------------------------------------------------------------

const busy = (node) =>
  node.contains(document.activeElement) && document.activeElement !== node
    ? ["INPUT", "TEXTAREA", "SELECT", "BUTTON"].includes(document.activeElement.tagName) || dirty(node)
    : dirty(node);
const dirty = (node) =>
  $$("input:not([type=hidden]), textarea", node).some((f) => (f.type === "checkbox" ? f.checked !== f.defaultChecked : f.value !== f.defaultValue));

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
  if (focus && document.activeElement === body) old.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
};
const same = (one, other) => one.outerHTML === other.outerHTML;

let due = new Set();
let waiting = 0;
let loading = false;
// The rail may be some seconds old, the page itself not.
const stale = (what) => {
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
      $$("#rail a[data-channel]").filter((a) => marked.includes(a.dataset.channel)).forEach(mark);
      if (at) $(`#rail a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
    }
    document.title = page.title;
    const fresh = $("#main > [data-patch]", page);
    const old = $("#main > [data-patch]");
    if (fresh && old && (wanted.has("main") || wanted.has("all"))) {
      const before = $$(".card", old).map((card) => card.id);
      patch(old, fresh);
      const now = $$(".card", old).map((card) => card.id);
      const more = now.filter((id) => !before.includes(id)).length;
      if (before.some((id, at) => now[at] !== id)) moved = Date.now();
      if (more) say("news", `${more} new ${more === 1 ? "request" : "requests"} to decide.`);
    }
    if (wanted.has("all") && $("[data-live]") && $("[data-live]", page)) $("[data-live]").replaceChildren(...$("[data-live]", page).children);
  } catch { /* the server is gone; the stream says so */ }
  loading = false;
  const left = [...due];
  if (left.length) stale(left.find((what) => what !== "rail") || "rail");
};

// -- live ----------------------------------------------------------------------------------------------------------

const state = (live, words) => {
  const shown = $("#link-state");
  shown.classList.toggle("live", live);
  shown.firstElementChild.textContent = live ? "●" : "○";
  $(".words", shown).textContent = words;
};
const mark = (a) => {
  if (a.classList.contains("fresh")) return;
  a.classList.add("fresh");
  const word = document.createElement("span");
  word.className = "count";
  word.textContent = "new";
  a.append(" ", word);
};
const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;

const add = (text) => {
  const list = $("[data-live]");
  const row = $(".message", parsed(text));
  if (!list || !row || document.getElementById(row.id)) return;
  const follow = atEnd();
  $("[data-nothing]", list)?.remove();
  const { parent, day } = row.dataset;
  const above = $$(".message", list).at(-1);
  if (above?.dataset.day !== day) {
    const line = document.createElement("p");
    const word = document.createElement("span");
    line.className = "day";
    line.dataset.day = word.textContent = day;
    line.append(word);
    list.append(line);
  }
  if (parent) {
    const about = document.getElementById(`m-${parent}`);
    if (above && [above.dataset.key, above.dataset.parent].includes(parent)) row.classList.add("follows");
    else if (about) $("[data-said]", row).textContent = `${$(".who", about).innerText}: ${$(".subject, .control, .body", about).innerText.slice(0, 80)}`;
  }
  list.append(row);
  trim(list, true);
  if (follow) window.scrollTo({ top: document.documentElement.scrollHeight });
};
// Removes rows beyond the limit, at the end that is out of sight.
const trim = (list, fromTop) => {
  const rows = $$(".message", list);
  const over = rows.slice(...(fromTop ? [0, Math.max(rows.length - MOST, 0)] : [MOST]));
  over.forEach((row) => row.remove());
  if (over.length && fromTop) {
    const link = $("[data-older]", list);
    const first = $(".message", list);
    const at = new URL(location.href);
    at.searchParams.delete("open");
    at.searchParams.set("before", `${Date.parse($("time", first).dateTime) + 1000}.${first.dataset.key}`);
    if (link) link.href = at.pathname + at.search;
  }
  if (over.length && !fromTop) list.removeAttribute("data-live"), newest(list);
};
const newest = (list) => {
  if ($("[data-newest]", list)) return;
  const at = new URL(location.href);
  at.searchParams.delete("before");
  const line = document.createElement("p");
  const a = document.createElement("a");
  line.className = "older";
  a.href = at.pathname + at.search;
  a.dataset.newest = "";
  a.textContent = "The newest messages";
  line.append(a);
  list.append(line);
};

let ids = new Set();
const receipts = async () => {
  const wanted = [...ids].filter((id) => document.querySelector(`[data-receipt="${CSS.escape(id)}"]`)).slice(0, 100);
  ids = new Set();
  if (!wanted.length) return;
  const answer = await fetch(`/receipts?ids=${wanted.map(encodeURIComponent).join(",")}`);
  if (!answer.ok) return;
  for (const [id, [sign, words]] of Object.entries(await answer.json())) {
    for (const shown of $$(`[data-receipt="${CSS.escape(id)}"]`)) {
      shown.firstElementChild.textContent = sign;
      shown.lastChild.textContent = ` ${words}`;
    }
  }
};

const listen = () => {
  const at = new URLSearchParams(location.search);
  at.set("page", location.pathname);
  at.set("last", heard);
  stream = new EventSource(`/events?${at}`);
  stream.onopen = () => state(true, "live");
  stream.onerror = () => state(false, "not live; reconnecting");
  const on = (name, does) => stream.addEventListener(name, (event) => {
    heard = event.lastEventId || heard;
    does(event);
  });
  on("row", (event) => add(event.data));
  on("stale", (event) => stale(event.data));
  on("reads", (event) => {
    if (!ids.size) setTimeout(receipts, 150);
    event.data.split(",").forEach((id) => ids.add(id));
  });
  on("rest", () => {
    stream.close();
    stream = null;
    state(false, "paused while other windows are live");
  });
  on("mail", (event) => {
    const keys = JSON.parse(event.data);
    $$("#rail a[data-channel]:not([aria-current])").filter((a) => keys.includes(a.dataset.channel)).forEach(mark);
  });
};

// The oldest of many windows rests: a browser opens few connections to one server.
const wake = () => { if (!stream && !document.hidden) listen(); };
window.addEventListener("focus", wake);
document.addEventListener("visibilitychange", wake);

// -- older pages, details, forms -----------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const a = event.target.closest?.("a");
  if (!a) return;
  if (a.dataset.open !== undefined) {
    event.preventDefault();
    open(a.href);
  } else if (a.dataset.close !== undefined) {
    event.preventDefault();
    shut();
  } else if (a.dataset.older !== undefined) {
    event.preventDefault();
    older(a);
  }
});

const older = async (a) => {
  const list = a.closest(".list");
  if (list.dataset.loading) return;
  list.dataset.loading = "1";
  const page = await load(a.href);
  const more = $(".list", page);
  const first = $(".message", list);
  const top = first.getBoundingClientRect().top;
  const days = $$(".day", more).map((day) => day.dataset.day);
  a.closest(".older").remove();
  $$("[data-newest]", more).forEach((link) => link.closest(".older").remove());
  const repeated = $(".day", list);
  if (repeated && days.includes(repeated.dataset.day)) repeated.remove();
  list.prepend(...more.children);
  trim(list, false);
  window.scrollBy(0, first.getBoundingClientRect().top - top);
  delete list.dataset.loading;
  watch();
};
const seen = "IntersectionObserver" in window
  ? new IntersectionObserver((entries) => entries.forEach((e) => { if (e.isIntersecting && window.scrollY > 0) older(e.target); }))
  : null;
const watch = () => {
  seen?.disconnect();
  $$("[data-older]").forEach((a) => seen?.observe(a));
};

// A click on a request that just vanished must not decide the one that took its place.
const SETTLES = 700;
let moved = 0;
let came = null;
let opening = 0;
const open = async (href, keep = true) => {
  const mine = ++opening;
  if (keep) came = document.activeElement;
  const page = await load(href);
  if (mine !== opening) return; // another message was opened since
  const fresh = $("#details", page);
  const aside = $("#details");
  aside.replaceChildren(...fresh.children);
  aside.hidden = false;
  body.classList.add("detailed");
  history.replaceState(null, "", href);
  aside.scrollTop = 0;
  const head = $("h2", aside);
  if (head && keep) {
    head.tabIndex = -1;
    head.focus({ preventScroll: window.innerWidth > 900 });
  }
};
const shut = () => {
  const aside = $("#details");
  if (aside.hidden) return false;
  const at = new URL(location.href);
  opening += 1;
  at.searchParams.delete("open");
  history.replaceState(null, "", at);
  aside.hidden = true;
  aside.replaceChildren();
  body.classList.remove("detailed");
  came?.isConnected && came.focus({ preventScroll: true });
  return true;
};

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || ["/leave", "/session"].includes(new URL(form.action).pathname)) return;
  event.preventDefault();
  if (form.dataset.sending) return;
  if (form.matches(".decide") && Date.now() - moved < SETTLES) {
    say("news", "The list had just changed, so nothing was decided. Press the button again.");
    return;
  }
  form.dataset.sending = "1";
  const beside = form.closest("#details"); // before the answer, which may replace the form
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) fields.set(event.submitter.name, event.submitter.value);
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { accept: "application/json" } });
    const told = await answer.json();
    say(told.kind, told.said);
    if (told.kind === "done") {
      form.reset();
      if (form.closest(".card")) {
        form.closest(".card").remove();
        moved = Date.now();
      }
      if (beside && !beside.hidden) open(location.href, false);
      stale("main");
    }
  } catch {
    say("problem", "The console does not answer. Your text is still here.");
  }
  delete form.dataset.sending;
});

// -- keys ----------------------------------------------------------------------------------------------------------

const entries = () => $$("#main .card, #main .message, #main .entry").filter((node) => node.getClientRects().length);
const move = (by) => {
  const all = entries();
  if (!all.length) return;
  const now = all.findIndex((node) => node === document.activeElement || node.contains(document.activeElement));
  const list = $("[data-live]");
  const begin = by > 0 ? (list ? all.length - 1 : 0) : all.length - 1;
  const next = all[now < 0 ? begin : Math.min(Math.max(now + by, 0), all.length - 1)];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
};
const current = () => document.activeElement?.closest?.(".card, .message, .entry");
const go = { w: "/", a: "/agents", c: "/channels", p: "/pending", t: "/timeline", d: "/dead", m: "/archive" };
let leader = 0;
const keys = {
  j: () => move(1),
  k: () => move(-1),
  Enter: () => {
    const at = current();
    if (at !== document.activeElement) return false;
    const a = $("[data-open], [data-go]", at);
    if (!a) $("textarea, input:not([type=hidden])", at)?.focus();
    else if (a.dataset.open !== undefined) open(a.href);
    else a.click();
  },
  a: () => decide(".approve"),
  d: () => decide(".deny"),
  r: () => {
    const at = current();
    const a = at?.matches(".message") && $("[data-open]", at);
    if (a) open(a.href).then(() => $("#reply")?.focus());
    else ($("#reply") || $("#body"))?.focus();
  },
  "/": () => $("#find").focus(),
  g: () => { leader = Date.now(); },
  "?": () => $("#keys").showModal(),
};
const decide = (which) => {
  const at = current()?.matches(".card") ? current() : $("#main .card");
  const button = at && $(which, at);
  if (!button) return;
  at.scrollIntoView({ block: "nearest" });
  button.focus(); // only Enter confirms: one key alone decides nothing
  say("news", `${which === ".approve" ? "Approve" : "Deny"}: press Enter to confirm, Esc to cancel.`);
};

document.addEventListener("keydown", (event) => {
  const field = event.target.matches("input, textarea, select");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field && event.target.form) {
    event.preventDefault();
    event.target.form.requestSubmit($("button", event.target.form));
  } else if (event.key === "Escape" && !$("dialog[open]")) {
    if (field) (event.target.closest(".card, .message") || $("#main")).focus({ preventScroll: true });
    else if (event.target.matches(".card button")) event.target.closest(".card").focus({ preventScroll: true });
    else shut();
  } else if (!field && !event.ctrlKey && !event.metaKey && !event.altKey && !$("dialog[open]")) {
    const place = Date.now() - leader < 1500 && go[event.key];
    if (place) location.assign(place);
    else if (!Object.hasOwn(keys, event.key) || keys[event.key]() === false) return;
    event.preventDefault();
  }
});

$("#keys-button").hidden = false;
$("#keys-button").addEventListener("click", keys["?"]);
watch();
listen();
if (window.innerWidth <= 720) $$("#rail details").forEach((d) => { d.open = false; });
const opened = new URLSearchParams(location.search).get("open");
if (opened) document.getElementById(`m-${opened}`)?.scrollIntoView({ block: "center" });
else if ($("[data-live]") && !location.hash && !$("#main.agent")) window.scrollTo(0, document.documentElement.scrollHeight);
})();
