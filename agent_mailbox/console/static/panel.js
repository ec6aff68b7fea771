// The opened message beside the list: Back and Escape close it.
import { offerCopies } from "./copy.js";
import { $, $$, load } from "./dom.js";
import { restore } from "./drafts.js";
import { fail } from "./notices.js";

// The opened message is marked in the list, too.
export const marked = () => {
  const id = $("#details .whole")?.dataset.message;
  $$(".message.opened").forEach((row) => row.classList.remove("opened"));
  if (id) document.getElementById(`m-${id}`)?.classList.add("opened");
  offerCopies($("#details"));
};

let came = null;
let opening = 0;
export const open = async (href, keep = true) => {
  const mine = ++opening;
  const from = location.href;
  if (keep) came = document.activeElement;
  const page = await load(href).catch(() => null);
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
  if (keep && new URL(href, from).href !== location.href) { // Back closes it
    if (history.state?.opened) history.replaceState({ opened: true }, "", href);
    else history.pushState({ opened: true }, "", href);
  }
  aside.scrollTop = 0;
  $(".whole[aria-current]", aside)?.scrollIntoView({ block: "nearest" }); // below what came earlier in its thread
  restore(aside);
  marked();
  const head = $("h2", aside);
  if (head && keep) {
    head.tabIndex = -1;
    head.focus({ preventScroll: window.innerWidth > 900 });
  }
};
export const shut = () => {
  if ($("#details").hidden) return false;
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
  aside.hidden = true;
  aside.replaceChildren();
  marked();
  document.body.classList.remove("detailed");
  came?.isConnected && came.focus({ preventScroll: true });
  return true;
};
