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
  if (answer.status === 401) {
    signedOut();
    throw new Error("signed out");
  }
  return parsed(await answer.text());
};

// -- notices ------------------------------------------------------------------------------------------------------

// The notice stands over the page, wherever that is scrolled to. A problem stays until it is closed.
const SHOWN = 10000;
let fades = 0;
const say = (kind, text, link) => {
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
const unsay = () => {
  const there = $("#said").children.length;
  clearTimeout(fades);
  $("#said").replaceChildren();
  return Boolean(there);
};

// -- requests call the person ----------------------------------------------------------------------------------------

const call = (decisions) => {
  const before = Number(body.dataset.decisions);
  body.dataset.decisions = decisions;
  const icon = $("#icon");
  icon.href = decisions ? icon.dataset.waiting : icon.dataset.calm;
  if (decisions <= before || document.hasFocus() || !window.Notification || Notification.permission !== "granted") return;
  const words = `${decisions} ${decisions === 1 ? "request waits" : "requests wait"} for your decision`;
  const notice = new Notification("agent-mailbox", { body: words, tag: "agent-mailbox" });
  notice.onclick = () => { window.focus(); notice.close(); };
};
const asks = $("#notify");
if (asks && window.Notification && window.isSecureContext && Notification.permission === "default") {
  asks.hidden = false;
  asks.addEventListener("click", async () => { asks.hidden = (await Notification.requestPermission()) !== "default"; });
}

// -- time that passes ------------------------------------------------------------------------------------------------

const spelt = (seconds) => {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(parts.findIndex(([size]) => seconds >= size), 0);
  if (seconds < 60) return `${seconds} s`;
  const [[size, unit], next] = [parts[at], parts[at + 1]];
  const rest = Math.floor((seconds % size) / next[0]);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${next[1]}` : ""}`;
};
let expired = 0;
const tick = () => {
  const now = Date.now();
  for (const time of $$("time[data-since]")) {
    const seconds = Math.max(Math.floor((now - Date.parse(time.dateTime)) / 1000), 0);
    time.textContent = seconds < 60 ? `${seconds} s` : spelt(seconds - seconds % 60);
  }
  for (const left of $$("[data-until]")) {
    const seconds = Math.ceil((Number(left.dataset.until) - now) / 1000);
    left.textContent = seconds > 0 ? `(${spelt(seconds)} left)` : "(expired)";
    if (seconds <= 0) expire(left.closest(".card"));
  }
};
const expire = (card) => {
  card.classList.add("expired");
  $$("button", card).forEach((button) => { button.disabled = true; });
  if (Date.now() - expired > 5000) { // the server leaves it out from now on
    expired = Date.now();
    setTimeout(() => stale("main"), 3000);
  }
};

// -- updating a page -----------------------------------------------------------------------------------------------

const busy = (node) => $("details[open]", node) ? true :
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
    call(Number(page.body.dataset.decisions || 0));
    const fresh = $("#main > [data-patch]", page);
    const old = $("#main > [data-patch]");
    if (fresh && old && (wanted.has("main") || wanted.has("all"))) {
      const before = $$(".card", old).map((card) => card.id);
      patch(old, fresh);
      const now = $$(".card", old).map((card) => card.id);
      const more = now.filter((id) => !before.includes(id)).length;
      if (before.some((id, at) => now[at] !== id)) moved = Date.now();
      tick();
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
  const { parent } = row.dataset;
  const rows = $$(".message", list);
  const above = rows.findLast((other) => Number(other.dataset.at) <= Number(row.dataset.at)); // as a reload orders them
  if (!above && rows.length && $("[data-older]", list)) return; // it belongs to an older page
  if (parent) {
    const about = document.getElementById(`m-${parent}`);
    if (above && [above.dataset.key, above.dataset.parent].includes(parent)) row.classList.add("follows");
    else if (about) $("[data-said]", row).textContent = `${$(".who", about).innerText}: ${$(".subject, .control, .body", about).innerText.slice(0, 80)}`;
  }
  if (above) above.after(row);
  else if (rows.length) rows[0].before(row);
  else list.append(row);
  days(list);
  trim(list, true);
  if (follow) window.scrollTo({ top: document.documentElement.scrollHeight });
};
// Puts each day above its first message.
const days = (list) => {
  let last = "";
  const lines = new Map($$(".day", list).map((line) => [line.dataset.day, line]));
  const used = new Set();
  for (const row of $$(".message", list)) {
    const { day } = row.dataset;
    if (day === last) continue;
    last = day;
    let line = used.has(lines.get(day)) ? null : lines.get(day);
    if (!line) {
      const word = document.createElement("span");
      line = document.createElement("p");
      line.className = "day";
      line.dataset.day = word.textContent = day;
      line.append(word);
    }
    used.add(line);
    if (row.previousElementSibling !== line) row.before(line);
  }
  lines.forEach((line) => used.has(line) || line.remove());
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
    at.searchParams.set("before", `${first.dataset.at}.${first.dataset.key}`);
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
  stream.onerror = () => {
    state(false, "not live; reconnecting");
    if (stream?.readyState === EventSource.CLOSED) lost(); // the browser does not try again by itself
  };
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

// A console that was started anew, or signed out of, refuses the stream. The page asks, ever less often, until it may
// go on; what is written in it stays.
const SOONEST = 1000;
const SELDOM = 15000;
let asking = 0;
let pause = SOONEST;
const lost = () => {
  stream?.close();
  stream = null;
  clearTimeout(asking);
  asking = setTimeout(again, pause);
  pause = Math.min(pause * 2, SELDOM);
};
const again = async () => {
  clearTimeout(asking);
  asking = 0;
  if (stream) return;
  const answer = await fetch("/receipts?ids=").catch(() => null);
  if (answer?.ok) {
    pause = SOONEST;
    unsay();
    listen();
  } else {
    if (answer?.status === 401) signedOut();
    if (!asking) lost();
  }
};
const signedOut = () => {
  state(false, "signed out");
  if ($("#said .signed-out")) return;
  say("problem", "You are signed out here. Open a link of agent-mailbox console in this browser; this page then goes on by itself.", { href: "/", text: "Sign in again" });
  $("#said p").classList.add("signed-out");
  if (!asking && (!stream || stream.readyState === EventSource.CLOSED)) lost();
};

// The oldest of many windows rests: a browser opens few connections to one server.
const wake = () => {
  if (stream || document.hidden) return;
  if (asking) again();
  else listen();
};
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
  const from = location.href;
  if (keep) came = document.activeElement;
  const page = await load(href);
  if (mine !== opening) return; // another message was opened since
  const fresh = $("#details", page);
  const aside = $("#details");
  aside.replaceChildren(...fresh.children);
  aside.hidden = false;
  body.classList.add("detailed");
  if (keep && new URL(href, from).href !== location.href) history.pushState(null, "", href); // Back closes it
  aside.scrollTop = 0;
  restore(aside);
  const head = $("h2", aside);
  if (head && keep) {
    head.tabIndex = -1;
    head.focus({ preventScroll: window.innerWidth > 900 });
  }
};
const shut = () => {
  if ($("#details").hidden) return false;
  const at = new URL(location.href);
  at.searchParams.delete("open");
  history.pushState(null, "", at);
  return hide();
};
window.addEventListener("popstate", () => {
  if (new URLSearchParams(location.search).get("open")) open(location.href, false).catch(() => {});
  else hide();
});
const hide = () => {
  const aside = $("#details");
  opening += 1;
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
  const draft = form.dataset.draft;
  const beside = form.closest("#details"); // before the answer, which may replace the form
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) fields.set(event.submitter.name, event.submitter.value);
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { accept: "application/json" } });
    if (answer.status === 401) {
      unsay();
      signedOut();
      return;
    }
    const told = await answer.json();
    say(told.kind, told.said);
    if (told.message_id && form.elements.message_id) form.elements.message_id.value = told.message_id;
    if (told.kind === "done") {
      form.reset();
      if (draft) forget(draft);
      if (form.closest(".card")) {
        form.closest(".card").remove();
        moved = Date.now();
      }
      if (beside && !beside.hidden) open(location.href, false).catch(() => {});
    }
    if (told.kind === "done" || form.matches(".decide")) stale("main");
  } catch {
    say("problem", "The console does not answer. Your text is still here.");
  } finally {
    delete form.dataset.sending;
  }
});

