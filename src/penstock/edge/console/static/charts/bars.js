// Groups of horizontal bars by name, with their values beside them.
//
// makeBars({ title, series: [{ name, tone }], points: [{ name, values }], format }) returns an element.

import { h, svg } from "../kit/dom.js";

export function makeBars({ title, series, points, format }) {
  const most = Math.max(0, ...points.flatMap(({ values }) => values.map((value) => value ?? 0))) || 1;
  return h(
    "figure",
    { class: "chart-figure", "data-chart": title },
    h(
      "figcaption",
      null,
      h("span", { class: "chart-title" }, title),
      h("div", { class: "legend" }, series.map(({ name, tone }) => h("span", { class: `key tone-${tone}` }, h("span", { class: "swatch" }), ` ${name}`))),
    ),
    h("dl", { class: "bars" }, points.map((point) => group(point, series, most, format))),
  );
}

function group({ name, values }, series, most, format) {
  return h(
    "div",
    { class: "bar-group", "data-bar": name },
    h("dt", null, name),
    values.map((value, place) =>
      h(
        "dd",
        { class: `tone-${series[place].tone}`, title: `${series[place].name}: ${format(value)}` },
        bar(value ?? 0, most),
        h("span", null, h("span", { class: "unseen" }, `${series[place].name}: `), format(value)),
      ),
    ),
  );
}

function bar(value, most) {
  const width = `${Math.max((100 * value) / most, 0.3).toFixed(2)}%`;
  return svg("svg", { class: "bar-line", "aria-hidden": "true" }, svg("rect", { width, height: "100%", rx: 2 }));
}
