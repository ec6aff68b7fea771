// Keeps a page live and adds keyboard commands. Every page and form works without it, too.
//
// The modules, each of which imports only those above it: zone, dom, notices, sound, requests, undo, drafts, list, receipts,
// rail, patch, refresh, seen, stream, copy, panel, inbox, forms, keys, attach, completion, switcher, found.
import "./attach.js";
import "./completion.js";
import { $, $$ } from "./dom.js";
import { restore } from "./drafts.js";
import "./forms.js";
import { markFound } from "./found.js";
import "./keys.js";
import { days, older, toEnd, watch } from "./list.js";
import { marked, open, shut } from "./panel.js";
import "./rail.js";
import { tick } from "./requests.js";
import { look } from "./seen.js";
import { listen } from "./stream.js";
import "./switcher.js";
import { localised } from "./zone.js";

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const a = event.target.closest?.("a");
  if (!a) return;
  if (a.dataset.open !== undefined) {
    event.preventDefault();
    open(a.href, true, Boolean(a.closest(".item")));
  } else if (a.dataset.close !== undefined) {
    event.preventDefault();
    shut();
  } else if (a.dataset.older !== undefined) {
    event.preventDefault();
    older(a);
  }
});

localised(document);
$$(".list").forEach(days);
restore(document);
tick();
setInterval(tick, 1000);
watch();
listen();
const opened = new URLSearchParams(location.search).get("open");
if (opened) document.getElementById(`m-${opened}`)?.scrollIntoView({ block: "center" });
else if ($("#news")) $("#news").scrollIntoView({ block: "center" });
else if ($("[data-live]") && !location.hash && !$("#main.agent")) toEnd();
marked();
markFound();
look();
