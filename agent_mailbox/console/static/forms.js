// Forms that are sent without leaving the page.
import { $, $$, tellSignedOut } from "./dom.js";
import { forget } from "./drafts.js";
import { beside, chosenItem, moveOn } from "./inbox.js";
import { fail, say } from "./notices.js";
import { open, putBack, shut } from "./panel.js";
import { PATCHED, noteGone, stale } from "./refresh.js";
import { mayMiss, noteMove } from "./requests.js";
import { isLive } from "./stream.js";
import { hold, isHeld, sendHeld } from "./undo.js";

document.addEventListener("submit", (event) => {
  const form = event.target;
  const { pathname } = new URL(form.action);
  const goFirst = pathname === "/leave" && sendHeld();
  if (goFirst) {
    event.preventDefault();
    goFirst.then((fates) => fates.some(Boolean) || form.submit());
    return;
  }
  if (form.method !== "post" || ["/leave", "/leave-others", "/session"].includes(pathname)) return;
  event.preventDefault();
  if (form.dataset.sending) return;
  if (form.matches(".card .decide") && mayMiss()) { // the bar decides what was chosen, wherever it is
    say("news", "The list had just changed, so nothing was decided. Press the button again.");
    return;
  }
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) fields.set(event.submitter.name, event.submitter.value);
  const request = fields.get("request");
  if (request && isHeld(request)) return;
  if (form.matches(".decide") && !isObject(fields.get("input"))) {
    say("problem", "The changed input is no JSON object, so nothing was decided.");
    return;
  }
  form.dataset.sending = "1";
  const action = event.submitter?.hasAttribute("formaction") ? event.submitter.formAction : form.action;
  if (!form.matches(".decide")) send(action, form, fields);
  else holdDecision(form, request, fields);
});

// A decision closes its line and moves on; taken back, its card is there as it was left.
const holdDecision = (form, request, fields) => {
  const card = form.closest(".card");
  const item = card?.closest("#details") && chosenItem();
  const next = item && beside(item);
  const ids = request ? [request] : chosenIn(fields);
  hold(request, ids, card, told(form, fields), (leaves) => send(form.action, form, fields, leaves), () => {
    delete form.dataset.sending;
    say("news", "Taken back: nothing was decided.");
    const line = document.getElementById(`r-${request}`);
    if (line && card) {
      putBack(card, $("[data-open]", line).href);
      line.focus({ preventScroll: true });
    }
  });
  if (item) moveOn(next === item ? null : next);
  else if (card?.closest("#details")) shut();
};

const boxesOf = (form) => $$(`input[form="${CSS.escape(form)}"]`).filter((box) => box.getClientRects().length);
const tellChosen = () => $$("[data-all]").forEach((all) => {
  const boxes = boxesOf(all.dataset.all);
  const count = boxes.filter((box) => box.checked).length;
  all.checked = count > 0 && count === boxes.length;
  $$("[data-chosen]", all.form).forEach((said) => { said.textContent = count ? `${count} chosen` : ""; });
});
document.addEventListener(PATCHED, tellChosen); // the server knows of no choice, and lines come and go
document.addEventListener("change", ({ target }) => {
  if (target.dataset.all) boxesOf(target.dataset.all).forEach((box) => { box.checked = target.checked; });
  tellChosen();
});

const isObject = (text) => {
  if (text === null) return true; // the request has no input
  try {
    return JSON.parse(text)?.constructor === Object;
  } catch {
    return false;
  }
};
const chosenIn = (fields) => [...fields.keys()].filter((key) => key.startsWith("chosen:")).map((key) => key.slice(7));
const told = (form, fields) => {
  const word = { approve: "Approve", always: "Allow always", deny: "Deny" }[fields.get("decision")];
  const ids = chosenIn(fields);
  const title = (card) => card?.querySelector("h2, .line-one").innerText.trim().replace(/\s+/g, " ");
  const named = ids.map((id) => title(document.getElementById(`r-${id}`)) ?? id);
  const count = `${ids.length} ${ids.length === 1 ? "request" : "requests"}`;
  return `${word}: ${title(form.closest(".card")) ?? `${count}: ${named.join(", ")}`}.`;
};

// A form with files goes in parts, any other as one line.
const withFiles = (form, fields) => {
  const files = $$("input[type=file]", form).flatMap((field) => [...field.files].map((file) => [field.name, file]));
  $$("input[type=file]", form).forEach((field) => fields.delete(field.name));
  if (!files.length) return fields;
  const parts = new FormData();
  for (const [name, value] of [...fields, ...files]) parts.append(name, value);
  return parts;
};

// ``leaves``: the page is being left, so a later one tells what became of it.
// Returns what becomes of a decision that does not count, or perhaps not.
const send = async (action, form, fields, leaves = false) => {
  if (leaves) fields.set("leaves", "1");
  const body = withFiles(form, fields);
  const draft = form.dataset.draft;
  const around = form.closest("#details"); // before the answer, which may replace the form
  const item = around && chosenItem();
  const next = item && beside(item) !== item ? beside(item) : null;
  try {
    const answer = await fetch(action, {
      method: "POST", body, headers: { accept: "application/json" },
      keepalive: body === fields && String(fields).length < 60000,
    });
    if (answer.status === 401) {
      tellSignedOut();
      return { head: "Not sent", said: "You are signed out here." };
    }
    const type = answer.headers.get("content-type") ?? "";
    const isTold = type.split(";")[0].trim() === "application/json"; // else refused before it was looked at
    if (!isTold && answer.status > 500) throw new Error("a proxy says that the console does not answer");
    const told = isTold ? await answer.json() : { kind: "problem", said: await answer.text() };
    const isSo = told.kind !== "problem"; // done now, or so before
    const fate = isSo || !form.matches(".decide") ? null : { head: "Refused", said: told.said };
    if (!fate) say(told.kind, told.said);
    if (told.message_id && form.elements.message_id) form.elements.message_id.value = told.message_id;
    if (isSo) {
      const entry = form.closest("[data-key][tabindex]");
      if (form.contains(document.activeElement)) entry?.focus({ preventScroll: true }); // its press is over
      if (entry && form.closest("details")) form.closest("details").open = false;
      $$("select[data-keeps] option", form).forEach((one) => { one.defaultSelected = one.selected; });
      form.reset();
      if (draft) forget(draft);
      if (form.closest("#main .card")) {
        form.closest(".card").remove();
        noteMove();
      }
      const line = fields.get("request") && document.getElementById(`r-${fields.get("request")}`);
      if (line) noteGone(line);
      if (form.matches(".settles") && item) {
        item.remove();
        moveOn(next);
      } else if (form.isConnected && around && !form.matches(".decide")) open(location.href, false);
    }
    const tells = isSo && form.matches(".decide") && isLive() && $("[data-patch=stops]"); // the stream
    if (!tells && (isSo || answer.status === 409 || form.matches(".decide"))) stale("main");
    return fate;
  } catch {
    if (!form.matches(".decide")) fail("The console does not answer. Your text is still here.");
    const link = { href: "/decided", text: "Past decisions" };
    return { head: "Perhaps sent", said: "The console does not answer. If it counts, it is among", link };
  } finally {
    delete form.dataset.sending;
  }
};
