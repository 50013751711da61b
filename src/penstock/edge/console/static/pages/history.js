// Finished messages, newest first: outcome, duration and reason.

import { get, part } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { about, count, serverNow } from "../kit/format.js";
import { badge, pageHead, stateBadge, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { errorCell, messageLink } from "./messages.js";

const PAGE = 50;
const NAMES = ["queue", "kind", "tag", "entity_id", "outcome", "from", "to", "cursor"];
const SPANS = [
  ["hour", 3_600_000],
  ["day", 86_400_000],
  ["week", 604_800_000],
];

export const history = {
  path: "/console/history",
  title: "History",
  nav: "History",
  icon: "history",
  key: "h",

  async show(view) {
    const asked = Object.fromEntries(NAMES.map((name) => [name, view.query.get(name)]));
    const page = await get("/v1/history", { ...asked, limit: PAGE }, { signal: view.signal });
    const table = makeTable({
      caption: "Finished messages",
      columns: columns(),
      rows: page.endings,
      key: (ending) => `${ending.id}/${ending.finished_at}/${ending.outcome}`,
      empty: "No finished message matches, or it has been pruned.",
    });
    replace(
      view.root,
      pageHead("History", {
        lead: "Every finished message has one row here.",
        actions: [freshness(view, async () => view.again())],
      }),
      form(view),
      h("p", { class: "spans" }, "The last ", SPANS.map(([name, ms]) => [span(view, name, ms), " "])),
      table.element,
      pager({
        isFirst: !asked.cursor,
        first: changed(view.query, { cursor: null }),
        next: page.next && changed(view.query, { cursor: page.next }),
      }),
    );
  },
};

function form(view) {
  return filterForm(view, [
    { name: "queue", label: "Queue" },
    { name: "outcome", label: "Outcome", options: [["", "any"], "done", "dead", "cancelled"] },
    { name: "kind", label: "Kind" },
    { name: "tag", label: "Tag" },
    { name: "entity_id", label: "About (entity id)" },
    { name: "from", label: "Finished from", type: "time" },
    { name: "to", label: "Finished before", type: "time" },
  ]);
}

function span(view, name, ms) {
  const from = new Date(serverNow() - ms).toISOString();
  return h("a", { href: changed(view.query, { from, to: null, cursor: null }) }, name);
}

function columns() {
  return [
    {
      label: "Message",
      isMain: true,
      value: (ending) => [messageLink(ending.id), ending.kind && [" ", badge(ending.kind)]],
    },
    { label: "Queue", value: (ending) => h("a", { href: `/console/queues/${part(ending.queue)}` }, ending.queue) },
    { label: "Outcome", value: (ending) => stateBadge(ending.outcome) },
    { label: "Finished", value: (ending) => when(ending.finished_at) },
    { label: "Waited", isNumber: true, value: (ending) => between(ending.sent_at, ending.first_leased_at) },
    { label: "Took", isNumber: true, value: (ending) => between(ending.leased_at, ending.finished_at) },
    { label: "Attempts", isNumber: true, value: (ending) => count(ending.attempts) },
    { label: "Why", value: why },
  ];
}

function between(from, to) {
  if (!from || !to) return h("span", { class: "none" }, "–");
  return about(Math.max(0, Date.parse(to) - Date.parse(from)));
}

function why(ending) {
  if (ending.outcome === "done") return errorCell(ending.reason, ending.reason, "soft");
  const whole = [ending.reason, ending.last_error].filter(Boolean).join("\n");
  return errorCell(ending.error_line ?? ending.reason, whole);
}
