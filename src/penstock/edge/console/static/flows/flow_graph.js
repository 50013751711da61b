// The graph of a flow: nodes are buttons that select, edges one SVG below them.
//
// makeFlowGraph({ onSelect(node) }) returns { element, update(nodes), select(id), selected() }.  The layout is
// computed again only if nodes or edges have changed, or the width; states change in place.
// Keys: arrows move, Home and End go to the first and the last node, Enter selects.

import { h, replace, svg } from "../kit/dom.js";
import { childrenOf, orderLayers, placeLayers } from "./flow_layout.js";
import { groupProgress, memberName, memberState, stateTone, stateWord, timing } from "./flow_parts.js";
import { about, count } from "../kit/format.js";

const MAX_LARGE = 120; // more nodes are small squares without text
const LARGE = { width: 172, height: 54, gap: 12, rowGap: 14, layerGap: 40 };
const SMALL = { width: 20, height: 20, gap: 6, rowGap: 6, layerGap: 26 };

export function makeFlowGraph({ onSelect }) {
  const edges = svg("svg", { class: "flow-edges", "aria-hidden": "true" });
  const canvas = h("div", { class: "flow-canvas", role: "group", "aria-label": "Graph of the flow" });
  const box = h("div", { class: "flow-graph" }, canvas);
  const buttons = new Map();
  let nodes = [];
  let shape = "";
  let layers = [];
  let layout = null; // { places, rows, height } for the width
  let width = 0;
  let selected = null;
  let pointed = null; // the node whose edges are highlighted

  new ResizeObserver(([entry]) => {
    const next = Math.floor(entry.contentRect.width);
    if (next === width) return;
    width = next;
    place();
  }).observe(box);
  canvas.addEventListener("click", (event) => {
    const id = event.target.closest("[data-node]")?.dataset.node;
    if (id) select(id);
  });
  canvas.addEventListener("keydown", walk);
  canvas.addEventListener("pointerover", (event) => point(event.target.closest("[data-node]")?.dataset.node ?? null));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("focusin", (event) => {
    const id = event.target.dataset.node;
    for (const [other, button] of buttons) button.tabIndex = other === id ? 0 : -1;
    point(id);
  });

  function update(next) {
    nodes = next;
    const nextShape = nodes.map((node) => `${node.id}:${node.edges.map(({ parent, on }) => `${parent} ${on}`)}`).join("|");
    if (nextShape === shape) {
      for (const node of nodes) render(node, buttons.get(node.id));
      return;
    }
    shape = nextShape;
    layers = orderLayers(nodes.map(({ id, layer, edges: above }) => ({ id, layer, parents: above.map(({ parent }) => parent) })));
    const focused = canvas.contains(document.activeElement) ? document.activeElement.dataset.node : null;
    buttons.clear();
    for (const node of nodes) buttons.set(node.id, h("button", { type: "button", "data-node": node.id, tabindex: "-1" }));
    canvas.classList.toggle("small", nodes.length > MAX_LARGE);
    replace(canvas, edges, layers.flat().map((id) => buttons.get(id)));
    for (const node of nodes) render(node, buttons.get(node.id));
    (buttons.get(selected) ?? buttons.get(layers[0]?.[0]))?.setAttribute("tabindex", "0");
    buttons.get(focused)?.focus();
    place();
  }

  function render(node, button) {
    const { member, count: many } = node;
    const state = memberState(member);
    const tone = many > 1 ? "group" : `tone-${stateTone(state)}`;
    button.className = `node ${tone}${isBad(node) ? " bad" : ""}${isRunning(node) ? " moves" : ""}`;
    button.setAttribute("aria-pressed", String(node.id === selected));
    const text = describe(node);
    button.setAttribute("aria-label", text);
    button.title = text;
    if (canvas.classList.contains("small")) return;
    replace(
      button,
      h("span", { class: "node-name" }, many > 1 ? `${member.kind ?? memberName(member)} × ${count(many)}` : memberName(member)),
      many > 1 ? groupProgress(many, node.states) : h("span", { class: "node-state" }, stateText(member)),
    );
  }

  function place() {
    if (!width || !nodes.length) return;
    layout = placeLayers(layers, width, size());
    canvas.style.setProperty("--node-width", `${size().width}px`);
    for (const [id, { x, y }] of layout.places) {
      buttons.get(id).style.setProperty("left", `${x}px`);
      buttons.get(id).style.setProperty("top", `${y}px`);
    }
    canvas.style.setProperty("height", `${layout.height}px`);
    edges.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
    edges.setAttribute("height", layout.height);
    drawEdges();
  }

  /** On a phone, two nodes fit beside each other. */
  function size() {
    if (canvas.classList.contains("small")) return SMALL;
    return { ...LARGE, width: Math.min(LARGE.width, Math.floor((width - LARGE.gap) / 2)) };
  }

  function drawEdges() {
    if (!layout) return;
    const node_ = size();
    const paths = { done: "", ended: "", failed: "", pointed: "" };
    for (const node of nodes) {
      for (const { parent, on } of node.edges) {
        const path = curve(layout.places.get(parent), layout.places.get(node.id), node_);
        paths[on] += path;
        if (pointed !== null && (pointed === parent || pointed === node.id)) paths.pointed += path;
      }
    }
    replace(edges, Object.entries(paths).map(([on, d]) => d && svg("path", { class: `edge ${on}`, d })));
  }

  function point(id) {
    if (id === pointed) return;
    pointed = id;
    drawEdges();
  }

  function select(id) {
    const node = nodes.find((one) => one.id === id);
    if (!node) return;
    buttons.get(selected)?.setAttribute("aria-pressed", "false");
    selected = id;
    for (const [other, button] of buttons) button.tabIndex = other === id ? 0 : -1;
    buttons.get(id).setAttribute("aria-pressed", "true");
    onSelect(node);
  }

  function walk(event) {
    const id = event.target.dataset?.node;
    if (!id || !layout) return;
    const to = target(event.key, id);
    if (to === undefined) return;
    event.preventDefault();
    buttons.get(to)?.focus();
  }

  /** Left and right in a row; up and down to the nearest node of a parent, a child, or the next row. */
  function target(key, id) {
    const at = layout.rows.findIndex((row) => row.includes(id));
    const row = layout.rows[at];
    const n = row.indexOf(id);
    switch (key) {
      case "ArrowLeft":
        return row[n - 1] ?? layout.rows[at - 1]?.at(-1);
      case "ArrowRight":
        return row[n + 1] ?? layout.rows[at + 1]?.[0];
      case "ArrowUp":
        return nearest(id, nodes.find((node) => node.id === id).edges.map(({ parent }) => parent)) ?? nearest(id, layout.rows[at - 1] ?? []);
      case "ArrowDown":
        return nearest(id, childrenOf(nodes.map((node) => ({ id: node.id, parents: node.edges.map(({ parent }) => parent) }))).get(id)) ?? nearest(id, layout.rows[at + 1] ?? []);
      case "Home":
        return layout.rows[0][0];
      case "End":
        return layout.rows.at(-1).at(-1);
    }
    return undefined;
  }

  function nearest(id, others) {
    const from = layout.places.get(id).x;
    const far = (other) => Math.abs(layout.places.get(other).x - from);
    return others.toSorted((one, other) => far(one) - far(other))[0];
  }

  return { element: box, update, select, selected: () => nodes.find((node) => node.id === selected) };
}

