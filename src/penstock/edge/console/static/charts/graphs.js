// The four graphs of a queue, or of all queues: traffic, backlog, latency and failures, for the last
// hour to months; the range is in the URL.

import { get, part } from "../server/api.js";
import { makeChart } from "./chart.js";
import { h, replace } from "../kit/dom.js";
import { about, rate, serverNow } from "../kit/format.js";
import { changed } from "../shell/router.js";

const HOUR = 3_600_000;
const RANGES = [
  ["1h", HOUR, "1 hour"],
  ["6h", 6 * HOUR, "6 hours"],
  ["24h", 24 * HOUR, "24 hours"],
  ["7d", 7 * 24 * HOUR, "7 days"],
  ["30d", 30 * 24 * HOUR, "30 days"],
  ["90d", 90 * 24 * HOUR, "90 days"],
];
const AGAIN_MS = 20_000; // the server writes one point per minute

/**
 * queue: its name; null for all.  Returns an element that polls until the page is left and
 * reports the points each time.
 */
export function graphs(view, queue, onPoints = () => {}) {
  const range = RANGES.find(([name]) => name === view.query.get("range")) ?? RANGES[0];
  const charts = makeCharts();
  const element = h(
    "section",
    { class: "graphs", "aria-label": "Graphs" },
    h("div", { class: "section-head" }, h("h2", null, "Over time"), ranges(view, range[0])),
    h("div", { class: "grid" }, charts.map((chart) => h("div", { class: "card" }, chart.element))),
  );
  const problem = h("p", { class: "problem", role: "alert" });
  element.append(problem);
  const path = queue === null ? "/v1/samples" : `/v1/queues/${part(queue)}/samples`;

  async function load() {
    const to = serverNow();
    const from = to - range[1];
    try {
      const graph = await get(path, { from: new Date(from).toISOString() }, { signal: view.signal });
      const points = graph.points.map((point) => withRates(point, graph.step_ms));
      for (const chart of charts) chart.update(points, { from, to });
      onPoints(points);
      replace(problem);
    } catch (error) {
      if (error.name !== "AbortError") replace(problem, error.message);
    }
  }

  const timer = setInterval(load, AGAIN_MS);
  view.onLeave(() => clearInterval(timer));
  load();
  return element;
}

function ranges(view, current) {
  return h(
    "nav",
    { class: "ranges", "aria-label": "Time" },
    RANGES.map(([name, , text]) =>
      h(
        "a",
        {
          href: changed(view.query, { range: name === "1h" ? null : name }),
          title: `The last ${text}`,
          "aria-current": name === current ? "true" : null,
        },
        name,
      ),
    ),
  );
}

/** A point in the middle of its step, with rates per second. */
function withRates(point, stepMs) {
  const perSecond = Object.fromEntries(
    Object.entries(point.happened).map(([name, many]) => [name, (many * 1_000) / stepMs]),
  );
  const begins = Date.parse(point.at);
  const oldest = point.oldest_ready_at ? begins + stepMs - Date.parse(point.oldest_ready_at) : 0;
  return { ...point, at: begins + stepMs / 2, perSecond, oldestMs: Math.max(0, oldest) };
}

function makeCharts() {
  return [
    makeChart({
      title: "Throughput",
      note: "messages per second",
      isWhole: false,
      format: (value) => rate(value),
      series: [
        { name: "in", tone: "ready", value: (point) => point.perSecond.sent, isArea: true },
        { name: "done", tone: "done", value: (point) => point.perSecond.done },
      ],
    }),
    makeChart({
      title: "Backlog",
      note: "messages in the queue",
      series: [
        { name: "ready", tone: "ready", value: (point) => point.most_ready, isArea: true },
        { name: "waiting", tone: "waiting", value: (point) => point.waiting },
        { name: "leased", tone: "leased", value: (point) => point.leased },
        { name: "dead", tone: "dead", value: (point) => point.dead },
      ],
    }),
    makeChart({
      title: "Wait",
      note: "from send to claim, of completed messages",
      isDuration: true,
      format: (value) => about(value),
      series: [
        { name: "p50", tone: "ready", value: (point) => point.wait_p50_ms ?? null },
        { name: "p95", tone: "waiting", value: (point) => point.wait_p95_ms ?? null },
      ],
    }),
    makeChart({
      title: "Work",
      note: "from claim to completion",
      isDuration: true,
      format: (value) => about(value),
      series: [
        { name: "p50", tone: "done", value: (point) => point.work_p50_ms ?? null },
        { name: "p95", tone: "leased", value: (point) => point.work_p95_ms ?? null },
      ],
    }),
    makeChart({
      title: "Failures",
      note: "per second",
      isWhole: false,
      format: (value) => rate(value),
      series: [
        { name: "failed attempts", tone: "leased", value: (point) => point.perSecond.failed, isArea: true },
        { name: "died", tone: "dead", value: (point) => point.perSecond.dead },
        { name: "expired leases", tone: "waiting", value: (point) => point.perSecond.expired_leases },
      ],
    }),
  ];
}
