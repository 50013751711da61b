// Formatting of numbers, times and sizes.

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];
const DURATION = /(\d+(?:\.\d+)?)(ms|d|h|m|s)/y;
const SIZES = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

// Times follow the server's clock: how far the browser's clock is ahead of it.
let aheadMs = 0;

export function learnTime(text) {
  const at = Date.parse(text);
  // The header has whole seconds; smaller differences mean nothing.
  if (!Number.isNaN(at) && Math.abs(Date.now() - aheadMs - at) > 2_000) aheadMs = Date.now() - at;
}

export function serverNow() {
  return Date.now() - aheadMs;
}

export function count(number) {
  return whole.format(number);
}

/** 12,345,678 as 12.3M: for cards and axes. */
export function compact(number) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    if (Math.abs(number) >= size) return few.format(number / (unit === "k" ? 1e3 : size)) + unit;
  }
  return Number.isInteger(number) ? whole.format(number) : few.format(number);
}

export function rate(perSecond) {
  if (!perSecond) return "0/s";
  if (perSecond < 0.1) return `${few.format(perSecond * 60)}/min`;
  return `${compact(perSecond)}/s`;
}

/** In the syntax of the command line: 1h30m, 250ms. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "none";
  if (ms < 1_000) return `${ms}ms`;
  let left = ms;
  let text = "";
  for (const [unit, size] of UNITS) {
    const many = Math.floor(left / size);
    if (many) text += `${many}${unit}`;
    left -= many * size;
  }
  return left ? `${text}${left}ms` : text;
}

/** The same with its two largest units only. */
export function about(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${few.format(ms / 1_000)} s`;
  const at = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[at];
  const next = UNITS[at + 1];
  const label = (name) => (name === "m" ? "min" : name);
  const text = `${Math.floor(ms / size)} ${label(unit)}`;
  const rest = next ? Math.floor((ms % size) / next[1]) : 0;
  return rest ? `${text} ${rest} ${label(next[0])}` : text;
}

/** The same, short enough for a card: 4m 10s, 33m. */
export function brief(ms) {
  if (ms < 10_000) return about(ms);
  const [many, unit, rest, next] = about(ms).split(" ");
  return rest && Number(many) < 10 ? `${many}${unit[0]} ${rest}${next[0]}` : `${many}${unit[0]}`;
}

/** Parse the output of `duration`; null if it is invalid. */
export function readDuration(text) {
  const trimmed = text.trim();
  let total = 0;
  DURATION.lastIndex = 0;
  while (DURATION.lastIndex < trimmed.length) {
    const found = DURATION.exec(trimmed);
    if (!found) return null;
    total += Number(found[1]) * (UNITS.find(([unit]) => unit === found[2])?.[1] ?? 1);
  }
  return trimmed ? Math.round(total) : null;
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "none";
  const unit = Object.keys(SIZES).findLast((name) => bytes >= SIZES[name]) ?? "B";
  return `${few.format(bytes / SIZES[unit])} ${unit}`;
}

/** Parse "64KiB" or "1000" as bytes; null if it is invalid. */
export function readSize(text) {
  const found = /^(\d+)\s*(B|KiB|MiB|GiB)?$/.exec(text.trim());
  return found ? Number(found[1]) * SIZES[found[2] ?? "B"] : null;
}

export function instant(text) {
  return day.format(new Date(text));
}

export function ago(text) {
  const passed = serverNow() - Date.parse(text);
  return passed < 0 ? `in ${about(-passed)}` : `${about(passed)} ago`;
}
