// Messages of a queue by state, kind, tag, group and time; by tag in all queues; bulk acts.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { glimpse } from "../kit/bodies.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { compact, count } from "../kit/format.js";
import { actionOnMany, actsOnState } from "../actions/message_acts.js";
import { badge, notice, pageHead, stateBadge, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";

const PAGE = 50;
const PREVIEW = 100; // characters of a body; lists do not download whole bodies
const STATES = ["ready", "waiting", "leased", "dead"];
const FILTERS = ["kind", "tag", "group", "entity_id", "sent_from", "sent_before"];
const MAX_PAGES = 20; // of some thousand rows each, before the user must ask for more

export const messages = {
  path: "/console/messages",
  title: "Messages",
  nav: "Messages",
  icon: "messages",
  key: "m",

  async show(view) {
    const queue = view.query.get("queue") ?? "";
    const hasList = queue || view.query.get("tag");
    const head = pageHead("Messages", { actions: hasList ? [freshness(view, async () => view.again())] : [] });
    const names = await suggestions(view);
    const form = [names.element, form_(view)];
    if (!queue && !view.query.get("tag")) {
      replace(view.root, head, form, hint());
      return;
    }
    if (queue) await showQueue(view, head, form, queue);
    else await showTagged(view, head, form);
  },
};

function form_(view) {
  const find = byId(view);
  const fields = [
    { name: "queue", label: "Queue", list: "queue-names", placeholder: "name of a queue" },
    { name: "kind", label: "Kind" },
    { name: "tag", label: "Tag" },
    { name: "group", label: "Group" },
    { name: "entity_id", label: "About (entity id)" },
    { name: "sent_from", label: "Sent from", type: "time" },
    { name: "sent_before", label: "Sent before", type: "time" },
  ];
  return [find, filterForm(view, fields, { keeps: ["queue"] })];
}

function byId(view) {
  const input = h("input", {
    type: "search", name: "id", placeholder: "Id of a message", "aria-label": "Id of a message", autocomplete: "off",
  });
  const form = h("form", { class: "filters" }, input, h("button", { type: "submit" }, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const id = input.value.trim();
    if (id) view.go(`/console/messages/${part(id)}`);
  });
  return form;
}

function hint() {
  return notice("Enter a queue to see its messages, or a tag to search in all queues.");
}

/** Suggestions for the queue field; only the first if there are many. */
async function suggestions(view) {
  const { queues } = await get("/v1/queues", { limit: 200 }, { signal: view.signal });
  return {
    element: h("datalist", { id: "queue-names" }, queues.map(({ name }) => h("option", { value: name }))),
  };
}

async function showQueue(view, head, form, queue) {
  const state = STATES.includes(view.query.get("state")) ? view.query.get("state") : "ready";
  const cursor = view.query.get("cursor") ?? "";
  const where = Object.fromEntries(FILTERS.map((name) => [name, view.query.get(name)]).filter(([, v]) => v));
  const found = await get(`/v1/queues/${part(queue)}`, {}, { signal: view.signal });
  const page = await look(view, queue, { state, ...where }, cursor);
  const acts = h("div", { class: "bulk", role: "group", "aria-label": "Bulk acts" });
  const table = makeTable({
    caption: `Messages of ${queue} that are ${state}`,
    columns: columns(state),
    rows: page.messages,
    key: (message) => message.id,
    empty: page.next ? "No match so far; there are more messages to search." : "No message matches.",
    onSelect: actsOnState(state).length ? (ids) => showActs(acts, view, queue, { state, ...where }, ids) : null,
  });
  replace(
    view.root,
    head,
    form,
    stateTabs(view, found.counts, state),
    state === "leased" && notice("Workers have leased these messages. Bury and Cancel end the leases."),
    acts,
    table.element,
    pager({
      isFirst: !cursor,
      first: changed(view.query, { cursor: null }),
      next: page.next && changed(view.query, { cursor: page.next }),
    }),
  );
}

/** A filtered page of the API may be short without being the last: read on. */
async function look(view, queue, where, cursor) {
  const path = `/v1/queues/${part(queue)}/messages`;
  let page = await get(path, { ...where, cursor, preview: PREVIEW, limit: PAGE }, { signal: view.signal });
  const messages = [...page.messages];
  for (let looks = 1; looks < MAX_PAGES && page.next && !messages.length; looks += 1) {
    page = await get(path, { ...where, cursor: page.next, preview: PREVIEW, limit: PAGE }, { signal: view.signal });
    messages.push(...page.messages);
  }
  return { messages, next: page.next };
}

function stateTabs(view, counts, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": "States" },
    STATES.map((state) =>
      h(
        "a",
        { href: changed(view.query, { state, cursor: null }), "aria-current": state === current ? "page" : null },
        `${state} `,
        h("span", { class: "tab-count", title: count(counts[state]) }, compact(counts[state])),
      ),
    ),
  );
}

