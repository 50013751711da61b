// Answers from the pipeline's tables; the tables themselves, and a plot of any of their numbers.

import { get, part } from "../server/api.js";
import { adviceList, answerPath, drawChart, sentences } from "../actions/answers.js";
import { makeBars } from "../charts/bars.js";
import { makeChart } from "../charts/chart.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { about, compact, count, instant, rate, size } from "../kit/format.js";
import { card, notice, pageHead } from "../kit/parts.js";
import { makeTable } from "../kit/table.js";
import { TABLES } from "../kit/insight_tables.js";

const ROWS = 1_000;
const SHOWN = matchMedia("(min-width: 641px)").matches ? 50 : 10; // rows; the files and the page SQL have all of them
const MAX_LINES = 6;
const TONES = ["accent", "leased", "done", "dead", "waiting", "ready"];
const MAX_BARS = 12;
const ALL = "*"; // a row about all queues or routes together
const UNITS = { ms: about, per_second: rate, ratio: (value) => `${compact(100 * value)} %` };
const INSTANT = /(^|_)at$/;

export const insights = {
  path: "/console/insights",
  title: "Insights",
  nav: "Insights",
  icon: "insights",
  key: "i",

  async show(view) {
    const answer = await get("/v1/insights", {}, { signal: view.signal });
    const head = pageHead("Insights", { lead: "Answers from recorded history." });
    if (!answer.tables.length) {
      replace(view.root, head, howTo(answer.folder));
      return;
    }
    const table = makeTable({
      caption: "Tables",
      columns: [
        { label: "Table", isMain: true, value: (one) => h("a", { href: `/console/insights/${part(one.name)}` }, one.name) },
        { label: "About", value: (one) => TABLES[one.name]?.about ?? "–" },
        { label: "Days", isNumber: true, value: (one) => count(one.days) },
        { label: "From", value: (one) => h("time", null, one.first_day) },
        { label: "To", value: (one) => h("time", null, one.last_day) },
        { label: "Size", isNumber: true, value: (one) => size(one.bytes) },
      ],
      rows: answer.tables,
      key: (one) => one.name,
    });
    if (answer.readiness === "no_reader") {
      replace(view.root, head, noReader(), table.element);
      return;
    }
    const { answers } = await get("/v1/answers", {}, { signal: view.signal });
    replace(view.root, head, answers.map(answerCard), card("Tables", h("div", { class: "table-list" }, table.element)));
  },
};

export const answerPage = {
  path: "/console/insights/answers/{question}",
  title: "Answer",
  under: "/console/insights",

  async show(view) {
    const days = { from_day: view.query.get("from_day"), to_day: view.query.get("to_day") };
    const found = await get(`/v1/answers/${part(view.params.question)}`, days, { signal: view.signal });
    const advice = adviceList(view, found);
    replace(
      view.root,
      pageHead(found.question, { back: { label: "Insights", href: "/console/insights" } }),
      h("section", { class: "card answer-card" }, sentences(found), drawChart(found.picture)),
      advice.length > 0 && card("Advice", advice),
      h("p", { class: "soft" }, "Tables: ", found.tables.map((name, place) => [place > 0 && ", ", h("a", { href: `/console/insights/${part(name)}` }, name)])),
    );
  },
};

function answerCard(answer) {
  const changes = answer.advice.filter(({ refusal }) => refusal === null).length;
  return h(
    "section",
    { class: "card answer-card" },
    h("h2", null, h("a", { href: answerPath(answer.name) }, answer.question)),
    sentences(answer),
    drawChart(answer.picture),
    changes > 0 && h("p", null, h("a", { href: answerPath(answer.name) }, changes === 1 ? "See the back-test and apply the advice" : `See the back-tests and apply the advice (${count(changes)})`)),
  );
}

