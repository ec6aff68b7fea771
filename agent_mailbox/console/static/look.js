// The look that the person chose, before the page is drawn; without a choice it is the system's.
"use strict";
try {
  document.documentElement.dataset.look = localStorage.getItem("look") || "";
} catch { /* a browser may refuse its storage */ }
document.addEventListener("DOMContentLoaded", () => {
  const choice = document.getElementById("look");
  if (!choice) return;
  choice.value = document.documentElement.dataset.look;
  choice.addEventListener("change", () => {
    document.documentElement.dataset.look = choice.value;
    try {
      localStorage.setItem("look", choice.value);
    } catch { /* it holds for this page */ }
  });
});
