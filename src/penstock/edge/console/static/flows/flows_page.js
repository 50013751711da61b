// Flows and batches: those with failed members first, then all, newest first.

import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { filterForm } from "../kit/filters.js";
import { flowBadges, flowLink, flowProgress } from "./flow_parts.js";
import { about, count, serverNow } from "../kit/format.js";
import { card, pageHead, when } from "../kit/parts.js";
import { whileLive } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";

const PAGE = 50;
const MAX_FAILING = 10;
const FAILING = "failing"; // a filter that is not a state
const STATES = [["", "any"], FAILING, "running", "done", "failed", "cancelled"];

export const flows = {
  path: "/console/flows",
  title: "Flows",
  nav: "Flows",
  icon: "flows",
  key: "f",

  async show(view) {
    const cursor = view.query.get("cursor") ?? "";
    const [name, state] = ["name", "state"].map((one) => view.query.get(one) ?? "");
    const ask = () => get("/v1/flows", { name, ...filterOf(state), cursor, limit: PAGE }, { signal: view.signal });
    const askFailing = () => get("/v1/flows", { is_failing: true, limit: MAX_FAILING }, { signal: view.signal });
    const isFirst = !cursor && !name && !state;
    const [page, bad] = await Promise.all([ask(), isFirst ? askFailing() : { flows: [] }]);
    const failing = makeFailing();
    failing.update(bad);
    const table = makeTable({
      caption: "Flows",
      columns: columns(),
      rows: page.flows,
      key: (flow) => flow.id,
      empty: name || state ? "No flow matches." : "No flows yet.",
    });
    replace(
      view.root,
      pageHead("Flows", { lead: "Jobs that wait for each other, and batches with callbacks." }),
      failing.element,
      filterForm(view, [
        { name: "state", label: "State", options: STATES },
        { name: "name", label: "Name" },
      ]),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: page.next && changed(view.query, { cursor: page.next }),
      }),
    );
    whileLive(view, async () => {
      const [next, worse] = await Promise.all([ask(), isFirst ? askFailing() : { flows: [] }]);
      table.update(next.flows);
      failing.update(worse);
    });
  },
};

function filterOf(state) {
  return state === FAILING ? { is_failing: true } : { state };
}

/** A card that is there only if a flow has failed members. */
function makeFailing() {
  const table = makeTable({
    caption: "Flows with failed members",
    columns: [
      { label: "Flow", isMain: true, value: name },
      { label: "Failed", isNumber: true, value: (flow) => count(flow.failed) },
      { label: "Progress", isWide: true, value: flowProgress },
      { label: "Created", value: (flow) => when(flow.created_at) },
    ],
    key: (flow) => `failing ${flow.id}`,
  });
  const all = h("a", { href: "/console/flows?state=failing" }, "All flows with failed members");
  const head = h("div", { class: "card-head" }, h("h2", null, "Needs attention"), all);
  const element = h("section", { class: "card problem-list" }, head, table.element);
  return {
    element,
    update(found) {
      element.hidden = !found.flows.length;
      all.hidden = !found.next;
      table.update(found.flows);
    },
  };
}

function name(flow) {
  return [flowLink(flow), flowBadges(flow).map((badge) => [" ", badge])];
}

function columns() {
  return [
    { label: "Flow", isMain: true, value: name },
    { label: "Progress", isWide: true, value: flowProgress },
    { label: "Failed", isNumber: true, value: (flow) => count(flow.failed) },
    { label: "Created", value: (flow) => when(flow.created_at) },
    { label: "Took", isNumber: true, value: (flow) => about(duration(flow)) },
  ];
}

export function duration(flow) {
  const until = flow.ended_at ? Date.parse(flow.ended_at) : serverNow();
  return Math.max(0, until - Date.parse(flow.created_at));
}
