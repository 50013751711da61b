// One flow: its progress, its graph, what it waits for; the list of its members.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { h, replace } from "../kit/dom.js";
import { flowButtons, redriveMember } from "./flow_acts.js";
import { describe, isBad, makeFlowGraph } from "./flow_graph.js";
import {
  MEMBER_STATES, canRedrive, flowBadges, flowLink, flowProgress, groupProgress, isFailing, memberBadge, memberName,
  memberState, stateWord, timing, took,
} from "./flow_parts.js";
import { about, count } from "../kit/format.js";
import { badge, card, facts, notice, pageHead, when } from "../kit/parts.js";
import { whileLive } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { duration } from "./flows_page.js";
import { messageLink } from "../pages/messages.js";

const PAGE = 50;
const MAX_NODES = 1_000;

export const flow = {
  path: "/console/flows/{flow}",
  title: "Flow",
  under: "/console/flows",

  async show(view) {
    const path = `/v1/flows/${part(view.params.flow)}`;
    const ask = () => get(`${path}/graph`, { limit: MAX_NODES }, { signal: view.signal });
    let found = await ask();
    const top = h("div");
    const middle = h("div");
    const panel = h("div", { class: "node-panel", role: "region", "aria-label": "The selected member" });
    const showNode = (node) => replace(panel, nodePanel(view, found.flow, node));
    const graph = makeFlowGraph({ onSelect: showNode });
    const table = nodeTable(found.flow);
    const key = h("div", { class: "legend", "aria-hidden": "true" });
    const drawn = card("Graph", key, graph.element, panel, asTable(table));
    let shownTop = "";
    const update = (next) => {
      found = next;
      const nodes = next.nodes.map(nodeOf);
      drawn.hidden = !nodes.length;
      // Screen readers read an alert again when it is replaced.
      const nextTop = JSON.stringify([next.flow.state, next.flow.is_open, next.flow.failed, next.is_cut]);
      if (nextTop !== shownTop && !busyIn(top)) {
        shownTop = nextTop;
        replace(top, head(view, next.flow), alerts(next));
      }
      if (!busyIn(middle)) replace(middle, summary(next.flow, nodes));
      replace(key, legend(nodes));
      graph.update(nodes);
      table.update(nodes);
      if (graph.selected() && !busyIn(panel)) showNode(graph.selected());
      return nodes;
    };
    const nodes = update(found);
    replace(view.root, top, middle, drawn);
    const worst = nodes.find(isBad);
    if (worst) graph.select(worst.id);
    whileLive(view, async () => {
      // A flow that has ended may still be redriven: its row is cheap to read.
      if (found.flow.state !== "running") {
        const now = await get(path, {}, { signal: view.signal });
        if (now.state === found.flow.state) return;
      }
      update(await ask());
    });
  },
};

export const flowMembers = {
  path: "/console/flows/{flow}/members",
  title: "Members",
  under: "/console/flows",

  async show(view) {
    const path = `/v1/flows/${part(view.params.flow)}`;
    const [cursor, state, like] = ["cursor", "state", "like"].map((name) => view.query.get(name) ?? "");
    const ask = () => get(`${path}/members`, { state, like, cursor, limit: PAGE }, { signal: view.signal });
    const [found, page] = await Promise.all([get(path, {}, { signal: view.signal }), ask()]);
    const table = makeTable({
      caption: `Members of ${found.name}`,
      columns: memberColumns(view, found),
      rows: page.members,
      key: (member) => member.id,
      empty: "No member matches.",
    });
    replace(
      view.root,
      pageHead(`Members of ${found.name}`, {
        badges: flowBadges(found),
        lead: like && ["Only members like one of them. ", h("a", { href: changed(view.query, { like: null, cursor: null }) }, "Show all members")],
        back: { label: found.name, href: `/console/flows/${part(found.id)}` },
      }),
      stateTabs(view, state),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: page.next && changed(view.query, { cursor: page.next }),
      }),
    );
    whileLive(view, async () => table.update((await ask()).members));
  },
};

/** A node of the API's graph; fields with defaults are left out there. */
function nodeOf({ member, layer, count: many = 1, states = null }) {
  const edges = (member.after ?? []).map(({ member: parent, on = "done" }) => ({ parent, on }));
  return { id: member.id, member, layer, count: many, states: many > 1 ? states : null, edges };
}

/** Whether the user is about to press a button there. */
function busyIn(element) {
  return element.contains(document.activeElement) || document.querySelector("dialog[open]") !== null;
}

function head(view, found) {
  return pageHead(found.name, {
    badges: flowBadges(found),
    actions: [
      ...flowButtons(found, () => view.again()),
      h("a", { class: "button", href: `/console/flows/${part(found.id)}/members` }, "All members"),
    ],
    lead: [h("code", { class: "id" }, found.id), " · ", h("a", { href: `/console/flows?name=${part(found.name)}` }, "all flows of this name")],
    back: { label: "Flows", href: "/console/flows" },
  });
}

function alerts({ flow: found, is_cut: isCut }) {
  return [
    isFailing(found) && notice(`${count(found.failed)} of its members failed, or were cancelled because others did.`, "bad"),
    isCut && notice(`Only the first ${count(MAX_NODES)} nodes of its graph are shown.`, "warn"),
  ];
}

function summary(found, nodes) {
  return card(
    "Flow",
    facts([
      ["Progress", flowProgress(found)],
      ["Done", count(found.done)],
      ["Failed", count(found.failed)],
      ["Skipped", count(found.skipped)],
      ["Created", when(found.created_at)],
      [found.ended_at ? "Took" : "Running for", about(duration(found))],
      found.ended_at && ["Ended", when(found.ended_at)],
      found.created_by && ["Created by", messageLink(found.created_by, "a job")],
    ].filter(Boolean)),
    waitsFor(found, nodes),
    callbacks(nodes),
  );
}

