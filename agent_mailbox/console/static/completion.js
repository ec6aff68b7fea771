// Completes each of several addresses: a browser's own list completes the whole field alone.
import { $, $$ } from "./dom.js";

const field = $("#to[list]");
const options = $$("#addresses option").map((option) => [option.value, option]);
field?.addEventListener("input", () => {
  const before = field.value.slice(0, field.value.lastIndexOf(",") + 1);
  const written = before.split(",").map((word) => word.trim());
  for (const [value, option] of options) {
    option.value = before ? `${before} ${value}` : value;
    option.disabled = written.includes(value);
  }
});
