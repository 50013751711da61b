// AweQ's four views, with the wording of its documentation, on top of its API (docs/aweq.md).

import { parse, part, send } from "../server/api.js";
import { curl } from "../server/commands.js";
import { codeBlock } from "../kit/dialog.js";
import { h, replace } from "../kit/dom.js";
import { pageHead, tabs } from "../kit/parts.js";
import { makeField } from "../kit/action.js";
import { session, whyNot } from "../server/session.js";

const INDENT = 4; // as AweQ's documentation prints JSON

const VIEWS = [
  {
    name: "send-message",
    title: "Send Message",
    lead: "When a producer writes to AweQ, a message ID is generated and returned.",
    role: "produce",
    button: "Send Message",
    field: { name: "message", label: "Queue Message", isRequired: true, placeholder: "job-details-01" },
    request: (text) => ({ method: "POST", path: "/send-message", body: { message: text } }),
    result: (answer) => `Message "${answer.content.key}" posted to queue...`,
  },
  {
    name: "receive-message",
    title: "Receive Message",
    lead: "When a consumer polls AweQ for new messages, it gets messages which are not being processed.",
    role: "consume",
    button: "Receive Message",
    field: { name: "count", label: "Batch Size", type: "number", min: "1", value: "1", isRequired: true },
    request: (text) => ({ method: "GET", path: `/receive-message?count=${part(text)}` }),
    result: (answer) => ["Messages from the Queue...", answer.pretty],
  },
  {
    name: "delete-message",
    title: "Delete Message",
    lead: "Acknowledge message processing: this deletes that message from the AweQ database.",
    role: "consume",
    button: "Delete Message",
    field: {
      name: "key",
      label: "Message Key",
      isRequired: true,
      placeholder: "123e4567-e89b-12d3-a456-426655440000",
    },
    request: (text) => ({ method: "DELETE", path: `/delete-message/${part(text)}` }),
    // Its API accepts any key; a header shows whether a message was deleted.
    result: (answer, text) =>
      answer.headers.get("x-aweq-deleted") === "true"
        ? `Message "${text}" deleted...`
        : `Message "${text}" is not being processed by you: nothing was deleted.`,
  },
  {
    name: "get-stats",
    title: "Queue Status",
    lead: "How many messages are queued, and how many are being processed.",
    role: "read",
    button: "Check Stats",
    field: null,
    request: () => ({ method: "GET", path: "/get-stats" }),
    result: (answer) => ["Stats for the Queue...", answer.pretty],
  },
];

export const aweqPages = VIEWS.map((view, index) => ({
  path: `/console/aweq/${view.name}`,
  title: view.title,
  nav: view.title,
  icon: ["aweq", "messages", "remove", "insights"][index],
  key: index === 0 ? "a" : undefined,
  show: (page) => show(view, page),
}));

function show(view, page) {
  const field = view.field && makeField(view.field, refresh);
  const out = h("section", { class: "aweq-answer", "aria-live": "polite" });
  const call = codeBlock("HTTP API", "");
  const reason = whyNot(view.role) ?? (session().has_aweq ? null : "AweQ's API is disabled on this server.");
  const button = h(
    "button",
    { type: "submit", class: "primary", disabled: reason !== null, title: reason },
    view.button,
  );
  const form = h("form", { class: "card narrow" }, field?.element, button, reason && h("p", { class: "soft" }, reason));

  function refresh() {
    call.set(curl(view.request(field?.value() ?? "")));
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field?.value() ?? "";
    button.disabled = true;
    try {
      replace(out, ...(await ask(view, text)));
    } catch (error) {
      replace(out, h("p", { class: "problem", role: "alert" }, error.message));
    }
    button.disabled = false;
  });

  const entries = VIEWS.map(({ name, title }) => ({ name, label: title, href: `/console/aweq/${name}` }));
  replace(
    page.root,
    pageHead(view.title, { lead: view.lead }),
    tabs(entries, view.name),
    form,
    out,
    h("details", { class: "forms narrow" }, h("summary", null, "Do the same from a shell"), call.element),
  );
  refresh();
  (field?.input ?? button).focus();
}

async function ask(view, text) {
  const { method, path, body } = view.request(text);
  const response = await send(method, path, { body });
  const raw = await response.text();
  if (!response.ok) return [h("p", { class: "problem", role: "alert" }, plain(raw))];
  const content = parse(raw);
  const pretty = JSON.stringify(content, null, INDENT);
  const [line, more] = [view.result({ content, pretty, headers: response.headers }, text)].flat();
  return [h("p", null, line), more && h("pre", { class: "block" }, more)];
}

/** AweQ's errors are plain texts labelled as HTML, and are escaped accordingly. */
function plain(text) {
  const meant = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };
  return text.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name) => meant[name]);
}
