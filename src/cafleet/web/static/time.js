// Stored times are UTC text; the page shows them in the reader's own zone.

let skewMilliseconds = 0;

/** Correct ages by the difference between this computer's clock and the server's (its Date header). */
export function learnServerTime(dateHeader) {
  const server = Date.parse(dateHeader ?? "");
  if (!Number.isNaN(server)) {
    const skew = server - Date.now();
    skewMilliseconds = Math.abs(skew) > 5000 ? skew : 0;
  }
}

/** Whole seconds since `stamp`, never negative; null when there is none or it does not parse. */
export function secondsSince(stamp) {
  const then = Date.parse(stamp ?? "");
  if (Number.isNaN(then)) return null;
  return Math.max(0, Math.floor((Date.now() + skewMilliseconds - then) / 1000));
}

/** `45 s`, `12 min`, `3 h`, `5 d`. */
export function duration(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400 * 2) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** `3 min ago`, or `just now`; empty for no time. */
export function ago(stamp) {
  const seconds = secondsSince(stamp);
  if (seconds === null) return "";
  return seconds < 5 ? "just now" : `${duration(seconds)} ago`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
});
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

function parsed(stamp) {
  const date = new Date(stamp);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** Time of day; with the day where that is not today. The stored text where it does not parse. */
export function shortTime(stamp) {
  const date = parsed(stamp);
  if (date === null) return String(stamp);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : dayAndClock.format(date);
}

export function timeOfDay(stamp) {
  const date = parsed(stamp);
  return date === null ? String(stamp) : clock.format(date);
}

export function fullTime(stamp) {
  const date = parsed(stamp);
  return date === null ? String(stamp) : full.format(date);
}

/** The heading under which a time is listed: `Today`, `Yesterday`, or the date. */
export function dayName(stamp) {
  const date = parsed(stamp);
  if (date === null) return "Unknown day";
  const today = new Date();
  if (date.toDateString() === today.toDateString()) return "Today";
  today.setDate(today.getDate() - 1);
  return date.toDateString() === today.toDateString() ? "Yesterday" : day.format(date);
}
