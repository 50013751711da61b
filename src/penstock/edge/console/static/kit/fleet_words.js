// Decisions of the autoscaler as sentences, and as a graph.

import { makeChart } from "../charts/chart.js";
import { h } from "./dom.js";
import { about, count, rate } from "./format.js";

const WHY = {
  starting: "a worker is still starting",
  first_message: "messages wait and no worker runs",
  gathering: "samples are still being gathered",
  backlog: "the backlog needs more workers",
  oldest: "the oldest message waits longer than the goal",
  less_needed: "fewer would do",
  idle: "nothing waits",
  busy: "only leased messages are left",
  no_rate_yet: "no rate of consumption is known yet",
  steady: "the number is right",
  pressure: "the machines are under pressure",
  count_changed: "the number of workers changed meanwhile",
  cooling_down: "the last change was too recent",
  replicas_missing: "requested workers are missing",
  making_room: "a fleet of a higher priority needs the room",
  circuit_open: "the circuit of its route is open",
  circuit_half_open: "the circuit of its route lets single probes through",
  steadying: "kept for a while so that the number does not flap",
};

/** "5 stay: 3 would do, kept for a while so that the number does not flap (ready 90, in 2.5/s, out 2.1/s)" */
export function sentence(decision) {
  const { change = 0, wanted, reason } = decision;
  const number = wanted === undefined ? "" : count(wanted);
  const act = change > 0 ? `${count(change)} more, ${number} in all` : change < 0 ? `${count(-change)} fewer, ${number} in all` : number ? `${number} stay` : "no change";
  const recommended = decision.recommended;
  const asked = change === 0 && recommended ? `${recommended > 0 ? `${count(recommended)} more` : `${count(-recommended)} fewer`} would do, ` : "";
  const facts = factsOf({ ...decision, ...decision.inputs });
  return `${act}: ${asked}${WHY[reason] ?? String(reason ?? "unknown").replaceAll("_", " ")}${facts ? ` (${facts})` : ""}`;
}

function factsOf(inputs) {
  const given = (name, text) => (typeof inputs[name] === "number" ? text(inputs[name]) : null);
  return [
    given("running", (many) => `${count(many)} running`),
    given("ready", (many) => `ready ${count(many)}`),
    given("backlog", (many) => (many === inputs.ready ? null : `backlog ${count(many)}`)),
    given("oldest_ms", (ms) => `oldest ${about(ms)}`),
    given("publish_rate", (many) => `in ${rate(many)}`),
    given("consume_rate", (many) => `out ${rate(many)}`),
  ].filter(Boolean).join(", ");
}

/** Wanted and running workers, and the backlog, over the shown decisions; null for fewer than two. */
export function decisionGraphs(decisions) {
  const points = decisions.map(({ at, decision }) => ({ ...decision, ...decision.inputs, at: Date.parse(at) })).reverse();
  if (points.length < 2) return null;
  const span = { from: points[0].at, to: points.at(-1).at };
  const workers = makeChart({
    title: "Workers",
    series: [
      { name: "wanted", tone: "accent", value: (point) => point.wanted ?? null },
      { name: "running", tone: "done", value: (point) => point.running ?? null },
    ],
  });
  const backlog = makeChart({
    title: "Backlog",
    note: "messages",
    series: [{ name: "backlog", tone: "ready", isArea: true, value: (point) => point.backlog ?? point.ready ?? null }],
  });
  for (const chart of [workers, backlog]) chart.update(points, span);
  return h("div", { class: "grid" }, [workers, backlog].map((chart) => h("div", { class: "card" }, chart.element)));
}
