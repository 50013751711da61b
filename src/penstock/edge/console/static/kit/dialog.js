// Modal dialogs.  The browser's own <dialog> traps the focus and handles Escape.

import { h } from "./dom.js";

/** Returns { element, close }; closing removes it from the page. */
export function openDialog({ title, children, onClose, wide = false }) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const cross = h("button", { type: "button", class: "plain cross", "aria-label": "Close" }, "×");
  const element = h(
    "dialog",
    { class: wide ? "wide" : null, "aria-labelledby": "dialog-title" },
    h("header", null, heading, cross),
    ...children,
  );
  cross.addEventListener("click", () => element.close());
  element.addEventListener("close", () => {
    element.remove();
    onClose?.();
  });
  // A click outside the box targets the dialog itself, one inside targets a child.
  element.addEventListener("click", (event) => {
    if (event.target === element || event.target.closest("a[href]")) element.close();
  });
  document.body.append(element);
  element.showModal();
  return { element, close: () => element.close() };
}

/** Code with a copy button. */
export function codeBlock(label, text) {
  const code = h("code", null, text);
  const button = h("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // pages without TLS cannot write to the clipboard
      button.textContent = "Selected";
    }
  });
  const element = h(
    "div",
    { class: "code-block", "data-form": label },
    h("div", { class: "code-head" }, h("span", null, label), button),
    h("pre", { tabindex: "0" }, code),
  );
  return { element, set: (next) => (code.textContent = next) };
}
