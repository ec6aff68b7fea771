// Removes the launch token from the address at once, and exchanges it: it works once.
"use strict";
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const here = location.pathname + location.search;
if (token) {
  history.replaceState(null, "", here);
  document.getElementById("token").value = token;
  document.getElementById("enter").requestSubmit();
} else if (document.body.dataset.again !== undefined) {
  location.replace(here); // from here the browser sends the cookie, which it kept from another site's link
}
// Another window may have signed in meanwhile.
const look = async () => {
  if (document.hidden || token) return;
  const answer = await fetch("/receipts?ids=").catch(() => null);
  if (answer?.ok) location.replace(here);
};
for (const name of ["focus", "visibilitychange"]) window.addEventListener(name, look);
