// Takes the launch token out of the address at once, and hands it in: it works once.
"use strict";
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = token;
  document.getElementById("enter").requestSubmit();
}
