// Answers from the pipeline's tables; the tables themselves, and a plot of any of their numbers.

import { get, part } from "../server/api.js";
import { adviceList, answerPath, drawChart, sentences } from "../actions/answers.js";
import { makeChart } from "../charts/chart.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { compact, count, instant, size } from "../kit/format.js";
import { card, notice, pageHead } from "../kit/parts.js";
import { makeTable } from "../kit/table.js";

const ROWS = 1_000;
const SHOWN = 200;
const MAX_LINES = 6;
const TONES = ["accent", "leased", "done", "dead", "waiting", "ready"];
const INSTANT = /(^|_)at$/;
// Descriptions of the known tables; other tables are shown without one.
const ABOUT = {
  breaker_tuning: "Effects of alternative circuit breaker settings, and the recommended ones.",
  capacity: "Load, cost and storage per day, by queue and in total.",
  flapping_routes: "Circuits that changed their state, and how often.",
  known_workers: "The workers of each day, with their queues and releases.",
  lifecycle: "One row per ending of a message.",
  outage_cost: "Messages that outages made late, by queue and tenant.",
  poison_kinds: "Kinds whose messages fail, crash workers or die.",
  poison_messages: "Messages that fail, crash, loop or flap.",
  poison_releases: "Failing kinds by the release of the workers.",
  quality: "Checks of the loaded data.",
  quarantine: "Rows that no job reads because of their problems.",
  scaling_backtest: "Effects of alternative autoscaler profiles, and the recommended ones.",
  silent_workers: "Workers whose beats were missed, or whose leases expired.",
  starvation: "Queues and tenants that wait too long, and who keeps the workers busy.",
  rollups: "Finished messages per minute, hour or day, by queue, kind, route or worker.",
  slo: "Number of messages that met each target, per day.",
  slo_budget: "Remaining error budget of each target.",
  slo_offenders: "Queues and kinds that missed a target most often.",
};

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
        { label: "About", value: (one) => ABOUT[one.name] ?? "–" },
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
    const head = pageHead(name, { lead: ABOUT[name], back: { label: "Insights", href: "/console/insights" } });
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
        label,
        isNumber,
        isMain: index === 0,
        value: ({ row }) => cellText(label, row[place]),
      })),
      rows: found.rows.slice(0, SHOWN).map((row, index) => ({ row, index })),
      key: ({ index }) => `line ${index}`,
      empty: "No data for these days.",
    });
    replace(
      view.root,
      head,
      form(view, shape),
      plot(view, found, shape),
      h("div", { class: "wide-table" }, table.element),
      (found.is_cut || found.rows.length > SHOWN) && notice(`Only the newest ${count(Math.min(SHOWN, found.rows.length))} rows are shown; the files contain all of them.`),
    );
  },
};

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

function cellText(label, value) {
  if (value === null || value === undefined) return h("span", { class: "none" }, "–");
  if (typeof value === "number" && INSTANT.test(label)) return instant(value);
  return typeof value === "number" ? compact(value) : String(value);
}