function showActs(place, view, queue, where, ids) {
  const chosen = ids.length ? { ids } : { where };
  const many = ids.length ? `${count(ids.length)} selected` : "All matching";
  replace(
    place,
    h("span", { class: "bulk-what" }, many),
    actsOnState(where.state).map((act) =>
      actionButton(actionOnMany(queue, chosen, act, () => view.again()), { isSmall: true }),
    ),
  );
}

async function showTagged(view, head, form) {
  const asked = { tag: view.query.get("tag"), cursor: view.query.get("cursor"), preview: PREVIEW, limit: PAGE };
  const page = await get("/v1/messages", asked, { signal: view.signal });
  const table = makeTable({
    caption: "Messages with this tag",
    columns: [
      ...columns("any"),
      { label: "Queue", value: (message) => h("a", { href: `/console/messages?queue=${part(message.queue)}` }, message.queue) },
      { label: "State", value: (message) => stateBadge(message.state) },
    ],
    rows: page.messages,
    key: (message) => message.id,
    empty: "No message that is waiting, ready or leased has this tag.",
  });
  replace(
    view.root,
    head,
    form,
    notice("In all queues. Also enter a queue to see dead messages and to act on many."),
    table.element,
    pager({
      isFirst: !asked.cursor,
      first: changed(view.query, { cursor: null }),
      next: page.next && changed(view.query, { cursor: page.next }),
    }),
  );
}

export function messageLink(id, text = null) {
  return h("a", { href: `/console/messages/${part(id)}`, title: id, class: "id" }, text ?? shortId(id));
}

/** The last digits of an id differ; the first encode the time. */
function shortId(id) {
  return id.length > 20 ? `…${id.slice(-12)}` : id;
}

function columns(state) {
  return [
    {
      label: "Message",
      isMain: true,
      value: (message) => [messageLink(message.id), message.kind && [" ", badge(message.kind)]],
    },
    { label: "Body", value: (message) => glimpse(message.preview) },
    { label: "Group, tags", value: labels },
    { label: "Attempts", isNumber: true, value: (message) => count(message.attempts) },
    { label: "Sent", value: (message) => when(message.sent_at) },
    ...(TIMES[state] ?? []),
    { label: "Error", value: trouble },
  ];
}

const TIMES = {
  waiting: [{ label: "Due", value: (message) => when(message.due_at) }],
  leased: [
    { label: "Until", value: (message) => when(message.leased_until) },
    { label: "By", value: (message) => message.leased_by ?? "–" },
  ],
};

function labels(message) {
  const said = [message.group && `group ${message.group}`, ...(message.tags ?? [])].filter(Boolean);
  return said.length ? said.map((text) => [badge(text), " "]) : h("span", { class: "none" }, "–");
}

function trouble(message) {
  return errorCell(message.error_line ?? message.reason, message.last_error ?? message.reason);
}

/** The error in one line; the title has all of it. */
export function errorCell(line, whole, tone = "trouble-text") {
  return line ? h("span", { class: `${tone} one-line`, title: whole }, line) : h("span", { class: "none" }, "–");
}
