// Errors of dead messages, grouped by exception and place; retrying a group.

import { call, get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { h, replace } from "../kit/dom.js";
import { count } from "../kit/format.js";
import { badge, notice, pageHead, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { makeTable } from "../kit/table.js";
import { withCode } from "../kit/values.js";
import { messageLink } from "./messages.js";

const SHOWN_QUEUES = 4;

export const errors = {
  path: "/console/errors",
  title: "Errors",
  nav: "Errors",
  icon: "errors",
  key: "x",

  async show(view) {
    const queue = view.query.get("queue") ?? "";
    const found = await get("/v1/errors", { queue }, { signal: view.signal });
    const table = makeTable({
      caption: "Errors of dead messages",
      columns: columns(view, queue),
      rows: found.groups,
      key: (group) => group.id,
      empty: "There are no dead messages.",
    });
    replace(
      view.root,
      pageHead(queue ? `Errors of ${queue}` : "Errors", {
        lead: "Dead messages by exception and place, the most frequent first.",
        actions: [freshness(view, async () => view.again())],
        back: queue ? { label: queue, href: `/console/queues/${part(queue)}` } : null,
      }),
      found.is_cut && notice("At most 10,000 messages are examined; not all dead ones are counted.", "warn"),
      table.element,
      notice(withCode("The same on the command line: `penstock errors`.")),
    );
  },
};

function columns(view, queue) {
  return [
    { label: "Error", isMain: true, value: (group) => errorOf(group) },
    { label: "Messages", isNumber: true, value: (group) => h("span", { class: "dead" }, count(group.messages)) },
    { label: "First", value: (group) => when(group.first_at) },
    { label: "Last", value: (group) => when(group.last_at) },
    { label: "Queues", value: queuesOf },
    { label: "Sample", value: (group) => messageLink(group.sample_id) },
    { label: "Acts", value: (group) => actionButton(retry(group, queue, () => view.again()), { isSmall: true }) },
  ];
}

function errorOf(group) {
  return [
    h("details", null,
      h("summary", null, h("strong", null, group.error), group.place && [" at ", h("code", null, group.place)]),
      h("pre", { class: "step-error", tabindex: "0", "aria-label": "Sample" }, group.sample_error)),
    h("div", { class: "soft one-line", title: group.sample_line }, group.sample_line),
    group.kinds.map((kind) => [badge(kind), " "]),
  ];
}

function queuesOf({ queues }) {
  const names = Object.entries(queues);
  return [
    names.slice(0, SHOWN_QUEUES).map(([name, many]) => h("div", null, h("a", { href: `/console/messages?queue=${part(name)}&state=dead` }, name), ` ${count(many)}`)),
    names.length > SHOWN_QUEUES && h("div", { class: "soft" }, `and ${count(names.length - SHOWN_QUEUES)} more`),
  ];
}

function retry(group, queue, then) {
  const wanted = { error: group.id, ...(queue && { queue }) };
  return {
    label: `Retry ${group.messages === 1 ? "it" : `these ${count(group.messages)}`}`,
    confirm: "Retry",
    title: `Retry messages with ${group.error}?`,
    text: `They return to the queues they died in, with all their attempts. Error: ${group.sample_line}`,
    noun: "dead message",
    count: async () => (await call("POST", "/v1/errors/redrive", { ...wanted, is_dry_run: true })).matched,
    request: () => ({ method: "POST", path: "/v1/errors/redrive", body: wanted }),
    command: () => ["errors", "redrive", group.id, ...(queue ? ["--queue", queue] : [])],
    done: (result) => `${count(result.changed)} of ${count(result.matched)} are retried.`,
    then,
  };
}
