// Rendering of message bodies: indented JSON, plain texts, tables of texts.

import { parse } from "../server/api.js";
import { codeBlock } from "./dialog.js";
import { h } from "./dom.js";

const SHOWN_CHARS = 200_000; // more would make the page slow
const SHORT = 90;

/** Any JSON value as it is; large integers keep their digits. */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

export function bodyBlock(label, value) {
  const inside = typeof value === "string" ? readJson(value) : undefined;
  return [
    ...block(label, typeof value === "string" ? value : pretty(value)),
    // Many senders put JSON into a string.
    ...(inside === undefined ? [] : block(`${label}, parsed as JSON`, pretty(inside))),
  ];
}

function block(label, whole) {
  const isCut = whole.length > SHOWN_CHARS;
  const { element } = codeBlock(label, isCut ? whole.slice(0, SHOWN_CHARS) : whole);
  element.classList.add("body-block");
  return [
    element,
    isCut && h("p", { class: "soft" }, "Only the beginning is shown; the API returns the whole body."),
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

/** The beginning of a body on one line; undefined: it was pruned. */
export function glimpse(preview) {
  if (preview === undefined) return h("span", { class: "none" }, "pruned");
  const cut = preview.length > SHORT ? `${preview.slice(0, SHORT)}…` : preview;
  return h("code", { class: "glimpse", title: preview }, cut);
}
