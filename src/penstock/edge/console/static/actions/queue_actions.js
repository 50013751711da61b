// Actions on a queue.

import { get, part } from "../server/api.js";
import { h } from "../kit/dom.js";

const PAUSE_TEXT = "Claims stop; messages can still be sent. Existing leases stay valid and can be completed.";
const RESUME_TEXT = "Claims are allowed again.";

export function pathOf(queue) {
  return `/v1/queues/${part(queue)}`;
}

export function pause(queue, then) {
  const isPaused = queue.is_paused;
  const verb = isPaused ? "resume" : "pause";
  return {
    label: isPaused ? "Resume" : "Pause",
    title: isPaused ? `Resume ${queue.name}?` : `Pause ${queue.name}?`,
    text: isPaused ? RESUME_TEXT : PAUSE_TEXT,
    request: () => ({ method: "POST", path: `${pathOf(queue.name)}/${verb}` }),
    command: () => ["queues", verb, queue.name],
    done: () => `${queue.name} is ${isPaused ? "no longer paused" : "paused"}.`,
    then,
  };
}

/** Pause or resume several queues. */
export function pauseMany(names, verb, then) {
  const label = verb === "pause" ? "Pause" : "Resume";
  return {
    label,
    title: `${label} ${names.length === 1 ? names[0] : `${names.length} queues`}?`,
    text: verb === "pause" ? PAUSE_TEXT : RESUME_TEXT,
    count: async () => names.length,
    noun: "queue",
    requests: () => names.map((name) => ({ method: "POST", path: `${pathOf(name)}/${verb}` })),
    command: () => names.map((name) => ["queues", verb, name]),
    done: () => `${names.length === 1 ? names[0] : `${names.length} queues`} ${verb}d.`,
    then,
  };
}

/** Only for a queue that a circuit holds. */
export function unhold(queue, then) {
  return {
    label: "Unhold",
    title: `Unhold ${queue.name}?`,
    text: "The circuit's hold on the queue ends; a paused queue stays paused. While the circuit is open, the queue is held again with its next request.",
    request: () => ({ method: "POST", path: `${pathOf(queue.name)}/unhold` }),
    command: () => ["queues", "unhold", queue.name],
    done: () => `${queue.name} has been released.`,
    then,
  };
}

export function purge(queue, then) {
  return {
    label: "Purge",
    typed: queue.name,
    isDanger: true,
    title: `Purge ${queue.name}?`,
    text: "All messages in the queue are cancelled, in every state; their leases are lost. They stay in the history.",
    count: async () => {
      const { waiting, ready, leased, dead } = (await get(pathOf(queue.name))).counts;
      return waiting + ready + leased + dead;
    },
    request: () => ({ method: "POST", path: `${pathOf(queue.name)}/purge` }),
    command: () => ["queues", "purge", queue.name],
    done: (answer) => `${answer.cancelled} cancelled.`,
    then,
  };
}

/** Dead messages of this queue, and dead letters from other queues. */
async function countDead(name) {
  const [queue, sources] = await Promise.all([
    get(pathOf(name)),
    get("/v1/queues", { dead_letter_queue: name, limit: 1 }),
  ]);
  const { dead, ready, waiting } = queue.counts;
  return sources.queues.length ? dead + ready + waiting : dead;
}

export function redrive(queue, then) {
  return {
    label: "Redrive",
    title: `Redrive the dead messages of ${queue.name}?`,
    text: "They get all their attempts again, in the queue they died in or in another.",
    noun: "dead message",
    count: async ({ limit }) => Math.min(await countDead(queue.name), Number(limit) || Infinity),
    fields: [
      { name: "to", label: "To", hint: "Name of a queue; empty: the queue each died in" },
      { name: "limit", label: "At most", type: "number", min: "1", hint: "Empty: all" },
    ],
    request: ({ to, limit }) => ({
      method: "POST",
      path: `${pathOf(queue.name)}/redrive`,
      body: { ...(to && { to }), ...(limit && { limit: Number(limit) }) },
    }),
    command: ({ to, limit }) => [
      "queues",
      "redrive",
      queue.name,
      ...(to ? ["--to", to] : []),
      ...(limit ? ["--limit", limit] : []),
    ],
    done: (answer) => `${answer.redriven} redriven.`,
    then,
  };
}

export function move(queue, then) {
  return {
    label: "Move",
    title: `Move messages out of ${queue.name}`,
    text: "Runs in the background and survives restarts. With a target, ready messages that are not dead are moved too.",
    count: async ({ to }) => {
      if (!to) return countDead(queue.name);
      const { dead, ready, waiting } = (await get(pathOf(queue.name))).counts;
      return dead + ready + waiting;
    },
    fields: [
      { name: "to", label: "To", hint: "Name of a queue; empty: the queue each died in" },
      { name: "rate", label: "At most per second", type: "number", min: "1", hint: "Empty: no limit" },
    ],
    request: ({ to, rate }) => ({
      method: "POST",
      path: `${pathOf(queue.name)}/moves`,
      body: { ...(to && { to }), ...(rate && { max_per_second: Number(rate) }) },
    }),
    command: ({ to, rate }) => [
      "moves",
      "start",
      queue.name,
      ...(to ? ["--to", to] : []),
      ...(rate ? ["--max-per-second", rate] : []),
    ],
    done: () => "The move has started.",
    then,
  };
}

export function cancelMove(one, then) {
  return {
    label: "Cancel",
    title: "Stop this move?",
    text: "Messages already moved stay moved.",
    request: () => ({ method: "POST", path: `/v1/moves/${part(one.id)}/cancel` }),
    command: () => ["moves", "cancel", one.id],
    done: (answer) => `${answer.moved} messages were moved before it was cancelled.`,
    then,
  };
}

export function remove(queue, then) {
  return {
    label: "Remove",
    typed: queue.name,
    isDanger: true,
    title: `Remove ${queue.name}?`,
    text: "The queue is deleted with all messages in it. Its finished messages stay in the history.",
    count: async () => {
      const { waiting, ready, leased, dead } = (await get(pathOf(queue.name))).counts;
      return waiting + ready + leased + dead;
    },
    request: () => ({ method: "DELETE", path: `${pathOf(queue.name)}?force=true` }),
    command: () => ["queues", "delete", queue.name, "--force"],
    done: () => `${queue.name} is deleted.`,
    then,
  };
}

export function create(then) {
  return {
    label: "New queue",
    title: "Create a queue",
    text: "With default settings, which you can change later.",
    fields: [
      { name: "name", label: "Name", isRequired: true, hint: "Letters, digits, “_”, “-” and “.”" },
      {
        name: "ordering",
        label: "Ordering",
        options: ["standard", "group"],
        hint: "group: messages of one group are handled strictly one after the other",
      },
    ],
    request: ({ name, ordering }) => ({
      method: "PUT",
      path: pathOf(name || "NAME"),
      body: ordering === "group" ? { ordering } : {},
      headers: { "if-none-match": "*" }, // an existing queue keeps its settings: 409
    }),
    command: ({ name, ordering }) => [
      "queues",
      "create",
      name || "NAME",
      ...(ordering === "group" ? ["--ordering", ordering] : []),
    ],
    explain: (error, { name }) =>
      error.code === "queue_exists" && [" ", h("a", { href: `/console/queues/${part(name)}` }, `Open ${name}`)],
    done: (answer) => `${answer.name} is created.`,
    then,
  };
}
