// Routes and their circuits: states, held queues, and closing and opening circuits by hand.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { makeChart } from "../charts/chart.js";
import { changeSettings, settingFacts, settingWords } from "../actions/circuit_settings.js";
import { h, replace } from "../kit/dom.js";
import { count, duration } from "../kit/format.js";
import { onLive } from "../server/live.js";
import { badge, card, facts, notice, pageHead, when } from "../kit/parts.js";
import { session } from "../server/session.js";
import { makeTable } from "../kit/table.js";
import { flat, withCode } from "../kit/values.js";

const TONES = { closed: "good", open: "bad", half_open: "warn" };
const WORDS = { half_open: "half-open" };
const ORDER = { open: 0, half_open: 1, closed: 2 };
const SHOWN = 100;

export const circuits = {
  path: "/console/circuits",
  title: "Routes and circuits",
  nav: "Circuits",
  icon: "routes",
  key: "c",

  async show(view) {
    const ask = () => get("/v1/circuits", {}, { signal: view.signal });
    if (!session().caller.queues.includes("*")) return showOwn(view, (await ask()).circuits);
    const [{ routes }, known, breaker, own] = await Promise.all([
      get("/v1/routes", {}, { signal: view.signal }),
      ask(),
      get("/v1/breaker", {}, { signal: view.signal }),
      get("/v1/circuits/settings", {}, { signal: view.signal }),
    ]);
    const table = makeTable({
      caption: "Circuits",
      columns: columns(view),
      rows: worstFirst(known.circuits),
      key: (circuit) => circuit.hash,
      empty: "No circuits yet: a circuit is created with the first delivery of its route.",
    });
    const isAnyOpen = known.circuits.some(({ state }) => state !== "closed");
    replace(
      view.root,
      pageHead("Routes and circuits", { actions: [closeAll(view, known.circuits, isAnyOpen), unholdAll(view, known.held)] }),
      heldByRemoved(known) > 0 && notice(`Removed circuits still hold ${count(heldByRemoved(known))} queues, which are released gradually.`, "warn"),
      !breaker.circuit_check_enabled && !own.circuits.some(({ overrides }) => overrides.circuit_check_enabled) && notice(withCode("The circuit breaker is switched off: everything is tried. `penstock circuits set circuit_check_enabled=true` switches it on."), "warn"),
      card("Circuits", table.element),
      card("Routes", routeTable(routes, new Set(known.circuits.map(({ hash }) => hash))).element),
      card("Settings of the breaker", facts(flat(breaker))),
      own.circuits.length > 0 && card("Circuits with settings of their own", ownTable(view, own.circuits, breaker).element),
    );
    let seen = null;
    const askAgain = async (open) => {
      table.update(worstFirst((await ask()).circuits));
      seen = open;
    };
    view.onLeave(
      onLive(({ open_circuits: open }) => {
        if (seen === null) seen = open;
        else if (seen !== open) askAgain(open).catch(() => {}); // the next update retries
      }),
    );
  },
};

export const circuit = {
  path: "/console/circuits/{circuit}",
  title: "Circuit",
  under: "/console/circuits",

  async show(view) {
    const hash = view.params.circuit;
    const path = `/v1/circuits/${part(hash)}`;
    const [found, { minutes }, history, own, breaker] = await Promise.all([
      get(path, {}, { signal: view.signal }),
      get(`${path}/samples`, {}, { signal: view.signal }),
      get("/v1/facts", { subject: hash, limit: SHOWN }, { signal: view.signal }),
      get(`${path}/settings`, {}, { signal: view.signal }),
      get("/v1/breaker", {}, { signal: view.signal }),
    ]);
    replace(
      view.root,
      pageHead(found.pattern, {
        badges: [stateOf(found), found.is_forced && badge("forced", "warn")].filter(Boolean),
        actions: [closeButton(view, found), openButton(view, found), unholdButton(view, found), actionButton(changeSettings(own, breaker, () => view.again()))],
        lead: h("code", { class: "id" }, found.hash),
        back: { label: "Routes and circuits", href: "/console/circuits" },
      }),
      h(
        "div",
        { class: "grid" },
        card("Circuit", facts(about(found))),
        card("Held queues", heldQueues(found)),
      ),
      card("Failure ratio over time", ratioChart(minutes, history.facts)),
      card("What happened", changes(history.facts)),
      card("Settings", facts(settingFacts(own))),
    );
  },
};

