// Drafts stay in this window, also over a reload, until they are sent or it is closed or signed out.
import { $$, attempt } from "./dom.js";

export const windows = window.BroadcastChannel ? new BroadcastChannel("agent-mailbox") : null; // of this browser
const fieldsOf = (form) => [...form.elements].filter(
  ({ name, type }) => name && !["file", "submit"].includes(type) && (type !== "hidden" || name === "message_id"),
);
const isWritten = (form) => fieldsOf(form).some(
  (field) => ["text", "textarea"].includes(field.type) && field.value !== field.defaultValue,
);
export const forget = (draft) => attempt(() => sessionStorage.removeItem(draft));
const fill = (field, found) => {
  if (field.type === "checkbox") field.checked = field.name in found;
  else if (field.type === "radio") field.checked = field.value === found[field.name];
  else if (field.name in found) field.value = found[field.name];
};
export const restore = (where) => $$("form[data-draft]", where).forEach((form) => {
  const found = attempt(() => JSON.parse(sessionStorage.getItem(form.dataset.draft)));
  if (!found || form.elements.body?.value || isWritten(form)) return;
  fieldsOf(form).forEach((field) => {
    fill(field, found);
    const fold = field.closest("details");
    if (fold && field.value !== field.defaultValue) fold.open = true; // nothing is sent out of sight
  });
});
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.dataset.draft) return;
  if (!isWritten(form)) forget(form.dataset.draft);
  else attempt(() => sessionStorage.setItem(form.dataset.draft, JSON.stringify(Object.fromEntries(new FormData(form)))));
});
document.addEventListener("submit", (event) => {
  if (new URL(event.target.action).pathname !== "/leave") return;
  attempt(() => sessionStorage.clear());
  windows?.postMessage("left");
});
