// Times in the browser's own zone, where that is not the console's: a phone may be elsewhere.
const differs = -new Date().getTimezoneOffset() !== Number(document.body.dataset.offset);
const spelt = (at, form) => new Intl.DateTimeFormat("en-GB", form).format(at);
const CLOCK = { hour: "2-digit", minute: "2-digit" };
const DAY = { day: "numeric", month: "long", year: "numeric" };
const dayOf = (at) => `${spelt(at, { weekday: "long" })}, ${spelt(at, DAY)}`;
const moment = (at) => {
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return spelt(at, CLOCK);
  if (at.getFullYear() !== now.getFullYear()) return `${spelt(at, { ...DAY, month: "short" })}, ${spelt(at, CLOCK)}`;
  return `${spelt(at, { weekday: "short" })} ${spelt(at, { day: "numeric", month: "short" })}, ${spelt(at, CLOCK)}`;
};

export const localised = (root) => {
  if (!differs) return root;
  for (const row of root.querySelectorAll("body > .message, .list .message")) {
    const at = new Date(Number(row.dataset.at));
    const time = row.querySelector(".open time");
    row.dataset.day = dayOf(at);
    time.textContent = spelt(at, CLOCK);
    time.title = `${dayOf(at)}, ${spelt(at, { ...CLOCK, second: "2-digit", timeZoneName: "short" })}`;
  }
  for (const time of root.querySelectorAll("time[datetime]:not([data-since], .list time, body > .message time)")) {
    const at = new Date(time.dateTime);
    const whole = /, \d{4}|\d{4}, /.test(time.textContent) && time.textContent.includes("day,");
    if (!Number.isNaN(at.valueOf())) time.textContent = whole ? `${dayOf(at)}, ${spelt(at, CLOCK)}` : moment(at);
  }
  return root;
};
