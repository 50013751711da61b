// Facts: what happened to workers, circuits, queues and keys, and who changed what.

import { get, part } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { badge, pageHead, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { flat } from "../kit/values.js";

const PAGE = 50;
const NAMES = ["kind", "subject", "from", "to", "cursor"];
const CHANGE = "changed_by_caller";

export const facts = {
  path: "/console/facts",
  title: "Facts",
  nav: "Facts",
  icon: "facts",
  key: "t",

  async show(view) {
    const asked = Object.fromEntries(NAMES.map((name) => [name, view.query.get(name)]));
    const page = await get("/v1/facts", { ...asked, limit: PAGE }, { signal: view.signal });
    const table = makeTable({
      caption: "Facts",
      columns: columns(),
      rows: page.facts.map((fact, place) => ({ ...fact, place })),
      key: (fact) => `${fact.at} ${fact.place}`,
      empty: "No fact matches, or it has been pruned.",
    });
    replace(
      view.root,
      pageHead("Facts", {
        lead: "What happened to workers, circuits, fleets and keys, and who changed what; newest first.",
        actions: [
          freshness(view, async () => view.again()),
          h("a", { class: "button", href: changed(view.query, { kind: asked.kind === CHANGE ? null : CHANGE, cursor: null }) },
            asked.kind === CHANGE ? "All facts" : "Changes only"),
        ],
      }),
      filterForm(view, [
        { name: "kind", label: "Kind", placeholder: "worker_lost" },
        { name: "subject", label: "About (id or name)" },
        { name: "from", label: "From", type: "time" },
        { name: "to", label: "Before", type: "time" },
      ]),
      table.element,
      pager({
        isFirst: !asked.cursor,
        first: changed(view.query, { cursor: null }),
        next: page.next && changed(view.query, { cursor: page.next }),
      }),
    );
  },
};

function columns() {
  return [
    { label: "When", isMain: true, value: (fact) => when(fact.at) },
    { label: "What", value: (fact) => badge((fact.kind === CHANGE ? fact.data.operation : fact.kind).replaceAll("_", " ")) },
    { label: "About", value: subjectOf },
    { label: "Who", value: (fact) => whoOf(fact) },
    { label: "Details", value: detailsOf },
  ];
}

function subjectOf({ kind, subject }) {
  if (kind.startsWith("worker_")) return h("a", { href: `/console/workers/${part(subject)}` }, subject);
  if (kind.startsWith("circuit_")) return h("a", { href: `/console/circuits/${part(subject)}` }, subject);
  return subject;
}

function whoOf({ kind, data }) {
  if (kind !== CHANGE) return data.by ?? h("span", { class: "none" }, "–");
  return [data.by, data.key && [" ", h("code", { class: "id" }, data.key)], data.from && h("div", { class: "soft" }, `from ${data.from}`)];
}

function detailsOf({ kind, data }) {
  if (kind !== CHANGE) return lines(flat(data).map(([name, text]) => `${name} ${text}`));
  const [before, after] = [data.before ?? {}, data.after ?? {}].map((values) => Object.fromEntries(flat(values)));
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return lines([
    ...names.map((name) => `${name}: ${before[name] ?? "–"} → ${after[name] ?? "–"}`),
    ...(data.replaced ?? []).map((name) => `${name} replaced`),
    ...flat(data.request ?? {}).map(([name, text]) => `${name} ${text}`),
    ...flat(data.answer ?? {}).map(([name, text]) => `${name} ${text}`),
  ]);
}

function lines(texts) {
  return texts.length ? texts.map((text) => h("div", { class: "soft one-line", title: text }, text)) : h("span", { class: "none" }, "–");
}
