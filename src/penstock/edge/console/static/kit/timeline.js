// The timeline of a message, oldest step first.

import { h } from "./dom.js";
import { about, instant } from "./format.js";
import { isUnsent } from "../actions/message_acts.js";
import { badge, when } from "./parts.js";

const TONES = {
  done: "good",
  dead: "bad",
  cancelled: "",
  failed: "bad",
  expired: "warn",
  timed_out: "bad",
  crashed: "bad",
  released: "",
  snoozed: "info",
};
const WORDS = { expired: "lease expired", timed_out: "timed out" };

export function timeline(message, { endings, attempts }) {
  const latest = attempts.findLast(({ error }) => error);
  const steps = [
    step(message.sent_at, isUnsent(message) ? "planned" : "sent", "info", null),
    ...attempts.map((attempt) => ofAttempt(attempt, attempt === latest)),
    ...endings.map((ending) => ofEnding(ending, attempts)),
    message.state === "leased" && step(message.leased_at ?? message.sent_at, "leased", "warn", by(message.leased_by)),
  ].filter(Boolean);
  // Equal instants keep their order: attempts before endings.
  steps.sort((one, other) => one.at - other.at);
  if (message.state === "waiting" && message.due_at) steps.push(step(message.due_at, "due", "info", "It waits until then."));
  return h("ol", { class: "timeline" }, steps.map(({ element }) => element));
}

function ofAttempt(attempt, isLatest) {
  const took = attempt.leased_at ? Date.parse(attempt.ended_at) - Date.parse(attempt.leased_at) : null;
  const details = [
    `attempt under lease ${attempt.lease_no}`,
    took !== null && `took ${about(Math.max(0, took))}`,
    by(attempt.leased_by),
  ];
  return step(attempt.ended_at, attempt.outcome, TONES[attempt.outcome], details, errorBlock(attempt.error, attempt.error_line, isLatest));
}

function ofEnding(ending, attempts) {
  const took = ending.leased_at && ending.outcome === "done" ? Date.parse(ending.finished_at) - Date.parse(ending.leased_at) : null;
  const details = [
    ending.reason,
    took !== null && `took ${about(Math.max(0, took))}`,
    ending.outcome === "done" && by(ending.leased_by),
    `in ${ending.queue}`,
  ];
  // Usually it repeats the error of the last attempt.
  const isTold = attempts.some(({ error }) => error === ending.last_error);
  const error = ending.outcome === "dead" && !isTold ? ending.last_error : null;
  return step(ending.finished_at, ending.outcome, TONES[ending.outcome], details, errorBlock(error, ending.error_line, true));
}

/** The whole error of the latest attempt; those of earlier ones are folded to one line. */
function errorBlock(error, line, isOpen) {
  if (!error) return null;
  const whole = h("pre", { class: "step-error", tabindex: "0", "aria-label": "Error" }, error);
  if (error === line) return whole;
  return h("details", { open: isOpen, class: "step-details" }, h("summary", null, line || "Error"), whole);
}

function by(holder) {
  return holder && `by ${holder}`;
}

function step(at, what, tone, details, error = null) {
  const parts = [details].flat().filter(Boolean);
  return {
    at: Date.parse(at),
    element: h(
      "li",
      { "data-step": what, class: tone || null },
      h("div", { class: "step-head" }, badge(WORDS[what] ?? what, tone), " ", h("span", { class: "soft", title: instant(at) }, when(at))),
      parts.length ? h("div", { class: "soft" }, parts.join(" · ")) : null,
      error,
    ),
  };
}
