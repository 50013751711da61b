// Recurring work: its next and last firing, and running it now.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { bodyBlock } from "../kit/bodies.js";
import { h, replace } from "../kit/dom.js";
import { count, duration, instant } from "../kit/format.js";
import { badge, card, facts, notice, pageHead, stateBadge, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { removeRecurring, setRecurring } from "../actions/recurring_actions.js";
import { withCode } from "../kit/values.js";
import { errorCell, messageLink } from "./messages.js";

const PAGE = 50;
const NEXT_RUNS = 10;
const RUNS = 20;
const LOOK_EVERY_MS = 5_000;

export const recurring = {
  path: "/console/recurring",
  title: "Recurring",
  nav: "Recurring",
  icon: "recurring",
  key: "r",

  async show(view) {
    const cursor = view.query.get("cursor") ?? "";
    const ask = () => get("/v1/recurring", { cursor, limit: PAGE }, { signal: view.signal });
    const answer = await ask();
    const table = makeTable({
      caption: "Recurring work",
      columns: columns(view),
      rows: answer.recurring,
      key: (one) => one.name,
      empty: withCode("No recurring work yet. Create some with `penstock recurring set`."),
    });
    replace(
      view.root,
      pageHead("Recurring", {
        actions: [actionButton(setRecurring(null, (made) => view.go(`/console/recurring/${part(made.name)}`))), freshness(view, async () => table.update((await ask()).recurring), LOOK_EVERY_MS)],
      }),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
  },
};

export const schedule = {
  path: "/console/recurring/{schedule}",
  title: "Recurring work",
  under: "/console/recurring",

  async show(view) {
    const path = `/v1/recurring/${part(view.params.schedule)}`;
    const [one, next] = await Promise.all([
      get(path, {}, { signal: view.signal }),
      get(`${path}/preview`, { count: NEXT_RUNS }, { signal: view.signal }),
    ]);
    // Other messages of its queue and kind are not distinguished.
    const past = one.kind ? await get("/v1/history", { queue: one.queue, kind: one.kind, limit: RUNS }, { signal: view.signal }) : null;
    replace(
      view.root,
      pageHead(one.name, {
        badges: [one.is_paused && badge("paused", "warn")].filter(Boolean),
        actions: [
          ...acts(view, one),
          actionButton(setRecurring(one, () => view.again())),
          actionButton(removeRecurring(one, () => view.go("/console/recurring"))),
        ],
        back: { label: "Recurring", href: "/console/recurring" },
      }),
      one.last_error && notice(`The last firing could not be sent: ${one.last_error}`, "bad"),
      h(
        "div",
        { class: "grid" },
        card("Recurring work", facts(about(one))),
        card(
          "Next runs",
          one.is_paused && notice("It is paused: none of these is sent until it is resumed.", "warn"),
          h("ol", { class: "next-runs" }, next.instants.map((at) => h("li", null, times(at, one.zone), " ", h("span", { class: "soft" }, when(at))))),
        ),
      ),
      past && card(`Last runs of ${one.kind} in ${one.queue}`, runsOf(past.endings)),
      card("What it sends", bodyBlock("Body", one.body), Object.keys(one.attributes ?? {}).length > 0 && bodyBlock("Attributes", one.attributes)),
    );
  },
};

function rhythm(one) {
  if (one.every_ms) return `every ${duration(one.every_ms)}`;
  return [h("span", { title: one.cron }, one.in_words), " ", h("span", { class: "soft" }, one.zone ?? "UTC"), " ", h("code", null, one.cron)];
}

/** The time of the schedule's zone and, if that differs, of the user's. */
function times(at, zone) {
  const own = instant(at);
  if (!zone) return h("span", null, own);
  const there = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: zone }).format(new Date(at));
  return h("span", null, there, ` ${zone}`, there === own ? null : h("span", { class: "soft" }, ` (${own} here)`));
}

/** The latest messages that it has sent, and what became of them. */
function runsOf(endings) {
  return makeTable({
    caption: "Last runs",
    columns: [
      { label: "Message", isMain: true, value: (ending) => messageLink(ending.id) },
      { label: "Outcome", value: (ending) => stateBadge(ending.outcome) },
      { label: "Sent", value: (ending) => when(ending.sent_at) },
      { label: "Finished", value: (ending) => when(ending.finished_at) },
      { label: "Error", value: (ending) => errorCell(ending.outcome === "done" ? null : (ending.error_line ?? ending.reason), ending.last_error) },
    ],
    rows: endings,
    key: (ending) => `${ending.id} ${ending.finished_at}`,
    empty: "None of its messages has finished, or their history has been pruned.",
  }).element;
}

function acts(view, one, options) {
  const path = `/v1/recurring/${part(one.name)}`;
  const shared = { role: "operate", then: () => view.again() };
  const [verb, label, text] = one.is_paused
    ? ["resume", "Resume", "Firings are allowed again; those missed during the pause are not caught up."]
    : ["pause", "Pause", "No firing is sent until it is resumed."];
  return [
    actionButton({
      ...shared,
      label: "Run now",
      title: `Run ${one.name} now?`,
      text: `One message is sent to ${one.queue} at once. Its schedule does not change.`,
      request: () => ({ method: "POST", path: `${path}/run` }),
      command: () => ["recurring", "run", one.name],
      done: (answer) => `Sent: ${answer.id}`,
    }, options),
    actionButton({
      ...shared,
      label,
      title: `${label} ${one.name}?`,
      text,
      request: () => ({ method: "POST", path: `${path}/${verb}` }),
      command: () => ["recurring", verb, one.name],
      done: () => (one.is_paused ? "It is resumed." : "It is paused."),
    }, options),
  ];
}

function columns(view) {
  return [
    {
      label: "Name",
      isMain: true,
      value: (one) => [
        h("a", { href: `/console/recurring/${part(one.name)}` }, one.name),
        one.is_paused && [" ", badge("paused", "warn")],
        one.last_error && [" ", badge("trouble", "bad", one.last_error)],
      ],
    },
    { label: "Queue", value: (one) => h("a", { href: `/console/queues/${part(one.queue)}` }, one.queue) },
    { label: "Rhythm", isWide: true, value: rhythm },
    { label: "Next run", value: (one) => (one.is_paused ? "–" : when(one.next_at)) },
    { label: "Last run", isWide: true, value: (one) => (one.last_at ? [when(one.last_at), one.last_id && [" ", messageLink(one.last_id, "message")]] : "–") },
    { label: "Fired", isNumber: true, value: (one) => count(one.fired) },
    { label: "Skipped", isNumber: true, value: (one) => count(one.skipped) },
    { label: "Acts", isWide: true, value: (one) => h("span", { class: "row-acts" }, acts(view, one, { isSmall: true })) },
  ];
}

function about(one) {
  const given = (name, value) => (value === undefined || value === null || value === "" ? null : [name, value]);
  return [
    ["Queue", h("a", { href: `/console/queues/${part(one.queue)}` }, one.queue)],
    ["Rhythm", rhythm(one)],
    ["Catch-up of missed runs", one.catch_up],
    ["Overlap with the last run", one.overlap],
    given("Kind", one.kind),
    given("Group", one.group),
    given("Tags", (one.tags ?? []).join(", ")),
    one.last_at && ["Last run", [when(one.last_at), one.last_id && [" ", messageLink(one.last_id, "message")]]],
    ["Fired", count(one.fired)],
    ["Skipped", count(one.skipped)],
    ["Changed", when(one.changed_at)],
  ].filter(Boolean);
}
