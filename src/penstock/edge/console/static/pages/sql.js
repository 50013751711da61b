// SQL on the lake and the tables of the pipeline.  The statement is part of the address.

import { call } from "../server/api.js";
import { makeField } from "../kit/action.js";
import { curl } from "../server/commands.js";
import { codeBlock } from "../kit/dialog.js";
import { h, replace } from "../kit/dom.js";
import { count } from "../kit/format.js";
import { card, notice, pageHead } from "../kit/parts.js";
import { makeTable } from "../kit/table.js";

const PATH = "/v1/sql";
const ROWS = 1_000;
const CATALOGUE = `SELECT table_name, list(column_name || ' ' || lower(data_type) ORDER BY ordinal_position)
  FROM information_schema.columns GROUP BY table_name ORDER BY table_name`;
const START = "SELECT queue, outcome, count(*) AS messages\n  FROM history\n GROUP BY ALL\n ORDER BY messages DESC";
const NUMBER = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DOUBLE|FLOAT|DECIMAL\([^)]*\))$/;

let catalogue = null; // kept while the console is open

export const sql = {
  path: "/console/sql",
  title: "SQL",
  nav: "SQL",
  icon: "sql",
  key: "l",

  async show(view) {
    const statement = view.query.get("q");
    const outcome = h("div", { class: "outcome", "aria-live": "polite" });
    const tables = h("div");
    replace(
      view.root,
      pageHead("SQL", { lead: "One SELECT on the lake and the tables that the pipeline computes, in the dialect of DuckDB. It can read nothing else and change nothing." }),
      form(view, statement ?? START),
      outcome,
      tables,
    );
    if (statement) {
      replace(outcome, notice("Running …"));
      replace(outcome, await result(statement));
    }
    if (!view.signal.aborted) replace(tables, await listed());
  },
};

function form(view, text) {
  const field = makeField({ name: "q", label: "Statement", rows: 6, value: text, hint: "Ctrl+Enter runs it." });
  const element = h("form", { class: "card statement" }, field.element, h("button", { type: "submit", class: "primary" }, "Run"));
  const run = () => {
    if (field.value()) view.setQuery({ q: field.value() });
  };
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  field.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  return element;
}

async function result(statement) {
  const body = { sql: statement, limit: ROWS };
  try {
    const found = await call("POST", PATH, body);
    return [
      h("div", { class: "wide-table" }, rowsOf(found)),
      found.is_cut && notice(`There are more rows; the first ${count(found.rows.length)} are shown.`),
      h("details", { class: "forms" }, h("summary", null, "Do the same from a shell"), codeBlock("HTTP API", curl({ method: "POST", path: PATH, body })).element),
    ];
  } catch (error) {
    return notice([error.message, " ", h("code", null, error.code)], "bad");
  }
}

function rowsOf({ columns, rows }) {
  return makeTable({
    caption: "Result",
    columns: columns.map(({ name, type }, place) => ({
      label: name,
      isMain: place === 0,
      isNumber: NUMBER.test(type),
      value: ({ row }) => cell(row[place]),
    })),
    rows: rows.map((row, index) => ({ row, index })),
    key: ({ index }) => `result ${index}`,
    empty: "No rows.",
  }).element;
}

function cell(value) {
  if (value === null) return h("span", { class: "none" }, "–");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

async function listed() {
  try {
    catalogue ??= await call("POST", PATH, { sql: CATALOGUE });
  } catch (error) {
    return notice(error.message, "warn");
  }
  return card(
    "Tables",
    catalogue.rows.map(([name, columns]) =>
      h("details", { "data-table": name }, h("summary", null, h("code", null, name)), h("p", { class: "soft" }, columns.join(", "))),
    ),
  );
}
