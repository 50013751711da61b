// Answers from the pipeline's tables: sentences, one picture, and advice with its back-test.

import { actionButton } from "./action.js";
import { part } from "./api.js";
import { makeBars } from "./bars.js";
import { makeChart } from "./chart.js";
import { h } from "./dom.js";
import { about, compact, count, size } from "./format.js";
import { makeTable } from "./table.js";

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

/** The picture of an answer; null if there is nothing to draw. */
export function drawPicture(picture) {
  if (!picture) return null;
  const series = picture.series.map((name, place) => ({ name, tone: TONES[place % TONES.length] }));
  const format = formatOf(picture.unit);
  if (picture.kind === "bars") return makeBars({ title: picture.title, series, points: picture.points, format });
  const chart = makeChart({
    title: picture.title,
    isWhole: false,
    isDuration: picture.unit === "ms",
    format,
    series: series.map((one, place) => ({ ...one, value: (point) => point.values[place] })),
  });
  const points = picture.points.map(({ name, values }) => ({ at: Date.parse(`${name}T00:00:00Z`), values }));
  chart.update(points, { from: points[0].at, to: points.at(-1).at });
  return chart.element;
}

/** All advice of an answer, each with its back-test and a button to apply it; null if there is none. */
export function adviceTable(view, answer) {
  if (!answer.advice.length) return null;
  return makeTable({
    caption: "Advice",
    columns: [
      { label: "For", isMain: true, value: ({ target }) => targetName(target) },
      { label: "In force", value: ({ before }) => settingLines(before) },
      { label: "Recommended", value: ({ settings }) => settingLines(settings) },
      { label: "Back-test", isWide: true, value: (advice) => backtest(advice) },
      { label: "", value: (advice) => actionButton(applyAction(answer, advice, () => view.again()), { isSmall: true }) },
    ],
    rows: answer.advice,
    key: ({ target }) => `advice ${target}`,
  }).element;
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
  if (question === "fleet") return "These settings override those of the fleets file for this fleet. Its autoscaler takes them within seconds.";
  if (target === ALL) return "They become the defaults of all circuits; overrides of single circuits stay.";
  return `For the circuit of ${target} these settings override the breaker's defaults.`;
}

/** What both settings would have done on the recorded days. */
function backtest({ days, backtest: figures }) {
  return h(
    "table",
    { class: "backtest" },
    h("caption", null, days === 1 ? "On 1 recorded day" : `On ${count(days)} recorded days`),
    h("thead", null, h("tr", null, h("th"), h("th", { scope: "col" }, "in force"), h("th", { scope: "col" }, "recommended"))),
    h(
      "tbody",
      null,
      figures.map(({ name, unit, before, after }) =>
        h("tr", { class: before === after ? "soft" : null }, h("th", { scope: "row" }, name), h("td", null, formatOf(unit)(before)), h("td", null, formatOf(unit)(after))),
      ),
    ),
  );
}

function formatOf(unit) {
  return (value) => (value === null ? "–" : FORMATS[unit](value));
}

function targetName(target) {
  return target === ALL ? "all routes" : h("code", null, target);
}

function settingLines(values) {
  return Object.entries(values).map(([name, value]) => h("div", null, `${name.replaceAll("_", " ")}: ${/_ms$/.test(name) ? about(value) : count(value)}`));
}
