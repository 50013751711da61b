// Global shortcuts: / to search, g and a letter to go to a page, ? for this list.

import { openDialog } from "../kit/dialog.js";
import { h } from "../kit/dom.js";

const SEQUENCE_MS = 1_500; // between g and its letter

export function listenToKeys(pages, { go, search }) {
  let isGoing = false;
  let timer = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (isGoing) {
      isGoing = false;
      clearTimeout(timer);
      const page = pages.find((one) => one.key === event.key);
      if (page) {
        event.preventDefault();
        go(page.href ?? page.path);
        return;
      }
    }
    if (event.key === "g") {
      isGoing = true;
      timer = setTimeout(() => (isGoing = false), SEQUENCE_MS);
    } else if (event.key === "/") {
      event.preventDefault();
      search();
    } else if (event.key === "?") {
      showKeys(pages);
    }
  });
}

export function showKeys(pages) {
  const row = (keys, text) =>
    h("div", null, h("dt", null, keys.map((key) => h("kbd", null, key))), h("dd", null, text));
  const list = h(
    "dl",
    { class: "keys" },
    row(["/"], "Search for a queue"),
    row(["Ctrl", "K"], "Search everything"),
    pages.filter((page) => page.key).map((page) => row(["g", page.key], page.nav ?? page.title)),
    row(["↑", "↓"], "Move through a table"),
    row(["Enter"], "Open the row"),
    row(["Space"], "Select the row"),
    row(["←", "→"], "Move through a graph"),
    row(["Esc"], "Close a dialog"),
    row(["?"], "This list"),
  );
  openDialog({ title: "Keys", children: [list] });
}

function isTyping(element) {
  return element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
}
