// Drafts stay in this window, also over a reload, until they are sent or it is closed or signed out.
import { $$, attempt } from "./dom.js";

export const windows = window.BroadcastChannel ? new BroadcastChannel("agent-mailbox") : null; // of this browser
const kept = ["to", "body", "subject", "message_id", "answers"];
export const forget = (draft) => attempt(() => sessionStorage.removeItem(draft));
export const restore = (where) => $$("form[data-draft]", where).forEach((form) => {
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
  if (new URL(event.target.action).pathname !== "/leave") return;
  attempt(() => sessionStorage.clear());
  windows?.postMessage("left");
});
