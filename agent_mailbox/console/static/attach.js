// Files of a message: chosen, dropped on the page, or pasted into the text. The form's own field holds them all.
import { $, $$ } from "./dom.js";

const fieldOf = (form) => $("input[type=file]", form ?? document.createElement("p"));
const show = (field) => {
  const list = $(".attached", field.form);
  list.replaceChildren(...[...field.files].map((file, at) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "✕" });
    button.setAttribute("aria-label", `Leave out ${file.name}`);
    button.addEventListener("click", () => {
      put(field, [...field.files].filter((_, other) => other !== at));
      field.focus();
    });
    item.append(`${file.name} `, button);
    return item;
  }));
};
const put = (field, files) => {
  const all = new DataTransfer();
  files.forEach((file) => all.items.add(file));
  field.files = all.files;
  show(field);
};
document.addEventListener("change", ({ target }) => {
  if (target.matches("input[type=file]")) show(target);
});
document.addEventListener("reset", ({ target }) => setTimeout(() => fieldOf(target) && show(fieldOf(target))));

const here = (target) => fieldOf(target.closest?.("form.compose")) ?? fieldOf($("#details form.compose, main form.compose"));
document.addEventListener("paste", (event) => {
  const field = event.target.matches("textarea") && here(event.target);
  if (!field || !event.clipboardData.files.length) return;
  event.preventDefault();
  put(field, [...field.files, ...event.clipboardData.files]);
});
const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
document.addEventListener("dragover", (event) => {
  const field = hasFiles(event) && here(event.target);
  if (!field) return;
  event.preventDefault(); // else the browser would leave the page for the file
  $$(".dropping").forEach((form) => form !== field.form && form.classList.remove("dropping"));
  field.form.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) $$(".dropping").forEach((form) => form.classList.remove("dropping"));
});
document.addEventListener("drop", (event) => {
  const field = hasFiles(event) && here(event.target);
  if (!field) return;
  event.preventDefault();
  field.form.classList.remove("dropping");
  put(field, [...field.files, ...event.dataTransfer.files]);
  $("textarea", field.form).focus();
});
