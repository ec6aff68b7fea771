// The list of messages: rows that come in, older ones on demand, receipts. It keeps a bounded number of rows.
import { $, $$, load, parsed } from "./dom.js";
import { fail } from "./notices.js";

const MOST = 400; // rows kept in a list: a screen shows 20, and older ones can be loaded again

// -- new rows -------------------------------------------------------------------------------------------------------

export const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;

export const add = (text) => {
  const list = $("[data-live]");
  const row = $(".message", parsed(text));
  if (!list || !row) return;
  if (document.getElementById(row.id)) return row.dataset.key; // it was queued
  const follow = atEnd();
  $("[data-nothing]", list)?.remove();
  const { parent } = row.dataset;
  const rows = $$(".message", list);
  const above = rows.findLast((other) => Number(other.dataset.at) <= Number(row.dataset.at)); // as a reload orders them
  if (!above && rows.length && $("[data-older]", list)) return; // it belongs to an older page
  if (parent) {
    const about = document.getElementById(`m-${parent}`);
    if (above && [above.dataset.key, above.dataset.parent].includes(parent)) row.classList.add("follows");
    else if (about) {
      const what = $(".subject, .control, .body", about).innerText.slice(0, 80);
      $("[data-said]", row).textContent = `${$(".who", about).innerText}: ${what}`;
    }
  }
  if (above) above.after(row);
  else if (rows.length) rows[0].before(row);
  else list.append(row);
  days(list);
  trim(list, true);
  const answers = $("form input[name=thread]"); // the composer answers what is newest in its topic
  if (answers && row === $$(".message", list).at(-1)) answers.value = row.dataset.key;
  if (follow || (row.matches(".person") && $("#body"))) toEnd(); // what was written here, not an order given above
  else noteBelow();
};
export const toEnd = () => window.scrollTo({ top: document.documentElement.scrollHeight });

// A sign of new mail while the person reads further up.
let below = 0;
const noteBelow = (count = below + 1) => {
  const button = $("#below");
  below = count;
  if (!button) return;
  button.hidden = !below;
  button.textContent = `↓ ${below} new`;
};
window.addEventListener("scroll", () => { if (below && atEnd()) noteBelow(0); });
$("#below")?.addEventListener("click", toEnd);
// All rows are other ones now, after more news than come one by one. Who reads further up keeps the place.
export const renewRows = (fresh) => {
  const list = $("[data-live]");
  if (!list) return;
  const follow = atEnd();
  const known = new Set($$(".message", list).map((row) => row.id));
  const anchor = $$(".message", list).find((row) => row.getBoundingClientRect().bottom > 80);
  const top = anchor?.getBoundingClientRect().top;
  const more = $$(".message", fresh).filter((row) => !known.has(row.id)).length;
  const stays = !follow && anchor && ![...fresh.children].some((row) => row.id === anchor.id);
  if (stays) {
    list.removeAttribute("data-live");
    newest(list);
  } else {
    $$("details.fold[open]", list).forEach((one) => unfold(one, fresh));
    list.replaceChildren(...fresh.children);
  }
  if (follow) toEnd();
  else {
    const there = anchor && document.getElementById(anchor.id);
    if (there) window.scrollBy(0, there.getBoundingClientRect().top - top);
    if (more) noteBelow(below + more);
  }
  watch();
};
const unfold = (opened, fresh) => {
  const id = opened.closest(".message").id;
  const again = $(`[id="${CSS.escape(id)}"] details.fold`, fresh);
  if (again) again.open = true;
};
// Puts each day above its first message.
export const days = (list) => {
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
    const first = row.previousElementSibling?.matches(".news-begin") ? row.previousElementSibling : row;
    if (first.previousElementSibling !== line) first.before(line);
  }
  $$(".day", list).forEach((line) => used.has(line) || line.remove()); // an older page brings its own
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
  if (over.length && !fromTop) {
    list.removeAttribute("data-live");
    newest(list);
  }
  joinRows();
};
export const joinRows = () => $$(".list .message").forEach(join);
// Has a message without a head of its own below one of the same speaker, and no receipt above one that says the same.
const join = (row) => {
  const said = (one) => one?.matches(".message") && $(".receipt", one)?.textContent.replace(/\s+/g, " ");
  row.classList.toggle("joined", row.previousElementSibling?.dataset.joins === row.dataset.joins);
  row.classList.toggle("told", Boolean(said(row)) && said(row.nextElementSibling) === said(row));
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

// -- older rows -----------------------------------------------------------------------------------------------------

export const older = async (a) => {
  const list = a.closest(".list");
  if (!list || list.dataset.loading) return;
  list.dataset.loading = "1";
  const asked = a.href;
  const page = await load(asked).catch(() => null);
  delete list.dataset.loading;
  const link = $("[data-older]", list);
  if (link?.href !== asked) return link ? older(link) : undefined; // the list has other rows by now
  if (!$(".list", page ?? document.createElement("p"))) {
    fail("Older messages did not come: the console does not answer. Press “Older messages” to try again.");
    return;
  }
  const more = $(".list", page);
  const first = $(".message", list);
  const top = first.getBoundingClientRect().top;
  link.closest(".older").remove();
  $$("[data-newest]", more).forEach((one) => one.closest(".older").remove());
  list.prepend(...more.children);
  days(list);
  trim(list, false);
  window.scrollBy(0, first.getBoundingClientRect().top - top);
  watch();
};
const seen = "IntersectionObserver" in window
  ? new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting && window.scrollY > 0).forEach((entry) => older(entry.target));
  })
  : null;
export const watch = () => {
  seen?.disconnect();
  $$("[data-older]").forEach((a) => seen?.observe(a));
};
