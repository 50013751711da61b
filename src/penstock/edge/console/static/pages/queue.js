// One queue: figures, graphs, moves and actions.

import { actionButton } from "../kit/action.js";
import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { brief, count, rate, serverNow } from "../kit/format.js";
import { graphs } from "../charts/graphs.js";
import { onLive } from "../server/live.js";
import { badge, card, facts, figure, messageFigures, notice, pageHead, tabs, when } from "../kit/parts.js";
import { cancelMove, move, pathOf, pause, purge, redrive, remove, unhold } from "../actions/queue_actions.js";
import { send } from "../actions/send.js";
import { SETTINGS, settingText } from "../actions/queue_settings.js";
import { makeTable } from "../kit/table.js";
import { stopBadges } from "./queues.js";

const MAX_SOURCES = 10;
const AGE_EVERY_MS = 3_000; // only the API of a single queue reports its oldest message
const MOVE_TONES = { running: "info", completed: "good", failed: "bad" };

export const queue = {
  path: "/console/queues/{queue}",
  title: "Queue",
  under: "/console/queues",

  async show(view) {
    const path = pathOf(view.params.queue);
    const [found, moves, sources] = await Promise.all([
      get(path, {}, { signal: view.signal }),
      get(`${path}/moves`, { limit: 5 }, { signal: view.signal }),
      get("/v1/queues", { dead_letter_queue: view.params.queue, limit: MAX_SOURCES }, { signal: view.signal }),
    ]);
    const figures = makeFigures();
    replace(
      view.root,
      head(found, view),
      sourcesOf(sources.queues),
      h("div", { class: "figures" }, Object.values(figures).map((one) => one.element)),
      moves.moves.length ? moveCard(moves.moves, view) : null,
      graphs(view, found.name),
      totalsCard(found),
      settingsCard(found),
    );
    updateFigures(figures, found, null);
    watch(view, path, figures, found);
  },
};

/** Of a dead-letter queue: the queues whose dead messages it gets. */
function sourcesOf(sources) {
  if (!sources.length) return null;
  const links = sources.map(({ name }, place) => [place > 0 && ", ", h("a", { href: `/console/queues/${encodeURIComponent(name)}` }, name)]);
  return notice(["This is the dead-letter queue of ", ...links.flat(Infinity).filter(Boolean), sources.length === MAX_SOURCES ? " and others." : "."]);
}

/** The heading with the actions, for all pages of a queue. */
export function queueHead(found, view, current) {
  const again = () => view.again();
  const actions = [
    pause(found, again),
    found.held_by && unhold(found, again),
    send(found, again),
    redrive(found, again),
    move(found, again),
    purge(found, again),
    remove(found, () => view.go("/console/queues")),
  ].filter(Boolean);
  const base = `/console/queues/${encodeURIComponent(found.name)}`;
  return [
    pageHead(found.name, {
      badges: [
        ...stopBadges(found),
        found.settings.ordering === "group" && badge("ordered by group", "info"),
        ...Object.entries(found.settings.labels).map(([name, text]) => badge(`${name}: ${text}`)),
      ].filter(Boolean),
      actions: actions.map((action) => actionButton(action)),
      back: { label: "Queues", href: "/console/queues" },
    }),
    tabs(
      [
        { name: "overview", label: "Overview", href: base },
        { name: "messages", label: "Messages", href: `/console/messages?queue=${encodeURIComponent(found.name)}` },
        { name: "errors", label: "Errors", href: `/console/errors?queue=${encodeURIComponent(found.name)}` },
        { name: "settings", label: "Settings", href: `${base}/settings` },
      ],
      current,
    ),
  ];
}

function head(found, view) {
  return queueHead(found, view, "overview");
}

function makeFigures() {
  const { sent, done, failed, ...states } = messageFigures();
  const oldest = figure("Oldest", { hint: "How long the first message has been claimable" });
  return { ...states, oldest, sent, done, failed };
}

function updateFigures(figures, found, rates) {
  for (const state of ["ready", "waiting", "leased", "dead"]) figures[state].set(found.counts[state]);
  const none = { sent: 0, done: 0, failed: 0 };
  for (const name of ["sent", "done", "failed"]) {
    figures[name].set(rate((rates ?? none)[name]), `${count(found.totals[name])} in total`);
  }
  const oldest = found.oldest_ready_at;
  const late = oldest && Math.max(0, serverNow() - Date.parse(oldest));
  figures.oldest.set(oldest ? brief(late) : "–", oldest ? "first message" : "no message ready");
}

function watch(view, path, figures, found) {
  let known = found;
  let rates = null;
  async function look() {
    try {
      known = await get(path, {}, { signal: view.signal });
      updateFigures(figures, known, rates);
    } catch {
      // Deleted meanwhile, or unreachable: keep the last known state.
    }
  }
  const timer = setInterval(look, AGE_EVERY_MS);
  view.onLeave(() => clearInterval(timer));
  view.onLeave(
    onLive((news) => {
      const fresh = news.queues.find((one) => one.name === found.name);
      rates = fresh?.rates ?? null; // absent: nothing happened
      if (fresh) known = { ...known, counts: fresh.counts, totals: fresh.totals };
      updateFigures(figures, known, rates);
    }),
  );
}

function totalsCard(found) {
  const { totals } = found;
  return card(
    "Totals",
    facts([
      ["Sent", count(totals.sent)],
      ["Claimed", count(totals.claimed)],
      ["Done", count(totals.done)],
      ["Dead", count(totals.dead)],
      ["Cancelled", count(totals.cancelled)],
      ["Failed attempts", count(totals.failed)],
      ["Expired leases", count(totals.expired_leases)],
      ["Created", when(found.created_at)],
    ]),
  );
}

function settingsCard(found) {
  return card(
    "Settings",
    facts(
      SETTINGS.filter((setting) => !setting.kind.isMany).map((setting) => [
        setting.label,
        setting.name === "dead_letter_queue" && found.settings.dead_letter_queue
          ? letterLink(found.settings.dead_letter_queue)
          : settingText(setting, found.settings),
      ]),
    ),
  );
}

function letterLink(name) {
  return h("a", { href: `/console/queues/${encodeURIComponent(name)}` }, name);
}

function moveCard(moves, view) {
  const table = makeTable({
    caption: "Moves out of this queue",
    key: (one) => one.id,
    rows: moves,
    columns: [
      { label: "To", isMain: true, value: (one) => one.to ?? "the queue each died in" },
      { label: "State", value: (one) => badge(one.state, MOVE_TONES[one.state] ?? "", one.reason) },
      { label: "Moved", isNumber: true, value: (one) => `${count(one.moved)} of about ${count(one.to_move)}` },
      { label: "Started", isNumber: true, value: (one) => when(one.started_at) },
      {
        label: "",
        isNumber: true,
        value: (one) =>
          one.state === "running" && actionButton(cancelMove(one, () => view.again()), { isSmall: true }),
      },
    ],
  });
  return card("Moves", table.element);
}
