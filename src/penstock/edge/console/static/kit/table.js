// Tables with keyboard navigation: up, down, Home, End; Enter follows the first link of a row.
// On narrow screens each row becomes a card with the names of the columns.

import { h, replace } from "./dom.js";

/**
 * columns: { label, value(row), isNumber?, isMain?, isWide? (on a phone) }; key(row) identifies rows across updates.
 * A column with `sort` is a link in the head: sorting is { by, isAscending, hrefOf(column) }.
 * Returns { element, update(rows, empty?), selected() }; `empty` replaces the text of an empty table.
 */
export function makeTable({ caption, columns, rows = [], key, empty = "Nothing here.", onSelect, sorting = null }) {
  const body = h("tbody");
  const chosen = new Set();
  const all = onSelect ? selectAll(() => choose(body.dataset.all !== "yes")) : null;
  const head = h(
    "tr",
    null,
    all && h("th", { class: "pick" }, all),
    columns.map((column) =>
      h(
        "th",
        { scope: "col", class: column.isNumber ? "number" : null, "aria-sort": sortOf(column, sorting) },
        column.sort && sorting ? h("a", { href: sorting.hrefOf(column) }, column.label, sortMark(column, sorting)) : column.label,
      ),
    ),
  );
  const table = h(
    "table",
    { class: "rows" },
    h("caption", { class: "unseen" }, caption),
    h("thead", null, head),
    body,
  );
  body.addEventListener("keydown", walk);
  body.addEventListener("focusin", (event) => rove(body, event.target.closest("tr")));

  function update(next, nextEmpty = empty) {
    empty = nextEmpty;
    const focused = document.activeElement?.closest?.("tr")?.dataset.key;
    const hadFocus = body.contains(document.activeElement);
    const present = new Set(next.map((row) => String(key(row))));
    for (const old of chosen) if (!present.has(old)) chosen.delete(old);
    replace(body, next.length ? next.map(makeRow) : emptyRow());
    const first = body.querySelector("tr[data-key]");
    if (first) first.tabIndex = 0;
    if (hadFocus) {
      const same = [...body.children].find((row) => row.dataset.key === focused);
      (same ?? first)?.focus();
    }
    reportSelection();
  }

  function makeRow(row) {
    const name = String(key(row));
    return h(
      "tr",
      { tabindex: "-1", "data-key": name },
      onSelect && h("td", { class: "pick" }, pick(name)),
      columns.map((column) =>
        h(
          column.isMain ? "th" : "td",
          {
            class: column.isNumber ? "number" : column.isWide ? "wide" : null,
            scope: column.isMain ? "row" : null,
            "data-label": column.label,
          },
          h("div", { class: "cell" }, column.value(row)),
        ),
      ),
    );
  }

  function pick(name) {
    const box = h("input", { type: "checkbox", "aria-label": `Select ${name}` });
    box.checked = chosen.has(name);
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(name);
      else chosen.delete(name);
      reportSelection();
    });
    return box;
  }

  function choose(isAll) {
    for (const row of body.querySelectorAll("tr[data-key]")) {
      if (isAll) chosen.add(row.dataset.key);
      else chosen.delete(row.dataset.key);
      row.querySelector("td.pick input").checked = isAll;
    }
    reportSelection();
  }

  function reportSelection() {
    if (!onSelect) return;
    const isAll = chosen.size > 0 && chosen.size === body.querySelectorAll("tr[data-key]").length;
    body.dataset.all = isAll ? "yes" : "no";
    all.checked = isAll;
    onSelect([...chosen]);
  }

  function emptyRow() {
    const width = columns.length + (onSelect ? 1 : 0);
    return h("tr", { class: "empty" }, h("td", { colspan: width }, empty));
  }

  update(rows);
  return {
    element: h("div", { class: "table-box" }, table),
    update,
    selected: () => [...chosen],
  };
}

/** Links to the first and the next page; null if there is only one page. */
export function pager({ isFirst, first, next }) {
  if (isFirst && !next) return null;
  return h(
    "nav",
    { class: "pager", "aria-label": "More of this list" },
    isFirst ? null : h("a", { href: first, class: "button", rel: "first" }, "First page"),
    next ? h("a", { href: next, class: "button", rel: "next" }, "Next page") : h("span", null, "End"),
  );
}

function sortOf(column, sorting) {
  if (!sorting || column.sort !== sorting.by) return null;
  return sorting.isAscending ? "ascending" : "descending";
}

function sortMark(column, sorting) {
  return { ascending: " ↑", descending: " ↓" }[sortOf(column, sorting)] ?? null;
}

function selectAll(onChange) {
  const box = h("input", { type: "checkbox", "aria-label": "Select all on this page" });
  box.addEventListener("change", onChange);
  return box;
}

function walk(event) {
  const row = event.target.closest("tr");
  if (event.target !== row) return; // inputs and buttons handle their own keys
  const rows = [...row.parentElement.querySelectorAll("tr[data-key]")];
  const at = rows.indexOf(row);
  const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (step !== undefined) {
    rows[Math.max(0, Math.min(step, rows.length - 1))].focus();
    event.preventDefault();
  } else if (event.key === "Enter") {
    row.querySelector("a[href]")?.click();
  } else if (event.key === " ") {
    row.querySelector("td.pick input")?.click();
    event.preventDefault();
  }
}

function rove(body, row) {
  if (!row?.dataset.key) return;
  for (const other of body.querySelectorAll('tr[tabindex="0"]')) other.tabIndex = -1;
  row.tabIndex = 0;
}
