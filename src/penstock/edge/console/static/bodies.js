// What was sent, as people read it: JSON with its indentation, texts as they are, tables of texts.

import { parse } from "./api.js";
import { codeBlock } from "./dialog.js";
import { h } from "./dom.js";

const SHOWN_CHARS = 200_000; // more would only make the page slow
const SHORT = 90;

/** Any JSON value, exactly: large integers keep their digits. */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

export function bodyBlock(label, value) {
  const inside = typeof value === "string" ? readJson(value) : undefined;
  return [
    ...block(label, typeof value === "string" ? value : pretty(value)),
    // Many senders put JSON into a text.
    ...(inside === undefined ? [] : block(`${label}, read as JSON`, pretty(inside))),
  ];
}

function block(label, whole) {
  const isCut = whole.length > SHOWN_CHARS;
  const { element } = codeBlock(label, isCut ? whole.slice(0, SHOWN_CHARS) : whole);
  element.classList.add("body-block");
  return [
    element,
    isCut && h("p", { class: "soft" }, "This is only its beginning; the API gives all of it."),
  ];
}

function readJson(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** One line of it. */
export function glimpse(value) {
  if (value === undefined) return h("span", { class: "none" }, "not kept any more");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const cut = text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
  return h("code", { class: "glimpse" }, cut);
}