/** A whole sentence, for screen readers and as a title. */
export function describe(node) {
  const { member, count: many } = node;
  if (many > 1) {
    const states = Object.entries(node.states).map(([state, some]) => `${count(some)} ${stateWord(state)}`);
    return `${count(many)} × ${member.kind ?? memberName(member)}: ${states.join(", ")}`;
  }
  const { blocked, queued, ran } = timing(member);
  const times = [
    blocked && `waited ${about(blocked)} for its parents`,
    queued !== null && `${about(queued)} in its queue`,
    ran !== null && `ran ${about(ran)}`,
  ].filter(Boolean);
  const waits = member.state === "blocked" && member.waits_for ? ` for ${count(member.waits_for)}` : "";
  const why = member.reason ? ` (${member.reason})` : "";
  return `${memberName(member)}: ${stateWord(memberState(member))}${waits}${why}${times.length ? `; ${times.join(", ")}` : ""}`;
}

export function isBad({ member, states }) {
  return states ? (states.dead ?? 0) > 0 : member.state === "dead";
}

function isRunning({ member, count: many }) {
  return many === 1 && member.message_state === "leased";
}

function stateText(member) {
  const { queued, ran } = timing(member);
  const word = stateWord(memberState(member));
  if (member.state === "blocked") return member.waits_for ? `${word} for ${count(member.waits_for)}` : word;
  if (ran !== null) return `${word} · ${about(ran)}`;
  return member.state === "released" && queued !== null ? `${word} · ${about(queued)}` : word;
}

function curve(from, to, size) {
  if (from.y === to.y) {
    const middle = from.y + size.height / 2;
    return `M${(from.x + size.width).toFixed(1)} ${middle}H${to.x.toFixed(1)}`;
  }
  const [x1, y1] = [from.x + size.width / 2, from.y + size.height];
  const [x2, y2] = [to.x + size.width / 2, to.y];
  const bend = Math.max(12, Math.min(60, (y2 - y1) / 2));
  return `M${x1.toFixed(1)} ${y1}C${x1.toFixed(1)} ${y1 + bend} ${x2.toFixed(1)} ${y2 - bend} ${x2.toFixed(1)} ${y2}`;
}
