// The settings of a queue: how each is shown, parsed, and passed to the command line.  The syntax is
// that of the command line (30s, 64KiB, none).

import { duration, readDuration, readSize, size } from "../kit/format.js";

const NONE = "none";

/** An optional value. */
export function orNone(kind) {
  return {
    ...kind,
    show: (value) => (value === null || value === undefined ? NONE : kind.show(value)),
    read: (text) => (text === NONE || text === "" ? null : kind.read(text)),
    hint: kind.hint ? `${kind.hint}, or none` : "or none",
  };
}

export function refuse(text, form) {
  throw new Error(`“${text}” is not ${form}`);
}

export const time = {
  show: (ms) => duration(ms) || "0s",
  read: (text) => readDuration(text) ?? refuse(text, "a time such as 500ms, 30s, 5m, 12h or 7d"),
};
export const number = {
  show: String,
  read: (text) => (/^\d+$/.test(text) ? Number(text) : refuse(text, "a whole number")),
};
const bytes = {
  show: (value) => size(value).replace(" ", "").replaceAll(",", ""),
  read: (text) => readSize(text) ?? refuse(text, "a size such as 64KiB or 1MiB"),
};
const name = { show: String, read: (text) => text };
export const yesNo = {
  show: (value) => (value ? "yes" : "no"),
  read: (text) => text === "yes",
  options: ["no", "yes"],
};
const choice = (...options) => ({ show: String, read: (text) => text, options });

const rate = {
  show: ({ limit, per_ms: per, burst }) => `${limit}/${duration(per)}${burst > 1 ? `,${burst}` : ""}`,
  read(text) {
    const found = /^(\d+)\/([^,]+)(?:,(\d+))?$/.exec(text.replaceAll(" ", ""));
    const per = found && readDuration(found[2]);
    if (!per) refuse(text, "a rate such as 10/1s or 600/1m,50");
    return { limit: Number(found[1]), per_ms: per, ...(found[3] && { burst: Number(found[3]) }) };
  },
  hint: "10/1s, or 600/1m,50 with a burst",
};

const backoff = {
  show(value) {
    if (value.type === "fixed") return `fixed:${duration(value.delay_ms)}`;
    if (value.type === "list") return `list:${value.delays_ms.map(duration).join(",")}`;
    const { first_ms: first, factor, max_ms: most, jitter } = value;
    return `exponential:${duration(first)},${factor},${duration(most)},${jitter}`;
  },
  read(text) {
    const [type, rest = ""] = text.replaceAll(" ", "").split(":");
    const parts = rest.split(",").filter(Boolean);
    if (type === "fixed" && parts.length === 1) return { type, delay_ms: time.read(parts[0]) };
    if (type === "list" && parts.length) return { type, delays_ms: parts.map(time.read) };
    if (type !== "exponential" || parts.length > 4) refuse(text, "a back-off");
    const [first, factor, most, jitter] = parts;
    return {
      type,
      ...(first && { first_ms: time.read(first) }),
      ...(factor && { factor: Number(factor) }),
      ...(most && { max_ms: time.read(most) }),
      ...(jitter && { jitter: Number(jitter) }),
    };
  },
  hint: "fixed:10s, list:1s,10s,5m or exponential:1s,2,1h,0.2 (first, factor, max, jitter)",
};

const lines = (isNumber) => ({
  rows: 3,
  isMany: true,
  show: (value) => Object.entries(value).map(([key, text]) => `${key}=${text}`).join("\n"),
  read(text) {
    const pairs = text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
      const at = isNumber ? line.lastIndexOf("=") : line.indexOf("=");
      if (at < 0) refuse(line, "NAME=VALUE");
      const value = line.slice(at + 1);
      return [line.slice(0, at), isNumber ? number.read(value) : value];
    });
    return Object.fromEntries(pairs);
  },
});

