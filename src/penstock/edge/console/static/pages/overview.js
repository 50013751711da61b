// The overview: current figures, problems, and graphs.

import { get } from "../server/api.js";
import { makeChart } from "../charts/chart.js";
import { h, replace } from "../kit/dom.js";
import { brief, count, rate } from "../kit/format.js";
import { graphs } from "../charts/graphs.js";
import { onLive } from "../server/live.js";
import { age, card, figure, messageFigures, notice, pageHead } from "../kit/parts.js";
import { PROBLEMS, problemBadge } from "../kit/problems.js";
import { session } from "../server/session.js";
import { makeTable } from "../kit/table.js";

const PROBLEMS_EVERY_MS = 5_000;
const MAX_PROBLEMS = 10;
const LIVE_SPAN_MS = 3 * 60_000;
const recent = []; // the last minutes, kept across pages

export const overview = {
  path: "/console",
  title: "Overview",
  nav: "Overview",
  icon: "overview",
  key: "o",

  async show(view) {
    const figures = makeFigures();
    const problems = makeProblems();
    const chart = makeLiveChart();
    const seesAll = session().caller.queues.includes("*");
    replace(
      view.root,
      pageHead("Overview"),
      seesAll
        ? h("div", { class: "figures" }, Object.values(figures).map((one) => one.element))
        : notice("Your key is limited to some queues: totals of all queues are not shown."),
      h("section", { class: "card problem-list" }, h("div", { class: "card-head" }, h("h2", null, "Needs attention"), problems.more), problems.kinds, problems.table.element),
      seesAll && card(null, chart.element),
      seesAll && graphs(view, null, (points) => updateLatency(figures.latency, points)),
    );

    async function loadProblems() {
      try {
        problems.update(await get("/v1/problems", { limit: MAX_PROBLEMS }, { signal: view.signal }));
      } catch (error) {
        if (!view.signal.aborted) problems.fail(error); // the next poll retries
      }
    }
    const timer = setInterval(loadProblems, PROBLEMS_EVERY_MS);
    view.onLeave(() => clearInterval(timer));
    view.onLeave(
      onLive((news) => {
        if (!news.counts) return;
        remember(news);
        updateFigures(figures, news);
        const to = Date.parse(news.at);
        chart.update([...recent], { from: to - LIVE_SPAN_MS, to });
      }),
    );
    await loadProblems();
  },
};

function makeFigures() {
  const { failed, ...figures } = messageFigures();
  return {
    ...figures,
    latency: figure("Latency", { hint: "95th percentile of the time from send to claim" }),
    failed,
    workers: figure("Workers", { hint: "Registered and alive" }),
    circuits: figure("Circuits", { hint: "Open or half-open" }),
  };
}

function updateFigures(figures, news) {
  for (const state of ["ready", "waiting", "leased", "dead"]) figures[state].set(news.counts[state]);
  const { rates, totals } = news;
  figures.sent.set(rate(rates.sent), `${count(totals.sent)} in total`);
  figures.done.set(rate(rates.done), `${count(totals.done)} in total`);
  figures.failed.set(rate(rates.failed), `${count(totals.failed)} in total`);
  figures.workers.set(news.workers, "alive");
  figures.circuits.set(news.open_circuits, "open");
}

/** Latency of the last completed messages, possibly some time ago. */
function updateLatency(one, points) {
  const last = points.findLast((point) => point.wait_p95_ms !== undefined);
  if (last) one.set(brief(last.wait_p95_ms), `then ${brief(last.work_p95_ms)} work`);
  else one.set("–", "nothing done");
}

function remember(news) {
  const at = Date.parse(news.at);
  if (recent.at(-1)?.at >= at) return; // a repeated event, or a clock that does not advance
  recent.push({ at, ...news.rates });
  while (recent[0].at < at - LIVE_SPAN_MS) recent.shift();
}

function makeLiveChart() {
  return makeChart({
    title: "Right now",
    note: "messages per second, the last three minutes",
    isWhole: false,
    format: (value) => rate(value),
    series: [
      { name: "in", tone: "ready", value: (point) => point.sent, isArea: true },
      { name: "done", tone: "done", value: (point) => point.done },
      { name: "failed", tone: "dead", value: (point) => point.failed },
    ],
  });
}

/** How many queues have this problem, as a link to the list of them. */
function kindLink(kind, many) {
  if (!many) return null;
  const [text, tone] = PROBLEMS[kind];
  return h("a", { class: `badge ${tone}`, href: `/console/queues?problem=${kind}`, "data-kind": kind }, `${text}: ${count(many)} ${many === 1 ? "queue" : "queues"}`);
}

function makeProblems() {
  const more = h("span", { class: "soft" });
  const kinds = h("p", { class: "problem-kinds" });
  const table = makeTable({
    caption: "Queues that need attention",
    key: (one) => one.queue,
    empty: "Loading…", // only an answer of the server is an all-clear
    columns: [
      {
        label: "Queue",
        isMain: true,
        value: (one) => h("a", { href: `/console/queues/${encodeURIComponent(one.queue)}` }, one.queue),
      },
      { label: "What", isWide: true, value: (one) => h("span", null, one.problems.map(problemBadge)) },
      { label: "Ready", isNumber: true, value: (one) => count(one.counts.ready) },
      { label: "Dead", isNumber: true, value: (one) => count(one.counts.dead) },
      { label: "Oldest", isNumber: true, value: (one) => age(one.oldest_ready_at) },
    ],
  });
  let shown = 0;
  return {
    table,
    more,
    kinds,
    fail(error) {
      more.textContent = shown ? `Not up to date: ${error.message}` : "";
      if (!shown) table.update([], `Unknown: ${error.message}`);
    },
    update(report) {
      shown = report.problems.length;
      table.update(report.problems, "No problems.");
      more.textContent = report.is_cut ? `The worst ${MAX_PROBLEMS} are shown; each kind below lists all` : "";
      replace(kinds, Object.keys(PROBLEMS).map((kind) => kindLink(kind, report.queues_by_problem[kind])));
    },
  };
}
