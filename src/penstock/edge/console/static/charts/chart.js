// Charts in SVG: lines or areas over time, with axes, a legend that toggles series, and a read-out at
// the pointer or, with the arrow keys, at the focused point.
//
// makeChart({ title, series: [{ name, tone, value(point), isArea? }], format?, isDuration?, isWhole? })
// returns { element, update(points, { from, to }) }; a point has `at` in ms.  A null value is a gap.

import { h, replace, svg } from "../kit/dom.js";
import { compact } from "../kit/format.js";
import { durationMarks, momentText, timeMarks, timeText, valueMarks } from "./scale.js";

const HEIGHT = 190;
const EDGE = { top: 10, right: 12, bottom: 24, left: 52 };

export function makeChart({ title, series, format = compact, isDuration = false, isWhole = true, note = null }) {
  const hidden = new Set();
  const drawing = svg("svg", { class: "chart", role: "img", tabindex: "0" });
  const readout = h("div", { class: "readout", hidden: true });
  const legend = h("div", { class: "legend" }, series.map(legendEntry));
  const box = h("div", { class: "chart-box" }, drawing, readout);
  const element = h(
    "figure",
    { class: "chart-figure", "data-chart": title },
    h("figcaption", null, h("span", { class: "chart-title" }, title, note && h("small", null, ` ${note}`)), legend),
    box,
  );
  let points = [];
  let span = null; // until the first update
  let width = 0;
  let place = null; // index of the point that is read out

  new ResizeObserver(([entry]) => {
    const next = Math.round(entry.contentRect.width);
    if (next === width) return;
    width = next;
    draw();
  }).observe(box);
  drawing.addEventListener("pointermove", (event) => readAt(nearest(event.offsetX)));
  drawing.addEventListener("pointerleave", () => readAt(null));
  drawing.addEventListener("blur", () => readAt(null));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !points.length) return;
    event.preventDefault();
    const from = place ?? (step > 0 ? -1 : points.length);
    readAt(Math.max(0, Math.min(points.length - 1, from + step)));
  });

  function legendEntry(one) {
    const button = h(
      "button",
      { type: "button", class: `key tone-${one.tone}`, "aria-pressed": "true" },
      h("span", { class: "swatch" }),
      one.name,
    );
    button.addEventListener("click", () => {
      if (hidden.has(one)) hidden.delete(one);
      else hidden.add(one);
      button.setAttribute("aria-pressed", String(!hidden.has(one)));
      draw();
    });
    return button;
  }

  function visibleSeries() {
    return series.filter((one) => !hidden.has(one));
  }

  function scales() {
    const most = Math.max(0, ...visibleSeries().flatMap((one) => points.map((point) => one.value(point) ?? 0)));
    const marks = isDuration ? durationMarks(most) : valueMarks(most, { isWhole });
    const top = marks.at(-1);
    const across = width - EDGE.left - EDGE.right;
    const up = HEIGHT - EDGE.top - EDGE.bottom;
    return {
      marks,
      x: (at) => EDGE.left + (across * (at - span.from)) / (span.to - span.from || 1),
      y: (value) => EDGE.top + up * (1 - value / top),
    };
  }

  function draw() {
    if (width < 60 || !span) return;
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.setAttribute("aria-label", summary());
    const { marks, x, y } = scales();
    const bottom = y(0);
    const times = timeMarks(span.from, span.to, Math.max(2, Math.floor(width / 110)));
    replace(
      drawing,
      marks.map((mark) => [
        svg("line", { class: mark ? "grid" : "axis", x1: EDGE.left, x2: width - EDGE.right, y1: y(mark), y2: y(mark) }),
        svg("text", { class: "mark", x: EDGE.left - 8, y: y(mark) + 4, "text-anchor": "end" }, format(mark)),
      ]),
      times.instants.map((at) =>
        svg("text", { class: "mark", x: x(at), y: HEIGHT - 6, "text-anchor": anchor(x(at)) }, timeText(at, times.step)),
      ),
      visibleSeries().map((one) => [
        one.isArea && svg("path", { class: `area tone-${one.tone}`, d: areaOf(one, x, y, bottom) }),
        svg("path", { class: `line tone-${one.tone}`, d: lineOf(one, x, y) }),
      ]),
      points.length === 0 &&
        svg("text", { class: "nothing", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "No data for this period"),
      cursor(x, y, bottom),
    );
    readOut(x);
  }

  function anchor(at) {
    return at > width - 40 ? "end" : "middle";
  }

  /** Split the points into runs without a gap. */
  function runs(one) {
    const found = [];
    let run = [];
    for (const point of points) {
      const value = one.value(point);
      if (value === null || value === undefined) {
        if (run.length) found.push(run);
        run = [];
      } else run.push([point.at, value]);
    }
    return run.length ? [...found, run] : found;
  }

  function lineOf(one, x, y) {
    return runs(one).map((run) => pathOf(run, x, y)).join("");
  }

  function areaOf(one, x, y, bottom) {
    return runs(one)
      .map((run) => `${pathOf(run, x, y)}L${x(run.at(-1)[0])} ${bottom}L${x(run[0][0])} ${bottom}Z`)
      .join("");
  }

  function pathOf(run, x, y) {
    // A single point has no length: draw it as a dot.
    if (run.length === 1) return `M${x(run[0][0]) - 1} ${y(run[0][1])}h2`;
    return run.map(([at, value], n) => `${n ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  }

  function cursor(x, y, bottom) {
    const point = points[place];
    if (!point) return null;
    return svg(
      "g",
      null,
      svg("line", { class: "cursor", x1: x(point.at), x2: x(point.at), y1: EDGE.top, y2: bottom }),
      visibleSeries().map((one) => {
        const value = one.value(point);
        return value == null ? null : svg("circle", { class: `dot tone-${one.tone}`, cx: x(point.at), cy: y(value), r: 3.5 });
      }),
    );
  }

  function nearest(at) {
    if (!points.length || !span) return null;
    const { x } = scales();
    let best = 0;
    points.forEach((point, n) => {
      if (Math.abs(x(point.at) - at) < Math.abs(x(points[best].at) - at)) best = n;
    });
    return best;
  }

  function readAt(next) {
    if (next === place) return;
    place = next;
    draw();
  }

  function readOut(x) {
    const point = points[place];
    readout.hidden = !point;
    if (!point) return;
    replace(
      readout,
      h("b", null, momentText(point.at, span.to - span.from)),
      visibleSeries().map((one) => {
        const value = one.value(point);
        return h("span", { class: `tone-${one.tone}` }, h("span", { class: "swatch" }), `${one.name} `, h("b", null, value == null ? "–" : format(value)));
      }),
    );
    const left = x(point.at);
    const isRight = left > width / 2;
    readout.style.setProperty("left", isRight ? "auto" : `${left + 12}px`);
    readout.style.setProperty("right", isRight ? `${width - left + 12}px` : "auto");
  }

  function summary() {
    const last = points.at(-1);
    if (!last) return `${title}: no data`;
    const values = series.map((one) => `${one.name} ${one.value(last) == null ? "unknown" : format(one.value(last))}`);
    return `${title}, at the end: ${values.join(", ")}`;
  }

  return {
    element,
    update(next, nextSpan) {
      points = next;
      span = nextSpan;
      if (place !== null && place >= points.length) place = null;
      draw();
    },
  };
}
