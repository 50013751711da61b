// Sending a message: with all that a sender can set, and the same message again.

import { part } from "../server/api.js";
import { pretty } from "../kit/bodies.js";
import { readDuration } from "../kit/format.js";

const ATTRIBUTE = /^([^=]+)=(.*)$/;

/** `like`: a message whose content and fields are the form's first values. */
export function send(queue, then, like = null) {
  const isOrdered = queue.settings?.ordering === "group";
  return {
    label: like ? "Send again" : "Send",
    confirm: "Send",
    role: "produce",
    title: like ? `Send this message to ${queue.name} again` : `Send a message to ${queue.name}`,
    text: like ? "A new message with the same content is sent; this one stays as it is." : null,
    fields: [
      { name: "body", label: "Body (JSON)", value: like ? pretty(like.body) : '{"hello": "world"}', rows: 5, isRequired: true },
      { name: "kind", label: "Kind", value: like?.kind, hint: "The name that selects a handler" },
      { name: "group", label: "Group", value: like?.group, isRequired: isOrdered, hint: isOrdered ? "Messages of a group are handled one after the other" : "For fair sharing and limits per group" },
      { name: "tags", label: "Tags", value: (like?.tags ?? []).join(", "), hint: "Up to two, separated by commas" },
      { name: "entity_id", label: "About (entity id)", value: like?.entity_id },
      { name: "priority", label: "Priority", type: "number", step: "1", value: like?.priority ? String(like.priority) : "", hint: "Smaller numbers go first; empty: 0" },
      { name: "attributes", label: "Attributes", rows: 2, value: Object.entries(like?.attributes ?? {}).map((pair) => pair.join("=")).join("\n"), hint: "NAME=VALUE, one per line" },
      { name: "delay", label: "Delay", hint: "30s, 5m, 2h; empty: none" },
    ],
    request(values) {
      const { tags, attributes } = listsOf(values);
      return {
        method: "POST",
        path: `/v1/queues/${part(queue.name)}/messages`,
        body: {
          body: readJson(values.body),
          ...(values.kind && { kind: values.kind }),
          ...(values.group && { group: values.group }),
          ...(tags.length && { tags }),
          ...(values.entity_id && { entity_id: values.entity_id }),
          ...(values.priority && { priority: Number(values.priority) }),
          ...(attributes.length && { attributes: Object.fromEntries(attributes) }),
          ...(values.delay && { delay_ms: readDelay(values.delay) }),
        },
      };
    },
    command(values) {
      const { tags, attributes } = listsOf(values);
      const given = (flag, value) => (value ? [`${flag}=${value}`] : []);
      return [
        "send", queue.name, values.body, "--json-body",
        ...given("--kind", values.kind),
        ...given("--group", values.group),
        ...tags.flatMap((tag) => given("--tag", tag)),
        ...given("--entity-id", values.entity_id),
        ...given("--priority", values.priority),
        ...attributes.flatMap((pair) => given("--attribute", pair.join("="))),
        ...given("--delay", values.delay),
      ];
    },
    done: (answer) => `Message ${answer.id} is stored.`,
    then,
  };
}

function listsOf(values) {
  const tags = values.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  const lines = values.attributes.split("\n").map((line) => line.trim()).filter(Boolean);
  const attributes = lines.map((line) => {
    const found = ATTRIBUTE.exec(line);
    if (!found) throw new Error(`“${line}” is not NAME=VALUE.`);
    return [found[1].trim(), found[2]];
  });
  return { tags, attributes };
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("The body is not JSON; put plain text in double quotes.");
  }
}

function readDelay(text) {
  const ms = readDuration(text);
  if (ms === null) throw new Error("Enter the delay as a time such as 500ms, 30s, 5m or 2h.");
  return ms;
}
