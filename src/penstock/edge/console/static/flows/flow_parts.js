// What pages show of flows and their members: states, progress, timing, links.

import { part } from "../server/api.js";
import { h, svg } from "../kit/dom.js";
import { about, compact, count, serverNow } from "../kit/format.js";
import { badge } from "../kit/parts.js";

// By the state of a member; of one in its queue, by the state of its message: a word and a tone.
const STATES = {
  blocked: ["waits", "waiting"],
  waiting: ["delayed", "waiting"],
  ready: ["in queue", "ready"],
  released: ["in queue", "ready"],
  leased: ["running", "leased"],
  done: ["done", "done"],
  dead: ["dead", "dead"],
  cancelled: ["cancelled", "soft"],
  skipped: ["skipped", "soft"],
};
const FLOW_TONES = { running: "info", done: "good", failed: "bad", cancelled: "" };
const NOT_SENT = ["inputs_too_large", "inputs_unfit", "queue_removed"]; // a redrive tries these again

export const MEMBER_STATES = ["blocked", "released", "done", "dead", "cancelled", "skipped"];

export function stateWord(state) {
  return STATES[state]?.[0] ?? state;
}

export function stateTone(state) {
  return STATES[state]?.[1] ?? "soft";
}

export function memberState(member) {
  return member.state === "released" ? (member.message_state ?? "released") : member.state;
}

export function memberBadge(member) {
  const state = memberState(member);
  return badge(stateWord(state), `tone-badge tone-${stateTone(state)}`);
}

export function memberName(member) {
  const name = member.name ?? member.kind ?? `…${member.id.slice(-12)}`;
  const role = member.role ?? "member";
  return role === "member" ? name : `${role}: ${name}`;
}

export function canRedrive(member) {
  return member.state === "dead" || (member.state === "cancelled" && NOT_SENT.includes(member.reason));
}

export function flowBadges(flow) {
  return [
    badge(flow.state, FLOW_TONES[flow.state] ?? ""),
    flow.is_open && badge("open", "warn", "More members may follow; it does not end before it is closed"),
    isFailing(flow) && flow.state === "running" && badge("failing", "bad", "A member has failed"),
  ].filter(Boolean);
}

export function isFailing(flow) {
  return flow.failed > 0 && flow.state !== "cancelled";
}

export function flowLink(flow, text = null) {
  return h("a", { href: `/console/flows/${part(flow.id)}`, title: flow.id }, text ?? flow.name);
}

/** The progress of a flow: its bar and how many of its members have ended. */
export function flowProgress(flow) {
  return progress(flow.total, [
    ["done", flow.done, "done"],
    ["dead", flow.failed, "failed"],
    ["soft", flow.skipped ?? 0, "skipped"],
  ]);
}

/** The same for members that are alike, by their states. */
export function groupProgress(total, states) {
  const of = (...names) => names.reduce((sum, name) => sum + (states[name] ?? 0), 0);
  return progress(total, [
    ["done", of("done"), "done"],
    ["dead", of("dead", "cancelled"), "failed"],
    ["soft", of("skipped"), "skipped"],
    ["ready", of("released"), "in queue or running", true],
  ]);
}

/** parts: [tone, count, word, hasNotEnded?] in their order from the left. */
function progress(total, parts) {
  const ended = parts.reduce((sum, [, many, , hasNotEnded]) => sum + (hasNotEnded ? 0 : many), 0);
  const words = parts.filter(([, many]) => many).map(([, many, word]) => `${count(many)} ${word}`);
  let left = 0;
  const bars = parts.map(([tone, many]) => {
    const width = total ? (100 * many) / total : 0;
    const x = left;
    left += width;
    return many > 0 && svg("rect", { class: `tone-${tone}`, x: `${x}%`, width: `${width}%`, height: "100%" });
  });
  return h(
    "span",
    { class: "progress", title: words.join(", ") || "nothing has ended" },
    svg("svg", { class: "progress-bar", "aria-hidden": "true" }, bars),
    h("span", { class: "progress-text" }, `${compact(ended)} / ${compact(total)}`),
    h("span", { class: "unseen" }, words.length ? `: ${words.join(", ")}` : ""),
  );
}

/** How long it waited for its parents, waited in its queue and ran, in ms; null: it did not (yet). */
export function timing(member) {
  const planned = Number.parseInt(member.id.slice(0, 8) + member.id.slice(9, 13), 16);
  const [sent, first, last, ended] = ["sent_at", "first_leased_at", "leased_at", "ended_at"].map((name) =>
    member[name] ? Date.parse(member[name]) : null,
  );
  const isIn = member.state === "released";
  const isRunning = member.message_state === "leased";
  const until = ended ?? serverNow();
  const span = (from, to) => (from === null || to === null ? null : Math.max(0, to - from));
  return {
    blocked: span(planned, sent ?? until),
    queued: sent === null ? null : span(sent, first ?? (isIn ? until : null)),
    ran: last === null || (isIn && !isRunning) ? null : span(last, isRunning ? serverNow() : ended),
  };
}

export function took(ms) {
  return ms === null ? h("span", { class: "none" }, "–") : about(ms);
}
