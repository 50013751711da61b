// Nested values as names and texts, for lists of facts.

import { h } from "./dom.js";
import { duration } from "./format.js";

/** [["inputs.ready", "100"], …]; null values are left out. */
export function flat(value, start = "") {
  return Object.entries(value ?? {}).flatMap(([name, inner]) => {
    if (inner === null) return [];
    const isNested = typeof inner === "object" && !Array.isArray(inner);
    if (isNested) return flat(inner, `${start}${name}.`);
    return [[`${start}${name}`, /_ms$/.test(name) ? duration(inner) : text(inner)]];
  });
}

/** The same with short names, in words. */
export function inWords(value) {
  return flat(value).map(([name, text]) => [name.split(".").at(-1).replaceAll("_", " "), text]);
}

function text(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(4)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Render a text with `commands` in backticks. */
export function withCode(sentence) {
  return sentence.split("`").map((words, place) => (place % 2 ? h("code", null, words) : words));
}
