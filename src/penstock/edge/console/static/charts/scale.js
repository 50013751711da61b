// Axis scales with round numbers.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  10_000, 15_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY,
];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
});

/** Ticks from 0 to the first round number at or above `most`. */
export function valueMarks(most, { isWhole = true, marks = 4 } = {}) {
  const rough = (most || 1) / marks;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  if (isWhole) step = Math.max(1, Math.ceil(step));
  const found = [];
  for (let n = 0; n * step < most + step * 0.999 || n < 2; n += 1) found.push(n * step);
  return found;
}

/** The same for durations: 100 ms, 5 s, 10 min and the like. */
export function durationMarks(most) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, ...TIME_STEPS];
  const step = steps.find((one) => one >= Math.max(most, 4) / 4) ?? most / 4;
  const found = [];
  for (let n = 0; n * step < most + step * 0.999 || n < 2; n += 1) found.push(n * step);
  return found;
}

/** Instants at round times, about `marks` of them. */
export function timeMarks(from, to, marks) {
  const step = TIME_STEPS.find((one) => one >= (to - from) / marks) ?? 90 * DAY;
  const shift = new Date(from).getTimezoneOffset() * MINUTE; // days begin in the user's time zone
  const first = Math.ceil((from - shift) / step) * step + shift;
  const found = [];
  for (let at = first; at <= to; at += step) found.push(at);
  return { instants: found, step };
}

export function timeText(at, step) {
  if (step < MINUTE) return seconds.format(at);
  if (step >= DAY) return date.format(at);
  const local = new Date(at);
  return local.getHours() + local.getMinutes() === 0 ? date.format(at) : clock.format(at);
}

export function momentText(at, span) {
  return span < HOUR / 2 ? seconds.format(at) : full.format(at);
}
