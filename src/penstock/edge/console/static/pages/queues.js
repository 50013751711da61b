// The queues: filtered, sorted and paged; several can be paused at once.

import { actionButton } from "../kit/action.js";
import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { count, rate } from "../kit/format.js";
import { onLive } from "../server/live.js";
import { badge, notice, pageHead } from "../kit/parts.js";
import { create, pauseMany } from "../actions/queue_actions.js";
import { PROBLEMS } from "../kit/problems.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";

const PAGE = 50;
const FILTERS = ["contains", "problem", "state", "label"];
const STATES = ["ready", "waiting", "leased", "dead"];

export const queues = {
  path: "/console/queues",
  title: "Queues",
  nav: "Queues",
  icon: "queues",
  key: "q",

  async show(view) {
    const cursor = view.query.get("cursor") ?? "";
    const given = Object.fromEntries(FILTERS.map((name) => [name, view.query.get(name) ?? ""]));
    const isAscending = view.query.get("ascending") === "true";
    const sort = view.query.get("sort");
    const asked = { ...given, sort, ascending: isAscending || null, cursor, limit: PAGE };
    const answer = await get("/v1/queues", asked, { signal: view.signal });
    const shown = new Map(answer.queues.map((queue) => [queue.name, queue]));
    const acts = h("div", { class: "bulk", role: "group", "aria-label": "Selected queues" });
    const table = makeTable({
      caption: "Queues",
      columns: columns(),
      key: (queue) => queue.name,
      empty: FILTERS.some((name) => given[name]) ? "No queue matches." : "There are no queues yet.",
      rows: answer.queues,
      onSelect: (names) => showActs(acts, view, names),
      sorting: {
        by: sort ?? "name",
        isAscending: sort ? isAscending : true,
        hrefOf: (column) => changed(view.query, sortedBy(column, sort, isAscending)),
      },
    });
    const askAgain = async () => {
      const again = await get("/v1/queues", asked, { signal: view.signal });
      for (const queue of again.queues) {
        if (shown.has(queue.name) && !updated.has(queue.name)) {
          Object.assign(shown.get(queue.name), queue);
        }
      }
      table.update([...shown.values()]);
    };
    const isSelected = Boolean(sort || given.problem || given.state);
    replace(
      view.root,
      pageHead("Queues", {
        actions: [
          isSelected && freshness(view, async () => view.again()),
          actionButton(create((made) => view.go(hrefOf(made.name)))),
        ].filter(Boolean),
      }),
      filter(view),
      PROBLEMS[given.problem] && notice(`${PROBLEMS[given.problem][2]}.`),
      acts,
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
    const updated = new Set(); // queues that the stream has updated: its data is newer
    view.onLeave(
      onLive((news, isFirst) => {
        if (isFirst) {
          updated.clear();
          askAgain().catch(() => {}); // the next update retries
        }
        let isTouched = false;
        for (const queue of shown.values()) {
          if (queue.rates) isTouched = true;
          delete queue.rates;
        }
        for (const fresh of news.queues) {
          if (!shown.has(fresh.name)) continue;
          Object.assign(shown.get(fresh.name), fresh);
          updated.add(fresh.name);
          isTouched = true;
        }
        if (isTouched) table.update([...shown.values()]);
      }),
    );
  },
};

/** The first click sorts with the largest number first, names from A; the second reverses it. */
function sortedBy(column, current, isAscending) {
  if (column.sort === "name") {
    const isReversed = current === null;
    return { sort: isReversed ? "name" : null, ascending: isReversed ? "true" : null, cursor: null };
  }
  const isSame = column.sort === current;
  return { sort: column.sort, ascending: isSame && !isAscending ? "true" : null, cursor: null };
}

function showActs(place, view, names) {
  if (!names.length) return replace(place);
  return replace(
    place,
    h("span", { class: "bulk-what" }, `${count(names.length)} selected`),
    ["pause", "resume"].map((verb) => actionButton(pauseMany(names, verb, () => view.again()), { isSmall: true })),
  );
}

function hrefOf(name) {
  return `/console/queues/${encodeURIComponent(name)}`;
}

export function stopBadges(queue) {
  return [
    queue.is_paused && badge("paused", "warn", "An operator stopped claims"),
    queue.held_by && badge("held", "bad", `Circuit ${queue.held_by} holds it`),
  ].filter(Boolean);
}

function columns() {
  const number = (label, value, tone) => ({
    label,
    sort: label.toLowerCase(),
    isNumber: true,
    value: (queue) => {
      const many = value(queue);
      return h("span", { class: many ? tone : "none" }, count(many));
    },
  });
  return [
    {
      label: "Queue",
      sort: "name",
      isMain: true,
      value: (queue) => [
        h("a", { href: hrefOf(queue.name) }, queue.name),
        stopBadges(queue).map((one) => [" ", one]),
      ],
    },
    number("Ready", (queue) => queue.counts.ready, "ready"),
    number("Waiting", (queue) => queue.counts.waiting, "waiting"),
    number("Leased", (queue) => queue.counts.leased, "leased"),
    number("Dead", (queue) => queue.counts.dead, "dead"),
    number("Done", (queue) => queue.totals?.done ?? 0, ""),
    {
      label: "In / out",
      isNumber: true,
      value: (queue) =>
        queue.rates
          ? `${rate(queue.rates.sent)} / ${rate(queue.rates.done)}`
          : h("span", { class: "none" }, "–"),
    },
  ];
}

function filter(view) {
  const kinds = Object.entries(PROBLEMS).map(([name, [text]]) => [name, text]);
  return filterForm(view, [
    { name: "contains", label: "Part of a name" },
    { name: "problem", label: "Problem", options: [["", "any or none"], ...kinds] },
    { name: "state", label: "With messages that are", options: [["", "in any state"], ...STATES] },
    { name: "label", label: "Label", placeholder: "NAME or NAME=VALUE" },
  ]);
}
