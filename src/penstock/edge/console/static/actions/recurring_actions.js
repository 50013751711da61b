// Creating, changing and removing recurring work.

import { part } from "../server/api.js";
import { pretty } from "../kit/bodies.js";
import { duration, readDuration } from "../kit/format.js";

/** The form of recurring work; `one`: change this one, otherwise create. */
export function setRecurring(one, then) {
  const named = one ? [] : [{ name: "name", label: "Name", isRequired: true }];
  return {
    label: one ? "Edit" : "New",
    confirm: one ? "Save" : "Create",
    title: one ? `Change ${one.name}` : "New recurring work",
    text: "A cron expression or an interval says when a message is sent. Fields that are not shown keep their values.",
    fields: [
      ...named,
      { name: "queue", label: "Queue", value: one?.queue, isRequired: true },
      { name: "cron", label: "Cron", value: one?.cron, hint: "30 2 * * *: at 02:30 every day" },
      { name: "zone", label: "Time zone of the cron expression", value: one?.zone ?? (one ? "" : "UTC"), hint: "UTC, Europe/Berlin" },
      { name: "every", label: "Or every", value: one?.every_ms ? duration(one.every_ms) : "", hint: "30s, 5m, 2h, in place of a cron expression" },
      { name: "kind", label: "Kind", value: one?.kind, hint: "The name that selects a handler" },
      { name: "body", label: "Body (JSON)", rows: 3, value: one ? pretty(one.body ?? null) : "null" },
      { name: "overlap", label: "If the last run has not ended", options: ["allow", "skip"], value: one?.overlap },
    ],
    request: (values) => ({
      method: "PUT",
      path: `/v1/recurring/${part(one?.name ?? (values.name || "NAME"))}`,
      body: {
        ...kept(one),
        queue: values.queue,
        body: readJson(values.body),
        overlap: values.overlap,
        ...(values.kind && { kind: values.kind }),
        ...(values.every ? { every_ms: readEvery(values.every) } : { cron: values.cron, zone: values.zone || "UTC" }),
      },
      ...(one ? {} : { headers: { "if-none-match": "*" } }),
    }),
    // The command has no flags for some of the fields that are kept.
    command: () => null,
    done: (answer) => `${answer.name} is saved.`,
    then,
  };
}

export function removeRecurring(one, then) {
  return {
    label: "Remove",
    isDanger: true,
    title: `Remove ${one.name}?`,
    text: `No more messages are sent to ${one.queue}. Messages that were sent stay.`,
    request: () => ({ method: "DELETE", path: `/v1/recurring/${part(one.name)}` }),
    command: () => ["recurring", "remove", one.name],
    done: () => `${one.name} is removed.`,
    then,
  };
}

const KEPT = [
  "entity_id", "tags", "group", "priority", "dedup_key", "expires_in_ms", "max_attempts", "timeout_ms", "retries_timeouts",
  "dedup_until", "route", "attributes", "catch_up", "owner",
];

function kept(one) {
  return Object.fromEntries(KEPT.filter((name) => one?.[name] !== undefined).map((name) => [name, one[name]]));
}

function readEvery(text) {
  const ms = readDuration(text);
  if (!ms) throw new Error("Enter the interval as a time such as 30s, 5m or 2h.");
  return ms;
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("The body is not JSON; put plain text in double quotes.");
  }
}