export const insight = {
  path: "/console/insights/{table}",
  title: "Insight",
  under: "/console/insights",

  async show(view) {
    const name = view.params.table;
    const { readiness } = await get("/v1/insights", {}, { signal: view.signal });
    const known = TABLES[name] ?? {};
    const head = pageHead(known.title ?? name, {
      lead: [known.about, " Table ", h("code", null, name), "."],
      back: { label: "Insights", href: "/console/insights" },
    });
    if (readiness === "no_reader") {
      replace(view.root, head, noReader());
      return;
    }
    const asked = { from_day: view.query.get("from_day"), to_day: view.query.get("to_day"), limit: ROWS };
    const found = await get(`/v1/insights/${part(name)}`, asked, { signal: view.signal });
    const shape = shapeOf(found);
    const table = makeTable({
      caption: name,
      columns: shape.shown.map(({ label, place, isNumber }, index) => ({
        label: label.replaceAll("_", " "),
        isNumber,
        isMain: index === 0,
        value: ({ row }) => cell(label, row[place], found.columns),
      })),
      rows: found.rows.slice(0, SHOWN).map((row, index) => ({ row, index })),
      key: ({ index }) => `line ${index}`,
      empty: "No data for these days.",
    });
    const isOwnPlot = view.query.has("y") || view.query.has("by");
    replace(
      view.root,
      head,
      known.question && h("p", null, h("a", { href: answerPath(known.question) }, "The answer that is drawn from this table, with its advice")),
      isOwnPlot ? plot(view, found, shape) : chosenPlot(known.chart, found, shape),
      form(view, shape),
      h("div", { class: "wide-table" }, table.element),
      (found.is_cut || found.rows.length > SHOWN) && notice(`Only the newest ${count(Math.min(SHOWN, found.rows.length))} rows are shown; the files contain all of them.`),
    );
  },
};

/** The plot that this table is for: lines over the days, or bars of the largest values. */
function chosenPlot(chart, { columns, rows }, shape) {
  if (!chart) return null;
  const named = rows.map((row) => Object.fromEntries(columns.map((name, place) => [name, row[place]])));
  const usable = named.filter((row) => (chart.rows?.(row) ?? true) && typeof row[chart.y] === "number");
  const step = chart.step && mostFrequent(usable.map((row) => row[chart.step]));
  const counted = chart.step ? usable.filter((row) => row[chart.step] === step) : usable;
  if (!counted.length) return rows.length > 0 && notice(chart.none ?? "There is nothing to draw for these days.");
  const nameOf = (row) => chart.by.map((column) => chart.names?.[column]?.[row[column]] ?? row[column]).filter((text) => text !== null).map((text) => (text === ALL ? "all" : String(text))).join(" · ");
  const largestOf = new Map();
  for (const row of counted) largestOf.set(nameOf(row), Math.max(largestOf.get(nameOf(row)) ?? -Infinity, row[chart.y]));
  const most = [...largestOf].sort((one, other) => other[1] - one[1]);
  const format = UNITS[chart.unit] ?? compact;
  if (chart.isBars || !shape.time) {
    const points = most.slice(0, MAX_BARS).map(([name, value]) => ({ name, values: [value] }));
    return card(null, makeBars({ title: chart.title, series: [{ name: chart.y.replaceAll("_", " "), tone: TONES[0] }], points, format }));
  }
  const names = most.slice(0, MAX_LINES).map(([name]) => name);
  const points = new Map();
  for (const row of counted) {
    const name = nameOf(row);
    if (!names.includes(name)) continue;
    const at = instantOf(row[shape.time.label]);
    const point = points.get(at) ?? { at };
    point[`= ${name}`] = Math.max(point[`= ${name}`] ?? -Infinity, row[chart.y]);
    points.set(at, point);
  }
  const inOrder = [...points.values()].sort((one, other) => one.at - other.at);
  const drawn = makeChart({
    title: chart.title,
    note: step ? `per ${step}` : most.length > names.length ? `the ${names.length} largest of ${count(most.length)}` : null,
    isWhole: false,
    isDuration: chart.unit === "ms",
    format,
    series: names.map((name, index) => ({ name, tone: TONES[index], value: (point) => point[`= ${name}`] ?? null })),
  });
  drawn.update(inOrder, { from: inOrder[0].at, to: inOrder.at(-1).at });
  return card(null, drawn.element);
}

function mostFrequent(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0];
}

function howTo(folder) {
  return card(
    "There are no tables yet",
    h("p", null, "The pipeline computes tables from the history that the archiver writes: throughput and latency, targets, poison messages, capacity. To see them here:"),
    h("pre", { class: "block" }, "penstock serve --set archive.enabled=true\npenstock pipeline run --lake data/lake"),
    h("p", null, "This server reads them from ", h("code", null, folder), "; the setting ", h("code", null, "insights.folder"), " changes the folder."),
  );
}

function noReader() {
  return notice("The tables exist, but this server cannot read them: install Parquet support (pip install 'penstock-queue[archive]') and restart it.", "warn");
}