/** For a key limited to some queues: hide routes and settings, which concern all queues. */
function showOwn(view, list) {
  const table = makeTable({
    caption: "Circuits",
    columns: [{ label: "Circuit", isMain: true, value: (found) => found.pattern }, ...columns(view).slice(1, -1)],
    rows: worstFirst(list),
    key: (circuit) => circuit.hash,
    empty: "No circuit holds any of your queues.",
  });
  replace(
    view.root,
    pageHead("Routes and circuits"),
    notice("Your key is limited to some queues: only circuits that hold one of them are shown."),
    card("Circuits", table.element),
  );
}

function worstFirst(list) {
  return [...list].sort((one, other) => ORDER[one.state] - ORDER[other.state] || one.pattern.localeCompare(other.pattern));
}

function stateOf(found) {
  return badge(WORDS[found.state] ?? found.state, TONES[found.state]);
}

/** The number of queues held by circuits whose rules were removed. */
function heldByRemoved({ held, circuits: list }) {
  return held - list.reduce((sum, one) => sum + one.held, 0);
}

function columns(view) {
  return [
    { label: "Circuit", isMain: true, value: (found) => [h("a", { href: `/console/circuits/${part(found.hash)}` }, found.pattern), found.is_forced && [" ", badge("forced", "warn")]] },
    { label: "State", value: stateOf },
    { label: "Failures", isNumber: true, value: (found) => `${found.fail_ratio} %` },
    { label: "Held queues", isNumber: true, value: (found) => h("span", { class: found.held ? "dead" : "none" }, count(found.held)) },
    { label: "Open since", value: (found) => when(found.opened_at) },
    { label: "Acts", isWide: true, value: (found) => h("span", { class: "row-acts" }, closeButton(view, found, { isSmall: true }), openButton(view, found, { isSmall: true }), found.held > 0 && unholdButton(view, found, { isSmall: true })) },
  ];
}

function closeButton(view, found, options) {
  const reason = found.state === "closed" ? "It is closed." : null;
  return actionButton({
    label: "Close",
    role: "operate",
    reason,
    title: "Close this circuit?",
    text: `Requests of ${found.pattern} are tried again. Its outcomes are cleared, and its queues are released one after the other.`,
    count: async () => found.held,
    noun: "held queue",
    request: () => ({ method: "POST", path: `/v1/circuits/${part(found.hash)}/close` }),
    command: () => ["circuits", "close", found.hash],
    done: () => "The circuit is closed.",
    then: () => view.again(),
  }, options);
}

function openButton(view, found, options) {
  const reason = found.is_forced ? "It is already forced open." : null;
  return actionButton({
    label: "Force open",
    role: "operate",
    isDanger: true,
    reason,
    title: "Force this circuit open?",
    text: `No request of ${found.pattern} is tried until it is closed by hand. Queued requests stay queued.`,
    request: () => ({ method: "POST", path: `/v1/circuits/${part(found.hash)}/open` }),
    command: () => ["circuits", "open", found.hash],
    done: () => "The circuit is forced open.",
    then: () => view.again(),
  }, options);
}

function unholdButton(view, found, options) {
  const again = found.state === "closed" ? "" : ` The circuit is ${WORDS[found.state] ?? found.state}: their next requests ask it again. Close it first to let them through.`;
  return actionButton({
    label: "Unhold",
    role: "operate",
    reason: found.held ? null : "It holds no queue.",
    title: "Unhold its queues?",
    text: `All queues that it holds are released at once, not one after the other. Paused queues stay paused.${again}`,
    count: async () => found.held,
    noun: "held queue",
    request: () => ({ method: "POST", path: `/v1/circuits/${part(found.hash)}/unhold` }),
    command: () => ["circuits", "unhold", found.hash],
    done: (answer) => `${count(answer.unheld)} unheld.`,
    then: () => view.again(),
  }, options);
}

function unholdAll(view, held) {
  return actionButton({
    label: "Unhold all",
    role: "operate",
    reason: held ? null : "No queue is held.",
    title: "Unhold all queues?",
    text: "Queues of every circuit are released at once. Those of open circuits are held again with their next request.",
    count: async () => held,
    noun: "held queue",
    request: () => ({ method: "POST", path: "/v1/circuits/unhold" }),
    command: () => ["circuits", "unhold", "--all"],
    done: (answer) => `${count(answer.unheld)} unheld.`,
    then: () => view.again(),
  });
}

