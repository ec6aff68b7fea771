// The live stream: news as they happen, and coming back after the console was away or signed out of.
import { $, SIGNED_OUT } from "./dom.js";
import { add, noteReads } from "./list.js";
import { say, unsay } from "./notices.js";
import { countNew, stale } from "./refresh.js";
import { look } from "./seen.js";

let heard = document.body.dataset.number; // the newest event that this page has
let stream = null;

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
  stream.onopen = () => state(true, "live");
  stream.onerror = () => {
    state(false, "not live; reconnecting");
    if (stream?.readyState === EventSource.CLOSED) lost(); // the browser does not try again by itself
  };
  const on = (name, does) => stream.addEventListener(name, (event) => {
    heard = event.lastEventId || heard;
    does(event);
  });
  on("row", (event) => {
    add(event.data);
    look();
  });
  on("stale", (event) => stale(event.data));
  on("reads", (event) => noteReads(event.data.split(",")));
  on("rest", () => {
    stream.close();
    stream = null;
    state(false, "paused while other windows are live");
  });
  on("mail", (event) => countNew(JSON.parse(event.data)));
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
export const signedOut = () => {
  state(false, "signed out");
  if ($("#said .signed-out")) return;
  const what = "You are signed out here. Open a link of agent-mailbox console in this browser; this page then goes on by itself.";
  say("problem", what, { href: "/", text: "Sign in again" });
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
