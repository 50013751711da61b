// Manual acts on one or many messages: their texts, commands and API calls.

import { call, part } from "../server/api.js";
import { count } from "../kit/format.js";
import { localText, utcText } from "../kit/filters.js";

const REASON = { name: "reason", label: "Reason", hint: "For the history; optional." };

const ACTS = {
  retry: {
    label: "Retry",
    text: "It returns to the back of its queue with all its attempts.",
    order: () => ({ act: "redrive" }),
    past: "redriven",
  },
  now: {
    label: "Retry now",
    text: "It can be claimed at once, before its due date.",
    order: () => ({ act: "reschedule", delay_ms: 0 }),
    past: "made ready",
  },
  complete: {
    label: "Complete",
    text: "It counts as done although it was not handled.",
    fields: [REASON],
    order: ({ reason }) => ({ act: "complete", ...(reason && { reason }) }),
    past: "completed",
  },
  reschedule: {
    label: "Due date",
    confirm: "Set due date",
    text: "It can be claimed from this date on.",
    fields: [{ name: "due_at", label: "Due at", type: "datetime-local", step: 1, isRequired: true, hint: "In your time zone." }],
    order: ({ due_at: local }) => {
      const due_at = utcText(local);
      if (!due_at) throw new Error("Enter a due date.");
      return { act: "reschedule", due_at };
    },
    past: "rescheduled",
  },
  bury: {
    label: "Bury",
    text: "It becomes a dead message and stays one until it is redriven.",
    isDanger: true,
    fields: [REASON],
    order: ({ reason }) => ({ act: "bury", ...(reason && { reason }) }),
    past: "buried",
  },
  cancel: {
    label: "Cancel",
    confirm: "Cancel permanently",
    dismiss: "Back",
    text: "It will not be handled; only its history is kept.",
    isDanger: true,
    fields: [REASON],
    order: ({ reason }) => ({ act: "cancel", ...(reason && { reason }) }),
    past: "cancelled",
  },
};

// The same acts on leased messages.
for (const name of ["bury", "cancel"]) {
  const act = ACTS[name];
  ACTS[`${name}Running`] = {
    ...act,
    text: `Its worker loses the lease and stops within seconds. ${act.text}`,
    order: (values) => ({ ...act.order(values), is_running_ok: true }),
  };
}

const OF_STATE = {
  ready: ["complete", "reschedule", "bury", "cancel"],
  waiting: ["now", "complete", "reschedule", "bury", "cancel"],
  dead: ["retry", "cancel"],
  leased: ["buryRunning", "cancelRunning"],
};

/** Whether it is a member of a flow that waits for others, or was never sent. */
export function isUnsent(message) {
  const isQueued = Boolean(message.due_at) || message.state === "leased" || message.state === "dead";
  return Boolean(message.flow_id) && !isQueued && !message.finished_at;
}

/** The acts that the state of a message allows. */
export function actsOn(message) {
  if (isUnsent(message)) return message.state === "waiting" ? [ACTS.complete, ACTS.cancel] : [];
  if (message.finished_at) return []; // it left its queue; only its history is shown
  const names = [...(OF_STATE[message.state] ?? [])];
  const isDeadLetter = message.dead_from && message.state !== "dead" && message.state !== "leased";
  if (isDeadLetter && names.length) names.unshift("retry");
  return names.map((name) => ACTS[name]);
}

export function actsOnState(state) {
  return (OF_STATE[state] ?? []).map((name) => ACTS[name]);
}

export function actionOnOne(message, act, then) {
  const path = `/v1/messages/${part(message.id)}`;
  return {
    ...shown(act),
    title: `${act.label}: one message`,
    text: act.text,
    fields: filledIn(act.fields, message),
    request: (values) => {
      const { act: verb, ...rest } = act.order(values);
      if (verb === "reschedule") return { method: "PATCH", path, body: rest };
      return { method: "POST", path: `${path}/${verb}`, body: verb === "redrive" ? undefined : rest };
    },
    command: (values) => {
      const { act: verb, ...rest } = act.order(values);
      return ["messages", verb, message.id, ...flags(rest)];
    },
    done: (answer) => `The message is ${answer.state}.`,
    then,
  };
}

/** chosen: { ids } or { where }; matching messages are counted first. */
export function actionOnMany(queue, chosen, act, then) {
  const path = `/v1/queues/${part(queue)}/messages/bulk`;
  const body = (values) => ({ ...act.order(values), ...chosen });
  const isByIds = chosen.ids !== undefined;
  return {
    ...shown(act),
    title: isByIds ? `${act.label}: selected messages` : `${act.label}: all matching messages`,
    text: `For each of them: ${act.text.charAt(0).toLowerCase()}${act.text.slice(1)}`,
    fields: filledIn(act.fields, {}),
    count: async (values) => {
      const counted = await call("POST", path, { ...body(values), is_dry_run: true });
      return counted.matched;
    },
    request: (values) => ({ method: "POST", path, body: body(values) }),
    command: (values) => {
      const { act: verb, ...rest } = act.order(values);
      if (isByIds) return ["messages", verb, ...chosen.ids, ...flags(rest)];
      return ["messages", "bulk", queue, verb, ...flags(chosen.where), ...flags(rest)];
    },
    done: (result) =>
      [
        `${count(result.changed)} of ${count(result.matched)} ${act.past}.`,
        result.refused ? `${count(result.refused)} were rejected: their state had changed.` : "",
        result.is_cut ? "More messages match: repeat this for the rest." : "",
      ].join(" ").trim(),
    then,
  };
}

function shown({ label, confirm, dismiss, isDanger }) {
  return { label, confirm, dismiss, role: "operate", isDanger };
}

function filledIn(fields, message) {
  return (fields ?? []).map((field) =>
    field.name === "due_at" ? { ...field, value: localText(message.due_at) } : field,
  );
}

function flags(values) {
  return Object.entries(values).flatMap(([name, value]) => {
    if (name === "delay_ms") return ["--delay", `${value}ms`];
    if (name === "is_running_ok") return ["--running"];
    return [`--${name.replaceAll("_", "-")}`, value];
  });
}
