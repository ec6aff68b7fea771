// Copies a link to the opened message.
import { $$ } from "./dom.js";
import { say } from "./notices.js";

export const offerCopies = (where) => {
  if (navigator.clipboard) $$("[data-copy]", where).forEach((button) => { button.hidden = false; });
};
document.addEventListener("click", async ({ target }) => {
  if (target.dataset?.copy === undefined) return;
  const link = location.origin + target.dataset.copy;
  const done = await navigator.clipboard.writeText(link).then(() => true, () => false);
  if (done) say("done", "The link is copied. It opens here, in a browser that is signed in.");
  else say("news", link);
});
