// The live stream: news as they happen, and coming back after the console was away or signed out of.
import { $, lifted, SIGNED_OUT, tellSignedOut } from "./dom.js";
import { windows } from "./drafts.js";
import { add } from "./list.js";
import { say, unsay } from "./notices.js";
import { noteReads } from "./receipts.js";
import { countNew, placeEntries, stale } from "./refresh.js";
import { look } from "./seen.js";
import { tellLeft } from "./undo.js";

let heard = document.body.dataset.number; // the newest event that this page has
let stream = null;
let lastHeard = Date.now();
const SILENT = 60000; // ms: two pings are missing, so the connection is dead though nobody closed it
const PATIENCE = 10000; // ms for a new one; the browser may try other dead connections first
const DOUBTFUL = 30000; // ms: one is missing, and the page was away

const state = (live, words) => {
  const shown = $("#link-state");
  shown.classList.toggle("live", live);
  shown.firstElementChild.textContent = live ? "●" : "○";
  $(".words", shown).textContent = words;
};

export const listen = () => {
  const at = new URLSearchParams(location.search);
  at.set("page", location.pathname);
  at.set("last", heard);
  stream = new EventSource(`/events?${at}`);
  stream.onopen = () => {
    lastHeard = Date.now();
    state(true, "live");
    tellLeft();
  };
  stream.onerror = () => {
    state(false, "not live; reconnecting");
    if (stream?.readyState === EventSource.CLOSED) lost(); // the browser does not try again by itself
  };
  const on = (name, does) => stream.addEventListener(name, (event) => {
    heard = event.lastEventId || heard;
    lastHeard = Date.now();
    does(event);
  });
  on("row", ({ data }) => lifted().then(() => {
    const known = add(data);
    if (known) noteReads([known]);
    look();
  }));
  on("stale", (event) => stale(event.data));
  on("reads", (event) => noteReads(event.data.split(",").filter(Boolean)));
  on("rest", () => {
    stream.close();
    stream = null;
    state(false, "paused while other windows are live");
  });
  on("mail", (event) => countNew(JSON.parse(event.data)));
  on("entries", ({ data }) => lifted().then(() => placeEntries(JSON.parse(data))));
  on("said", (event) => say(...JSON.parse(event.data)));
  on("ping", () => {});
};
export const isLive = () => stream?.readyState === EventSource.OPEN && Date.now() - lastHeard < SILENT;

// A computer that slept, or a network that forgot the connection, closes nothing: only silence tells.
let listening = Date.now();
const renew = (limit) => {
  const silent = Date.now() - lastHeard;
  if (!stream || silent < limit) return;
  state(false, `not live; last heard ${Math.round(silent / 1000)} s ago`);
  if (Date.now() - listening < PATIENCE) return; // the new one has its time, too
  listening = Date.now();
  stream.close();
  listen();
};
setInterval(() => renew(SILENT), 5000);
for (const name of ["online", "pageshow", "focus"]) window.addEventListener(name, () => renew(DOUBTFUL));
document.addEventListener("visibilitychange", () => document.hidden || renew(DOUBTFUL));

// A console that was started again, or signed out of, refuses the stream. The page asks, ever less often, until it may
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
    document.body.classList.remove("left");
    unsay();
    listen();
  } else {
    if (answer?.status === 401) tellSignedOut();
    if (!asking) lost();
  }
};
const signedOut = () => {
  state(false, "signed out");
  document.body.classList.add("left"); // whoever comes to this screen reads nothing; what is written stays
  if ($("#said .signed-out")) return;
  const what = "You are signed out here. Open a link of agent-mailbox console in this browser; this page then goes on by itself.";
  say("problem", what, { href: "/", text: "Sign in again" }, "");
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
document.addEventListener(SIGNED_OUT, signedOut);
windows?.addEventListener("message", () => setTimeout(() => {
  stream?.close();
  stream = null;
  again();
}, 300));