function closeAll(view, list, isAnyOpen) {
  return actionButton({
    label: "Close all",
    role: "operate",
    reason: isAnyOpen ? null : "All are closed.",
    title: "Close all circuits?",
    text: "All that are open or half-open are closed; their queues are released one after the other.",
    count: async () => list.filter(({ state }) => state !== "closed").length,
    noun: "circuit",
    request: () => ({ method: "POST", path: "/v1/circuits/close" }),
    command: () => ["circuits", "close", "--all"],
    done: (answer) => `${count(answer.closed)} closed.`,
    then: () => view.again(),
  });
}

function routeTable(routes, known) {
  return makeTable({
    caption: "Routes",
    columns: [
      { label: "Pattern", isMain: true, value: (route) => h("code", null, route.pattern) },
      { label: "Goes to", isWide: true, value: (route) => route.url },
      { label: "Methods", value: (route) => route.methods?.join(", ") ?? "all" },
      { label: "Timeout", isNumber: true, value: (route) => duration(route.timeout_ms) },
      { label: "Concurrency", isNumber: true, value: (route) => (route.concurrency ? count(route.concurrency) : "–") },
      { label: "Signed", value: (route) => (route.is_signed ? "yes" : "no") },
      { label: "Circuit", value: (route) => (known.has(route.circuit) ? h("a", { href: `/console/circuits/${part(route.circuit)}` }, "circuit") : h("span", { class: "none" }, "none yet")) },
    ],
    rows: routes,
    key: (route) => `route ${route.pattern}`,
    empty: withCode("There are no routes. Create them with `penstock routes set`."),
  });
}

function ownTable(view, list, breaker) {
  return makeTable({
    caption: "Circuits with settings of their own",
    columns: [
      { label: "Route", isMain: true, value: (own) => h("code", null, own.route) },
      { label: "Overrides", value: (own) => settingWords(own.overrides).join(" ") },
      { label: "Acts", value: (own) => actionButton(changeSettings(own, breaker, () => view.again()), { isSmall: true }) },
    ],
    rows: list,
    key: (own) => `own ${own.route}`,
  });
}

function about(found) {
  return [
    ["State", stateOf(found)],
    ["Failures now", `${found.fail_ratio} %`],
    ["Held queues", count(found.held)],
    found.awaiting_unhold && ["Waiting for release", count(found.awaiting_unhold)],
    found.opened_at && ["Open since", when(found.opened_at)],
    ["Reopened", count(found.reopened)],
    found.metric_name && ["Metric", found.metric_name],
  ].filter(Boolean);
}

function heldQueues(found) {
  const names = found.held_queues ?? [];
  if (!names.length) return h("p", { class: "soft" }, "It holds no queue.");
  return [
    h("ul", { class: "soft-list" }, names.slice(0, SHOWN).map((name) => h("li", null, h("a", { href: `/console/queues/${part(name)}` }, name)))),
    found.held > SHOWN && h("p", { class: "soft" }, `and ${count(found.held - SHOWN)} more`),
  ];
}

/** Outcomes per minute as the circuit keeps them, and before these from the circuit's facts. */
function ratioChart(minutes, history) {
  const first = minutes.length ? Date.parse(minutes[0].at) : Infinity;
  const earlier = history
    .filter(({ at, data }) => data.fail_ratio !== undefined && Date.parse(at) < first)
    .map(({ at, data }) => ({ at: Date.parse(at), ratio: data.fail_ratio }))
    .reverse();
  const points = [...earlier, ...minutes.map((minute) => ({ at: Date.parse(minute.at), ratio: minute.fail_ratio }))];
  if (points.length < 2) return h("p", { class: "soft" }, "There are no outcomes yet.");
  const chart = makeChart({
    title: "Failures",
    note: "percent",
    series: [{ name: "failure ratio", tone: "dead", isArea: true, value: (point) => point.ratio }],
  });
  chart.update(points, { from: points[0].at, to: points.at(-1).at });
  return chart.element;
}

function changes(history) {
  if (!history.length) return h("p", { class: "soft" }, "The circuit has not changed yet.");
  return h(
    "ol",
    { class: "timeline" },
    history.map(({ kind, at, data }) =>
      h(
        "li",
        { "data-step": kind, class: /opened$/.test(kind) && !kind.includes("half") ? "bad" : kind.includes("closed") ? "good" : "warn" },
        h("div", { class: "step-head" }, badge(kind.replace("circuit_", "").replaceAll("_", " ")), " ", when(at)),
        h("div", { class: "soft" }, [data.fail_ratio !== undefined && `${data.fail_ratio} % failures`, data.by && `by ${data.by}`].filter(Boolean).join(" · ")),
      ),
    ),
  );
}
