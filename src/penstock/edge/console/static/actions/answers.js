// Answers from the pipeline's tables: sentences, one chart, and advice with its back-test.

import { actionButton } from "../kit/action.js";
import { part } from "../server/api.js";
import { makeBars } from "../charts/bars.js";
import { makeChart } from "../charts/chart.js";
import { h } from "../kit/dom.js";
import { about, compact, count, size } from "../kit/format.js";

const TONES = ["accent", "leased", "done", "dead", "waiting", "ready"];
const FORMATS = {
  count: compact,
  ms: (ms) => about(ms),
  hours: (hours) => `${compact(hours)} h`,
  percent: (percent) => `${compact(percent)} %`,
  bytes: size,
};
const ALL = "*";

export function answerPath(name) {
  return `/console/insights/answers/${part(name)}`;
}

export function sentences(answer) {
  return h("div", { class: "answer", "data-answer": answer.name }, answer.sentences.map((one) => h("p", null, one)));
}

/** The chart of an answer; null if there is nothing to draw. */
export function drawChart(given) {
  if (!given) return null;
  const series = given.series.map((name, place) => ({ name, tone: TONES[place % TONES.length] }));
  const format = formatOf(given.unit);
  if (given.kind === "bars") return makeBars({ title: given.title, series, points: given.points, format });
  const chart = makeChart({
    title: given.title,
    isWhole: false,
    isDuration: given.unit === "ms",
    format,
    series: series.map((one, place) => ({ ...one, value: (point) => point.values[place] })),
  });
  const points = given.points.map(({ name, values }) => ({ at: Date.parse(`${name}T00:00:00Z`), values }));
  chart.update(points, { from: points[0].at, to: points.at(-1).at });
  return chart.element;
}

/** All advice of an answer, each with its back-test and a button to apply it. */
export function adviceList(view, answer) {
  return answer.advice.map((advice) =>
    h(
      "article",
      { class: "advice", "data-advice": advice.target },
      h("h3", null, targetName(advice.target)),
      backtest(advice),
      actionButton(applyAction(answer, advice, () => view.again()), { isSmall: true }),
      advice.refusal && h("span", { class: "soft" }, ` ${advice.refusal}`),
    ),
  );
}

function applyAction(answer, advice, then) {
  const { target, settings, before } = advice;
  return {
    label: "Apply",
    reason: advice.refusal,
    title: answer.name === "fleet" ? `Apply to the fleet ${target}?` : target === ALL ? "Apply to all circuits?" : "Apply to this circuit?",
    text: explanation(answer.name, target),
    details: h("div", { class: "advice" }, backtest(advice)),
    request: () => ({ method: "POST", path: `/v1/answers/${part(answer.name)}/apply`, body: { target, settings, before } }),
    command: () => ["insights", "apply", answer.name, target],
    done: () => "The recommended settings are in force.",
    then,
  };
}

function explanation(question, target) {
  if (question === "fleet") return "These settings override those of the fleets file for this fleet. Its autoscaler picks them up within seconds.";
  if (target === ALL) return "They become the defaults of all circuits; overrides of individual circuits are kept.";
  return `For the circuit of ${target} these settings override the breaker's defaults.`;
}

/** Both settings, and what they would have done on the recorded days. */
function backtest({ settings, before, days, backtest: figures }) {
  const changes = Object.keys(settings).map((name) => [name.replaceAll("_", " "), settingText(name, before[name]), settingText(name, settings[name])]);
  const results = figures.map((one) => [one.name, formatOf(one.unit)(one.before), formatOf(one.unit)(one.after)]);
  const title = days === 1 ? "On 1 recorded day" : `On ${count(days)} recorded days`;
  return h(
    "table",
    { class: "backtest" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Settings"), h("th", { scope: "col" }, "in force"), h("th", { scope: "col" }, "recommended"))),
    h("tbody", null, changes.map(backtestRow)),
    h("tbody", null, h("tr", null, h("th", { scope: "rowgroup", colspan: 3 }, title)), results.map(backtestRow)),
  );
}

function backtestRow([name, before, after]) {
  return h("tr", { class: before === after ? "soft" : null }, h("th", { scope: "row" }, name), h("td", null, before), h("td", null, after));
}

function settingText(name, value) {
  if (value === undefined) return "–";
  return /_ms$/.test(name) ? about(value) : count(value);
}

function formatOf(unit) {
  return (value) => (value === null ? "–" : FORMATS[unit](value));
}

function targetName(target) {
  return target === ALL ? "all routes" : h("code", null, target);
}