/** What keeps a running flow from going on. */
function waitsFor(found, nodes) {
  if (found.state !== "running") return null;
  const running = nodes.filter(({ member, count: many }) => many === 1 && member.state === "released");
  const groups = nodes.filter(({ count: many, states }) => many > 1 && states.released);
  const parts = [
    ...running.map(({ member }) => h("li", null, messageLink(member.id, memberName(member)), ` ${stateWord(memberState(member))}`)),
    ...groups.map((node) => h("li", null, groupLink(found, node), `: ${count(node.states.released)} in their queues or running`)),
    found.is_open && !found.remaining && h("li", null, "its program, which may add members or close it"),
  ].filter(Boolean);
  const shown = parts.slice(0, 8);
  const more = parts.length - shown.length;
  return parts.length > 0 && h("div", { class: "waits-for" }, h("h3", null, "It waits for"), h("ul", { class: "soft-list" }, shown, more > 0 && h("li", null, `and ${count(more)} more`)));
}

function callbacks(nodes) {
  const found = nodes.filter(({ member }) => (member.role ?? "member") !== "member");
  if (!found.length) return null;
  return h(
    "div",
    { class: "waits-for" },
    h("h3", null, "Callbacks"),
    h("ul", { class: "soft-list" }, found.map(({ member }) => h("li", null, messageLink(member.id, memberName(member)), " ", memberBadge(member)))),
  );
}

function groupLink(found, { member, count: many }) {
  const href = `/console/flows/${part(found.id)}/members?like=${part(member.id)}`;
  return h("a", { href }, `${member.kind ?? memberName(member)} × ${count(many)}`);
}

/** What the lines mean that are there. */
function legend(nodes) {
  const there = new Set(nodes.flatMap((node) => node.edges.map(({ on }) => on)));
  return ["done", "ended", "failed"]
    .filter((on) => there.has(on))
    .map((on) => h("span", { class: "key" }, h("span", { class: `edge-key ${on}` }), `when ${on}`));
}

function nodePanel(view, found, node) {
  const { member, count: many } = node;
  const created = (member.created ?? []).map((id) => [" ", flowLink({ id }, "a flow that it created")]);
  if (many > 1) {
    return [
      h("h3", null, groupLink(found, node)),
      h("p", null, groupProgress(many, node.states)),
      h("p", { class: "soft" }, Object.entries(node.states).map(([state, some]) => [
        h("a", { href: `/console/flows/${part(found.id)}/members?like=${part(member.id)}&state=${state}` }, `${count(some)} ${stateWord(state)}`), " ",
      ])),
    ];
  }
  const { blocked, queued, ran } = timing(member);
  return [
    h("h3", null, messageLink(member.id, memberName(member)), " ", memberBadge(member), created),
    facts([
      ["Queue", h("a", { href: `/console/queues/${part(member.queue)}` }, member.queue)],
      member.kind && ["Kind", member.kind],
      ["Waited for its parents", took(blocked || null)],
      ["Waited in its queue", took(queued)],
      ["Ran", took(ran)],
      member.attempts && ["Attempts", count(member.attempts)],
      member.reason && ["Reason", member.reason],
    ].filter(Boolean)),
    h("p", null, redriveButton(view, found, member)),
  ];
}

function asTable(table) {
  return h("details", { class: "forms" }, h("summary", null, "The graph as a table"), table.element);
}

function nodeTable(found) {
  return makeTable({
    caption: "Nodes of the graph",
    key: (node) => `node ${node.id}`,
    columns: [
      { label: "Member", isMain: true, value: (node) => (node.count > 1 ? groupLink(found, node) : messageLink(node.id, memberName(node.member))) },
      { label: "State", isWide: true, value: (node) => (node.count > 1 ? groupProgress(node.count, node.states) : memberBadge(node.member)) },
      { label: "Layer", isNumber: true, value: (node) => count(node.layer) },
      { label: "In words", isWide: true, value: describe },
      { label: "Parents", isNumber: true, value: (node) => count(node.edges.length) },
    ],
  });
}

function stateTabs(view, current) {
  const tab = (state, text) =>
    h("a", { href: changed(view.query, { state, cursor: null }), "aria-current": state === current ? "page" : null }, text);
  return h("nav", { class: "tabs", "aria-label": "States" }, tab("", "all"), MEMBER_STATES.map((state) => tab(state, stateWord(state))));
}

function memberColumns(view, found) {
  return [
    {
      label: "Member",
      isMain: true,
      value: (member) => [messageLink(member.id, memberName(member)), member.name && member.kind && member.kind !== member.name && [" ", badge(member.kind)]],
    },
    { label: "State", value: (member) => [memberBadge(member), " ", redriveButton(view, found, member)] },
    { label: "Queue", value: (member) => h("a", { href: `/console/queues/${part(member.queue)}` }, member.queue) },
    { label: "For parents", isNumber: true, value: (member) => took(timing(member).blocked || null) },
    { label: "In queue", isNumber: true, value: (member) => took(timing(member).queued) },
    { label: "Ran", isNumber: true, value: (member) => took(timing(member).ran) },
    { label: "Reason", isWide: true, value: (member) => member.reason ?? (member.waits_for ? `waits for ${count(member.waits_for)}` : "–") },
  ];
}

function redriveButton(view, found, member) {
  if (!canRedrive(member) || found.state === "cancelled") return null;
  return actionButton(redriveMember(found, member, () => view.again()), { isSmall: true });
}
