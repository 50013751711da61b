// What can be done with messages by hand, one or many: what it means, and its command and call.

import { call, part } from "./api.js";
import { count } from "./format.js";
import { localText, utcText } from "./filters.js";

const REASON = { name: "reason", label: "Reason", hint: "For the history; may be empty." };

const ACTS = {
  retry: {
    label: "Retry",
    text: "It goes back in line with all its attempts, at the back.",
    order: () => ({ act: "redrive" }),
    past: "brought back",
  },
  now: {
    label: "Retry now",
    text: "It is not waited for its due date: it can be claimed at once.",
    order: () => ({ act: "reschedule", delay_ms: 0 }),
    past: "brought forward",
  },
  complete: {
    label: "Complete",
    text: "It counts as done, without having been handled.",
    fields: [REASON],
    order: ({ reason }) => ({ act: "complete", ...(reason && { reason }) }),
    past: "completed",
  },
  reschedule: {
    label: "Due date",
    confirm: "Set due date",
    text: "It can be claimed from then on.",
    fields: [{ name: "due_at", label: "Due at", type: "datetime-local", step: 1, isRequired: true, hint: "In your own time." }],
    order: ({ due_at: local }) => {
      const due_at = utcText(local);
      if (!due_at) throw new Error("Say when it is due.");
      return { act: "reschedule", due_at };
    },
    past: "rescheduled",
  },
  bury: {
    label: "Bury",
    text: "It is put among the dead ones, where it rests until somebody brings it back.",
    isDanger: true,
    fields: [REASON],
    order: ({ reason }) => ({ act: "bury", ...(reason && { reason }) }),
    past: "buried",
  },
  cancel: {
    label: "Cancel",
    confirm: "Cancel for good",
    dismiss: "Back",
    text: "It will not be handled. What is kept of it is a line of history.",
    isDanger: true,
    fields: [REASON],
    order: ({ reason }) => ({ act: "cancel", ...(reason && { reason }) }),
    past: "cancelled",
  },
};

// The same acts on what is leased.
for (const name of ["bury", "cancel"]) {
  const act = ACTS[name];
  ACTS[`${name}Running`] = {
    ...act,
    text: `It is taken from its worker, which is told to stop within seconds. ${act.text}`,
    order: (values) => ({ ...act.order(values), is_running_ok: true }),
  };
}

const OF_STATE = {
  ready: ["complete", "reschedule", "bury", "cancel"],
  waiting: ["now", "complete", "reschedule", "bury", "cancel"],
  dead: ["retry", "cancel"],
  leased: ["buryRunning", "cancelRunning"],
};

/** The acts that fit one message. */
export function actsOn(message) {
  if (message.finished_at) return []; // it has left its queue: this is what history keeps of it
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
    label: act.label,
    confirm: act.confirm,
    dismiss: act.dismiss,
    role: "operate",
    isDanger: act.isDanger,
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

/** chosen: { ids } or { where }; what fits is counted before anything is done. */
export function actionOnMany(queue, chosen, act, then) {
  const path = `/v1/queues/${part(queue)}/messages/bulk`;
  const body = (values) => ({ ...act.order(values), ...chosen });
  const isByIds = chosen.ids !== undefined;
  return {
    label: act.label,
    confirm: act.confirm,
    dismiss: act.dismiss,
    role: "operate",
    isDanger: act.isDanger,
    title: isByIds ? `${act.label}: what is selected` : `${act.label}: all that fit`,
    text: `Of each of them: ${act.text.charAt(0).toLowerCase()}${act.text.slice(1)}`,
    fields: filledIn(act.fields, {}),
    count: async (values) => {
      const told = await call("POST", path, { ...body(values), is_dry_run: true });
      return told.matched;
    },
    request: (values) => ({ method: "POST", path, body: body(values) }),
    command: (values) => {
      const { act: verb, ...rest } = act.order(values);
      if (isByIds) return ["messages", verb, ...chosen.ids, ...flags(rest)];
      return ["messages", "bulk", queue, verb, ...flags(chosen.where), ...flags(rest)];
    },
    done: (told) =>
      [
        `${count(told.changed)} of ${count(told.matched)} ${act.past}.`,
        told.refused ? `${count(told.refused)} were not in a state for it any more.` : "",
        told.is_cut ? "There are more: do it again for the others." : "",
      ].join(" ").trim(),
    then,
  };
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
