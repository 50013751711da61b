// Fleets of workers: current and wanted number, reasons, and the log of decisions.

import { actionButton } from "../kit/action.js";
import { get, part } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { count, duration, rate } from "../kit/format.js";
import { badge, card, facts, notice, pageHead, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { flat, inWords } from "../kit/values.js";
import { decisionGraphs, sentence } from "../kit/fleet_words.js";

const PAGE = 50;
const LOOK_EVERY_MS = 5_000;

export const scaling = {
  path: "/console/scaling",
  title: "Scaling",
  nav: "Scaling",
  icon: "scaling",
  key: "s",

  async show(view) {
    const ask = async () => (await get("/v1/scaling", {}, { signal: view.signal })).fleets;
    const fleets = await ask();
    if (!fleets.length) {
      replace(view.root, pageHead("Scaling"), none());
      return;
    }
    const table = makeTable({
      caption: "Fleets",
      columns: columns(),
      rows: fleets,
      key: (fleet) => fleet.name,
    });
    const again = freshness(view, async () => table.update(await ask()), LOOK_EVERY_MS);
    replace(view.root, pageHead("Scaling", { actions: [again] }), table.element);
  },
};

export const fleet = {
  path: "/console/scaling/{fleet}",
  title: "Fleet",
  under: "/console/scaling",

  async show(view) {
    const path = `/v1/scaling/${part(view.params.fleet)}`;
    const cursor = view.query.get("cursor") ?? "";
    const ask = () =>
      Promise.all([
        get(path, {}, { signal: view.signal }),
        get(`${path}/decisions`, { cursor, limit: PAGE }, { signal: view.signal }),
        get(`${path}/profile`, {}, { signal: view.signal }),
      ]);
    const [found, log, profile] = await ask();
    const decisions = makeTable({
      caption: "Decisions",
      columns: decisionColumns(),
      key: (one) => `${one.at} ${one.place}`,
      empty: "No decision yet.",
    });
    const state = h("div");
    const graphs = h("div");
    const marks = h("span", { class: "marks" });
    const update = (fleet, { decisions: list }) => {
      replace(marks, badges(fleet).map((mark) => [" ", mark]));
      replace(
        state,
        !fleet.is_watched && notice("No autoscaler is watching this fleet: its last known state is shown.", "warn"),
        fleet.troubles.map((one) => notice(`${one.part}: ${one.text} (${one.code})`, "bad")),
        h("div", { class: "grid" }, card("Fleet", facts(about(fleet))), card("Why", why(fleet.decision))),
      );
      replace(graphs, decisionGraphs(list));
      decisions.update(list.map((one, place) => ({ ...one, place })));
    };
    update(found, log);
    const again = freshness(view, async () => update(...(await ask())), LOOK_EVERY_MS);
    replace(
      view.root,
      pageHead(found.name, { badges: [marks], actions: [again], back: { label: "Scaling", href: "/console/scaling" } }),
      state,
      graphs,
      card("Profile", profileFacts(profile), Object.keys(profile.overrides).length > 0 && actionButton(resetProfile(profile, () => view.again()))),
      card("Decisions", decisions.element),
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: log.next && changed(view.query, { cursor: log.next }),
      }),
    );
  },
};

/** The settings in force; those that do not come from the fleets file are marked. */
function profileFacts({ settings, overrides }) {
  if (!settings) return h("p", { class: "soft" }, "Its autoscaler has not reported the settings yet.");
  return facts(
    flat(settings).map(([name, text]) => [name.replaceAll("_", " "), name in overrides ? [text, " ", badge("override", "info")] : text]),
  );
}

function resetProfile({ fleet: name }, then) {
  return {
    label: "Reset profile",
    title: `Reset the profile of ${name}?`,
    text: "The overrides are removed: the settings of the fleets file apply again.",
    request: () => ({ method: "DELETE", path: `/v1/scaling/${part(name)}/profile` }),
    command: () => ["scaling", "set", name, "--reset"],
    done: () => "Overrides removed.",
    then,
  };
}

function none() {
  return card(
    "There are no fleets",
    h("p", null, "The autoscaler starts and stops workers according to the backlog of their queues. To use it, declare fleets in a file:"),
    h("pre", { class: "block" }, "penstock autoscale --fleets fleets.toml"),
    h("p", null, "or let this server do it, with the setting ", h("code", null, "scaling.fleets_file"), ". Its decisions and their reasons are then shown here."),
  );
}