/** The columns that are numbers, texts and instants; nested columns are not shown. */
function shapeOf({ columns, rows }) {
  const all = columns.map((label, place) => {
    const values = rows.map((row) => row[place]).filter((value) => value !== null && value !== undefined);
    const isNested = values.some((value) => typeof value === "object");
    const isNumber = values.length > 0 && values.every((value) => typeof value === "number");
    return { label, place, isNested, isNumber, isInstant: isNumber && INSTANT.test(label) };
  });
  const flat = all.filter(({ isNested }) => !isNested);
  return {
    shown: flat,
    numbers: flat.filter(({ isNumber, isInstant }) => isNumber && !isInstant),
    texts: flat.filter(({ isNumber, label }) => !isNumber && label !== "dt"),
    time: flat.find(({ label }) => label === "at") ?? flat.find(({ label }) => label === "dt"),
  };
}

function form(view, shape) {
  return filterForm(view, [
    { name: "y", label: "Plot", options: shape.numbers.map(({ label }) => label) },
    { name: "by", label: "One line per", options: [["", "–"], ...shape.texts.map(({ label }) => label)] },
    { name: "from_day", label: "From day", type: "date" },
    { name: "to_day", label: "To day", type: "date" },
  ], { submit: "Show" });
}

function plot(view, { rows }, shape) {
  const y = shape.numbers.find(({ label }) => label === view.query.get("y")) ?? shape.numbers[0];
  const wanted = view.query.has("by") || view.query.has("y") ? view.query.get("by") : shape.texts.at(-1)?.label;
  const by = shape.texts.find(({ label }) => label === wanted);
  if (!y || !shape.time) return null;
  const lines = largest(rows, y, by);
  const points = new Map();
  for (const row of rows) {
    const at = instantOf(row[shape.time.place]);
    const line = by ? String(row[by.place]) : y.label;
    if (row[y.place] === null || !lines.includes(line)) continue;
    if (!points.has(at)) points.set(at, { at });
    // Of several rows with the same instant and line, the largest is shown.
    const known = points.get(at)[`= ${line}`];
    points.get(at)[`= ${line}`] = known === undefined ? row[y.place] : Math.max(known, row[y.place]);
  }
  const inOrder = [...points.values()].sort((one, other) => one.at - other.at);
  if (inOrder.length < 2) return notice("A plot needs at least two points.");
  const chart = makeChart({
    title: y.label,
    note: by ? `by ${by.label}` : null,
    isWhole: false,
    series: lines.map((line, index) => ({ name: line, tone: TONES[index], value: (point) => point[`= ${line}`] ?? null })),
  });
  chart.update(inOrder, { from: inOrder[0].at, to: inOrder.at(-1).at });
  return card(null, chart.element);
}

/** The lines with the largest values; more would be illegible. */
function largest(rows, y, by) {
  if (!by) return [y.label];
  const most = new Map();
  for (const row of rows) {
    const line = String(row[by.place]);
    most.set(line, Math.max(most.get(line) ?? -Infinity, row[y.place] ?? -Infinity));
  }
  return [...most].sort((one, other) => other[1] - one[1]).slice(0, MAX_LINES).map(([line]) => line);
}

function instantOf(value) {
  return typeof value === "number" ? value : Date.parse(`${value}T00:00:00Z`);
}

/** A value in its unit, with a link to what it names. */
function cell(label, value, columns) {
  if (value === null || value === undefined || value === "") return h("span", { class: "none" }, "–");
  if (typeof value === "number") {
    if (INSTANT.test(label)) return instant(value);
    if (/_ms$/.test(label)) return about(value);
    if (/bytes$/.test(label)) return size(value);
    return compact(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value);
  if (text === ALL) return "all";
  if (label === "queue") return h("a", { href: `/console/queues/${part(text)}` }, text);
  if (label === "id" && columns.includes("message_no")) return h("a", { class: "id", href: `/console/messages/${part(text)}`, title: text }, `…${text.slice(-12)}`);
  if (label === "id" && columns.includes("flow_no")) return h("a", { class: "id", href: `/console/flows/${part(text)}`, title: text }, `…${text.slice(-12)}`);
  if (label === "worker") return h("a", { class: "id", href: `/console/workers/${part(text)}`, title: text }, text.length > 20 ? `…${text.slice(-12)}` : text);
  return h("span", { title: text.length > 40 ? text : null }, text);
}
