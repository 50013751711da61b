// Actions on flows: redrive all that failed or one member, cancel, close.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { memberName } from "./flow_parts.js";
import { count } from "../kit/format.js";

/** The buttons that the state of a flow allows. */
export function flowButtons(flow, then) {
  return [
    flow.failed > 0 && flow.state !== "cancelled" && actionButton(redriveFlow(flow, then)),
    flow.is_open && actionButton(closeFlow(flow, then)),
    flow.state === "running" && actionButton(cancelFlow(flow, then)),
  ].filter(Boolean);
}

export function redriveMember(flow, member, then) {
  return {
    ...redrive(flow, { member: member.id }, ["--member", member.id], then),
    title: `Redrive ${memberName(member)}?`,
    text: "It returns to its queue with all its attempts. Members that were cancelled or skipped because of it wait for it again.",
  };
}

function redriveFlow(flow, then) {
  return {
    ...redrive(flow, {}, [], then),
    title: `Redrive ${flow.name}?`,
    text: "All dead members return to their queues with all their attempts. Members that were cancelled or skipped because of them wait for them again.",
  };
}

function redrive(flow, body, flags, then) {
  return {
    label: "Redrive",
    role: "operate",
    request: () => ({ method: "POST", path: `/v1/flows/${part(flow.id)}/redrive`, body }),
    command: () => ["flows", "redrive", flow.id, ...flags],
    done: (answer) => `${count(answer.redriven)} ${answer.redriven === 1 ? "member runs" : "members run"} again.`,
    then,
  };
}

function cancelFlow(flow, then) {
  return {
    label: "Cancel",
    confirm: "Cancel permanently",
    dismiss: "Back",
    role: "operate",
    isDanger: true,
    title: `Cancel ${flow.name}?`,
    text: "Members that wait never run, those in queues are cancelled, and running ones are taken from their workers. A cancelled flow cannot be redriven.",
    noun: "member",
    count: async () => (await get(`/v1/flows/${part(flow.id)}`)).remaining,
    fields: [{ name: "reason", label: "Reason", hint: "For the history; optional." }],
    request: ({ reason }) => ({ method: "POST", path: `/v1/flows/${part(flow.id)}/cancel`, body: reason ? { reason } : {} }),
    command: ({ reason }) => ["flows", "cancel", flow.id, ...(reason ? ["--reason", reason] : [])],
    done: () => "The flow is cancelled.",
    then,
  };
}

function closeFlow(flow, then) {
  return {
    label: "Close",
    role: "produce",
    title: `Close ${flow.name}?`,
    text: "No more members can be added. It ends as soon as its members have ended.",
    request: () => ({ method: "POST", path: `/v1/flows/${part(flow.id)}/close` }),
    command: () => ["flows", "close", flow.id],
    done: () => "The flow is closed.",
    then,
  };
}
