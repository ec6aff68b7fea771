// Forms that are sent without leaving the page.
import { forget } from "./drafts.js";
import { say, unsay } from "./notices.js";
import { open } from "./panel.js";
import { stale } from "./refresh.js";
import { justMoved, noteMove } from "./requests.js";
import { signedOut } from "./stream.js";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || ["/leave", "/session"].includes(new URL(form.action).pathname)) return;
  event.preventDefault();
  if (form.dataset.sending) return;
  if (form.matches(".decide") && justMoved()) {
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
        noteMove();
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