// -- drafts ----------------------------------------------------------------------------------------------------------

// They stay in this window, also over a reload, until they are sent or it is closed or signed out.
const kept = ["body", "subject", "message_id", "answers"];
const attempt = (does) => { try { return does(); } catch { return null; } }; // a browser may refuse its storage
const forget = (draft) => attempt(() => sessionStorage.removeItem(draft));
const restore = (where) => $$("form[data-draft]", where).forEach((form) => {
  const found = attempt(() => JSON.parse(sessionStorage.getItem(form.dataset.draft)));
  if (!found || form.elements.body.value) return;
  kept.filter((name) => form.elements[name] && found[name]).forEach((name) => { form.elements[name].value = found[name]; });
});
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.dataset.draft) return;
  if (!form.elements.body.value) forget(form.dataset.draft);
  else attempt(() => sessionStorage.setItem(form.dataset.draft, JSON.stringify(Object.fromEntries(new FormData(form)))));
});
document.addEventListener("submit", (event) => {
  if (new URL(event.target.action).pathname === "/leave") attempt(() => sessionStorage.clear());
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
    $$("details.change", at).forEach((d) => { d.open = true; });
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
  if (!button || button.disabled) return;
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
    else unsay() || shut();
  } else if (!field && $("#single-keys").checked && !event.ctrlKey && !event.metaKey && !event.altKey && !$("dialog[open]")) {
    const place = Date.now() - leader < 1500 && go[event.key];
    if (place) location.assign(place);
    else if (!Object.hasOwn(keys, event.key) || keys[event.key]() === false) return;
    event.preventDefault();
  }
});

const single = $("#single-keys");
single.checked = attempt(() => localStorage.getItem("single-keys")) !== "off";
single.addEventListener("change", () => attempt(() => localStorage.setItem("single-keys", single.checked ? "on" : "off")));
$("#keys-button").hidden = false;
$("#keys-button").addEventListener("click", keys["?"]);
restore(document);
tick();
setInterval(tick, 1000);
watch();
listen();
if (window.innerWidth <= 720) $$("#rail details").forEach((d) => { d.open = false; });
const opened = new URLSearchParams(location.search).get("open");
if (opened) document.getElementById(`m-${opened}`)?.scrollIntoView({ block: "center" });
else if ($("[data-live]") && !location.hash && !$("#main.agent")) window.scrollTo(0, document.documentElement.scrollHeight);
})();
