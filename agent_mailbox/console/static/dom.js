// Finding elements, and turning the server's HTML into them. Nothing here changes the page.
import { localised } from "./zone.js";

export const $ = (selector, from = document) => from.querySelector(selector);
export const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
export const here = () => location.pathname + location.search;

const policy = window.trustedTypes
  ? trustedTypes.createPolicy("console", { createHTML: (text) => text }) // only HTML from our own server comes here
  : { createHTML: (text) => text };
export const parsed = (text) => localised(new DOMParser().parseFromString(policy.createHTML(text), "text/html"));

export const SIGNED_OUT = "signed-out"; // the event on the document that a refused request causes
export const tellSignedOut = () => document.dispatchEvent(new Event(SIGNED_OUT));

export const load = async (url) => {
  const answer = await fetch(url, { headers: { accept: "text/html" }, credentials: "same-origin" });
  if (answer.status === 401) {
    tellSignedOut();
    throw new Error("signed out");
  }
  return parsed(await answer.text());
};

// Where an opened message is alone, without its page.
export const partOf = (href) => {
  const at = new URL(href, location.href);
  at.searchParams.set("page", at.pathname);
  return `/details?${at.searchParams}`;
};

// When no pointer presses the page any more, or has for too long.
const LONG = 1500; // ms
let press = Promise.resolve();
let lift = () => {};
document.addEventListener("pointerdown", () => {
  lift();
  press = new Promise((does) => { lift = does; });
  setTimeout(lift, LONG);
}, true);
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => setTimeout(lift), true); // behind its click
}
export const lifted = () => press;

// A browser may refuse its storage.
export const attempt = (does) => {
  try {
    return does();
  } catch {
    return null;
  }
};