function badges(found) {
  return [
    found.is_watched ? badge("watched", "good") : badge("not watched", "warn"),
    found.is_dry && badge("dry run", "info"),
    found.pressure_level > 0 && badge(`pressure ${found.pressure_level}`, "bad"),
    found.troubles.length > 0 && badge("trouble", "bad"),
  ].filter(Boolean);
}

function columns() {
  return [
    { label: "Fleet", isMain: true, value: (one) => [h("a", { href: `/console/scaling/${part(one.name)}` }, one.name), badges(one).map((mark) => [" ", mark])] },
    { label: "Queue", value: queueOf },
    { label: "Running", isNumber: true, value: (one) => (one.replicas ? count(one.replicas.running) : "–") },
    { label: "Wanted", isNumber: true, value: (one) => (one.wanted === undefined ? "–" : count(one.wanted)) },
    { label: "From – to", isNumber: true, value: (one) => `${one.min} – ${one.max}` },
    { label: "Backlog", isNumber: true, value: (one) => (one.sample ? count(one.sample.ready) : "–") },
    { label: "Oldest", isNumber: true, value: (one) => age(one.sample) },
    { label: "Why", isWide: true, value: (one) => reasonText(one.decision) },
    { label: "Trouble", value: (one) => [...new Set(one.troubles.map((trouble) => trouble.code))].join(", ").replaceAll("_", " ") || "–" },
    { label: "Last change", isWide: true, value: (one) => (one.last_change ? [change(one.last_change.change), " ", when(one.last_change.at)] : "–") },
  ];
}

function queueOf(one) {
  const names = one.queues?.length ? one.queues : [one.queue];
  if (one.source && one.source !== "penstock" && one.source !== "own") return `${names.join(", ")} (${one.source})`;
  return names.map((name, place) => [place > 0 && ", ", h("a", { href: `/console/queues/${part(name)}` }, name)]);
}

function age(load) {
  return load?.oldest_ms === undefined || load.oldest_ms === null ? "–" : duration(load.oldest_ms);
}

/** One line per queue of the fleet. */
function loads(found) {
  return (found.sample?.queues ?? []).map((one) => [`In ${one.queue}`, `${count(one.ready)} ready, ${count(one.leased)} leased, oldest ${age(one)}`]);
}

function change(number) {
  return badge(number > 0 ? `+${number}` : String(number), number > 0 ? "info" : number < 0 ? "warn" : "");
}

function reasonText(decision) {
  return decision?.reason ? decision.reason.replaceAll("_", " ") : "–";
}

function decisionColumns() {
  return [
    { label: "When", isMain: true, value: (one) => when(one.at) },
    { label: "Change", value: (one) => change(one.decision.change ?? 0) },
    { label: "Decision", isWide: true, value: (one) => h("span", { title: details(one.decision) }, sentence(one.decision)) },
  ];
}

const TOLD_ELSEWHERE = new Set(["change", "wanted", "reason"]);

/** The remaining fields of a decision, for its title. */
function rest(decision) {
  const left = Object.entries(decision ?? {}).filter(([name]) => !TOLD_ELSEWHERE.has(name));
  return inWords(Object.fromEntries(left));
}

function details(decision) {
  const fields = rest(decision);
  return fields.map((pair) => pair.join(" ")).join(" · ");
}

function why(decision) {
  if (!decision) return h("p", { class: "soft" }, "No decision yet.");
  return [
    h("p", { class: "why" }, change(decision.change ?? 0), " ", h("strong", null, sentence(decision))),
    h("details", null, h("summary", null, "All inputs"), facts(rest(decision))),
  ];
}

function about(found) {
  return [
    ["Queue", queueOf(found)],
    ["Workers", found.replicas ? `${found.replicas.running} running, ${found.replicas.starting ?? 0} starting` : "–"],
    ["Wanted", found.wanted === undefined ? "–" : count(found.wanted)],
    ["Limits", `${found.min} to ${found.max}`],
    ["Ready", found.sample ? count(found.sample.ready) : "–"],
    ["Leased", found.sample ? count(found.sample.leased ?? 0) : "–"],
    ["Oldest", age(found.sample)],
    ...loads(found),
    ["In / out", found.sample ? `${rate(found.sample.publish_rate)} / ${rate(found.sample.consume_rate)}` : "–"],
    ["Profile", found.profile],
    ["Workers by", found.replicas_by],
    ["Interval", duration(found.interval_ms)],
    ["Seen", when(found.seen_at)],
    ["Seen by", found.seen_by],
  ];
}