export const GROUPS = [
  {
    title: "Claims",
    settings: [
      { name: "lease_ms", flag: "lease", label: "Lease", kind: time, hint: "How long a claimed message is leased" },
      { name: "delay_ms", flag: "delay", label: "Delay", kind: time, hint: "How long new messages wait" },
      { name: "wait_ms", flag: "wait", label: "Wait", kind: orNone(time), hint: "Default wait of a claim" },
      { name: "redelivery", flag: "redelivery", label: "Redelivery", kind: choice("front", "back"), hint: "Where a returned message is put" },
      { name: "ordering", flag: "ordering", label: "Ordering", kind: choice("standard", "group"), isFixed: true, hint: "Cannot be changed later" },
    ],
  },
  {
    title: "Failures",
    settings: [
      { name: "max_attempts", flag: "max-attempts", label: "Attempts", kind: orNone(number), hint: "After this many, a message is dead" },
      { name: "max_crashes", flag: "max-crashes", label: "Crashes", kind: orNone(number), hint: "Crashed workers after which a message is dead" },
      { name: "backoff", flag: "backoff", label: "Back-off", kind: backoff, hint: "Delay after a failure" },
      { name: "dead_letter_queue", flag: "dead-letter-queue", label: "Dead-letter queue", kind: orNone(name), hint: "Where dead messages go" },
      { name: "retention_ms", flag: "retention", label: "Retention", kind: orNone(time), hint: "Unclaimed messages are cancelled after this time" },
    ],
  },
  {
    title: "Limits and fair share",
    settings: [
      { name: "max_messages", flag: "max-messages", label: "Messages", kind: orNone(number), hint: "Further sends are rejected" },
      { name: "max_body_bytes", flag: "max-body", label: "Body size", kind: orNone(bytes), hint: "64KiB, 1MiB" },
      { name: "max_leased", flag: "max-leased", label: "Leased at once", kind: orNone(number) },
      { name: "max_leased_per_group", flag: "max-leased-per-group", label: "Leased at once per group", kind: orNone(number) },
      { name: "rate", flag: "rate", label: "Rate of claims", kind: orNone(rate) },
      { name: "rate_per_group", flag: "rate-per-group", label: "Rate per group", kind: orNone(rate) },
      { name: "is_fair", flag: "fair", label: "Fair share", kind: yesNo, hint: "Weighted fair sharing between groups" },
      { name: "weights", flag: "weight", label: "Weights", kind: lines(true), hint: "GROUP=N, one per line; others have 1" },
    ],
  },
  {
    title: "Duplicates and labels",
    settings: [
      { name: "dedup_window_ms", flag: "dedup-window", label: "Dedup window", kind: time, hint: "How long dedup keys are remembered" },
      { name: "dedup_scope", flag: "dedup-scope", label: "Dedup scope", kind: choice("queue", "group") },
      { name: "dedup_by_content", flag: "dedup-by-content", label: "Dedup by content", kind: yesNo, hint: "A message without a dedup key gets the hash of its body" },
      { name: "labels", flag: "label", label: "Labels", kind: lines(false), hint: "NAME=VALUE, one per line" },
    ],
  },
];

export const SETTINGS = GROUPS.flatMap((group) => group.settings);

export function settingText(setting, settings) {
  return setting.kind.show(settings[setting.name]);
}

/** The differences between texts and settings: { changes, words }; throws for an invalid text. */
export function difference(texts, settings) {
  const changes = {};
  const words = [];
  for (const setting of SETTINGS) {
    const text = texts[setting.name];
    if (text === undefined || text.trim() === settingText(setting, settings).trim()) continue;
    try {
      changes[setting.name] = setting.kind.read(text.trim());
    } catch (error) {
      throw new Error(`${setting.label}: ${error.message}`);
    }
    words.push(...flags(setting, changes[setting.name]));
  }
  return { changes, words };
}

function flags(setting, value) {
  const flag = `--${setting.flag}`;
  if (!setting.kind.isMany) return [flag, setting.kind.show(value)];
  const pairs = Object.entries(value).flatMap(([key, text]) => [flag, `${key}=${text}`]);
  return pairs.length ? pairs : [flag, NONE];
}
