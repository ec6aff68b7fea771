// Removes the launch token from the address at once, and exchanges it: it works once.
"use strict";
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = token;
  document.getElementById("enter").requestSubmit();
}
