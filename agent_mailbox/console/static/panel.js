// The opened message beside the list: Back and Escape close it.
import { offerCopies } from "./copy.js";
import { $, $$, load, partOf } from "./dom.js";
import { restore } from "./drafts.js";
import { fail } from "./notices.js";

// The opened message is marked in the list, too.
export const marked = () => {
  const shown = $("#details :is(.card, .whole)");
  const id = shown && (shown.dataset.request ? `r-${shown.dataset.request}` : `m-${shown.dataset.message}`);
  $$(".opened").forEach((row) => row.classList.remove("opened"));
  $$("#main [data-open][aria-current]").forEach((a) => a.removeAttribute("aria-current"));
  const row = id && document.getElementById(id);
  row?.classList.add("opened");
  if (row?.matches(".item")) $("[data-open]", row).setAttribute("aria-current", "true");
  offerCopies($("#details"));
};

// What comes next is loaded ahead, and used once.
const FRESH = 10000; // ms
let ahead = { part: "", page: null, at: 0 };
export const loadAhead = (href) => {
  ahead = { part: partOf(href), page: load(partOf(href)).catch(() => null), at: Date.now() };
};
const taken = (part) => {
  const page = ahead.part === part && Date.now() - ahead.at < FRESH ? ahead.page : null;
  ahead = { part: "", page: null, at: 0 };
  return page ?? load(part).catch(() => null);
};

let came = null;
let opening = 0;
let shown = Promise.resolve();
let loading = 0;
export const ready = () => shown; // until what was opened last is there
export const isLoading = () => loading > 0;
// ``keep``: Back leads to what was there. ``stays``: the focus remains where it is.
export const open = (href, keep = true, stays = false) => {
  loading += 1;
  shown = show(href, keep, stays).finally(() => { loading -= 1; });
  return shown;
};
// Back closes it, however many are opened one after another.
const visit = (href) => {
  if (href !== location.href) history[history.state?.opened ? "replaceState" : "pushState"]({ opened: true }, "", href);
};
const isThere = (href) => $(".item.opened [data-open]")?.href === href && $("#details :is(.card:not(.expired), .whole)");
const show = async (href, keep, stays) => {
  const mine = ++opening;
  if (keep) came = document.activeElement;
  if (stays && isThere(href)) {
    document.body.classList.add("detailed");
    visit(href);
    return;
  }
  const page = await taken(partOf(href));
  if (mine !== opening) return; // another message was opened since
  const fresh = $("#details", page ?? document.createElement("p"));
  if (!fresh) {
    if (keep) fail("The message did not come: the console does not answer. Open it again.");
    return;
  }
  const aside = $("#details");
  aside.replaceChildren(...fresh.children);
  aside.hidden = false;
  document.body.classList.add("detailed");
  if (keep) visit(href);
  aside.scrollTop = 0;
  $(".whole[aria-current]", aside)?.scrollIntoView({ block: "nearest" }); // below what came earlier in its thread
  restore(aside);
  marked();
  const head = $("h2", aside);
  if (head && keep && !stays) {
    head.tabIndex = -1;
    head.focus({ preventScroll: window.innerWidth > 900 });
  }
};
// What was shown before is there once more, as it was left.
export const putBack = (node, href) => {
  opening += 1;
  $("#details").replaceChildren(node);
  document.body.classList.add("detailed");
  history.replaceState({ opened: true }, "", href);
  marked();
};
export const shut = () => {
  if ($("#details").hidden || ($("#inbox") && !document.body.matches(".detailed"))) return false;
  hide();
  if (history.state?.opened) history.back(); // so that Back opens nothing again
  else {
    const at = new URL(location.href);
    at.searchParams.delete("open");
    history.replaceState(null, "", at);
  }
  return true;
};
window.addEventListener("popstate", () => {
  if (new URLSearchParams(location.search).get("open")) open(location.href, false).catch(() => {});
  else hide();
});
const hide = () => {
  const aside = $("#details");
  opening += 1;
  aside.hidden = !$("#inbox");
  aside.replaceChildren();
  marked();
  document.body.classList.remove("detailed");
  came?.isConnected && came.focus({ preventScroll: true });
  return true;
};
