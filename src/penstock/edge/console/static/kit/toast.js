// Short messages about what just happened; screen readers announce them.

import { h } from "./dom.js";

const STAYS_MS = 6_000;
const MAX_TOASTS = 4;
let place = null;

export function say(text, { isError = false } = {}) {
  place ??= document.body.appendChild(
    h("div", { class: "toasts", role: "status", "aria-live": "polite" }),
  );
  const close = h("button", { class: "plain", "aria-label": "Dismiss" }, "×");
  const toast = h("div", { class: isError ? "toast bad" : "toast" }, h("span", null, text), close);
  close.addEventListener("click", () => toast.remove());
  while (place.children.length >= MAX_TOASTS) place.firstChild.remove();
  place.append(toast);
  if (!isError) setTimeout(() => toast.remove(), STAYS_MS);
}
