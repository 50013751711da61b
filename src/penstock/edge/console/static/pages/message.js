// One message: its properties, its body, and its history.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { bodyBlock } from "../kit/bodies.js";
import { h, replace } from "../kit/dom.js";
import { about, count, duration, instant, size } from "../kit/format.js";
import { flowLink } from "../flows/flow_parts.js";
import { logCard } from "../kit/message_log.js";
import { send } from "../actions/send.js";
import { actionOnOne, actsOn, isUnsent } from "../actions/message_acts.js";
import { badge, card, facts, notice, pageHead, stateBadge, when } from "../kit/parts.js";
import { timeline } from "../kit/timeline.js";

const MAX_FLOWS = 10; // that its handler created

export const message = {
  path: "/console/messages/{id}",
  title: "Message",
  under: "/console/messages",

  async show(view) {
    const id = part(view.params.id);
    const [found, past, durable, created] = await Promise.all([
      get(`/v1/messages/${id}`, {}, { signal: view.signal }),
      get(`/v1/history/${id}`, {}, { signal: view.signal }),
      get(`/v1/messages/${id}/steps`, { limit: 1000 }, { signal: view.signal }),
      get("/v1/flows", { created_by: view.params.id, limit: MAX_FLOWS }, { signal: view.signal }),
    ]);
    const ownFlow = await flowOf(view, found);
    const again = found.body === undefined || isUnsent(found) ? [] : [actionButton(send({ name: found.dead_from ?? found.queue }, (sent) => view.go(`/console/messages/${part(sent.id)}`), found))];
    const acts = actsOn(found).map((act) => actionButton(actionOnOne(found, act, () => view.again())));
    const hasAttributes = Object.keys(found.attributes ?? {}).length > 0;
    replace(
      view.root,
      pageHead(found.kind ?? "Message", {
        badges: [
          stateBadge(found.state),
          found.finished_at && badge("from history"),
          found.is_blocked && badge("waits for its group", "warn"),
        ].filter(Boolean),
        actions: [...acts, ...again],
        lead: h("code", { class: "id" }, found.id),
        back: {
          label: found.queue,
          href: `/console/messages?queue=${part(found.queue)}${inLine(found) ? `&state=${found.state}` : ""}`,
        },
      }),
      why(found, ownFlow),
      h(
        "div",
        { class: "grid" },
        card("What happened", timeline(found, past)),
        card("Message", facts(about_(found, ownFlow, created.flows))),
      ),
      card(
        "What was sent",
        found.body === undefined ? notice("The body has been pruned.") : bodyBlock("Body", found.body),
        hasAttributes && bodyBlock("Attributes", found.attributes),
        found.trace && bodyBlock("Trace", found.trace),
        found.progress !== undefined && bodyBlock("Progress of the lease holder", found.progress),
      ),
      logCard(view, found.id, found.state === "leased"),
      found.result === undefined ? null : card("What it returned", bodyBlock("Result", found.result)),
      stepsOf(durable),
    );
  },
};

/** The flow that it is a member of; only its id, if the key does not cover all queues of the flow. */
async function flowOf(view, found) {
  if (!found.flow_id) return null;
  try {
    return await get(`/v1/flows/${part(found.flow_id)}`, {}, { signal: view.signal });
  } catch (error) {
    if (error.status !== 403) throw error;
    return { id: found.flow_id, name: found.flow_id };
  }
}

function stepsOf({ steps, waits, next }) {
  if (!steps.length && !waits.length) return null;
  return card(
    "Steps",
    ...waits.map(({ signal, until_at: until }) =>
      notice(["It waits for the signal ", h("code", null, signal), until && [" until ", when(until)], "."].flat().filter(Boolean)),
    ),
    ...steps.map((step) => bodyBlock(step.name, step.outcome)),
    next && notice("There are more steps; penstock messages show lists all of them."),
  );
}

function inLine(found) {
  return !found.finished_at && ["ready", "waiting", "leased", "dead"].includes(found.state);
}

function why(found, ownFlow) {
  if (isUnsent(found) && found.state === "waiting") {
    const many = found.waits_for ?? 0;
    const wanted = many === 1 ? "1 other member" : many ? `${count(many)} other members` : "the end";
    return notice([`It is not in its queue yet: it waits for ${wanted} of `, flowLink(ownFlow), "."]);
  }
  const text = found.state === "dead" || found.state === "cancelled" ? found.reason : null;
  if (found.state === "leased") {
    return notice("A worker has leased it. Bury and Cancel end the lease; other changes are possible only when the lease has ended.", "warn");
  }
  const what = found.state === "dead" ? "It died" : "It was cancelled";
  if (found.state === "dead" && found.error_line) {
    return notice([h("strong", null, found.error_line), h("br"), `${what}${text ? `: ${text.replaceAll("_", " ")}` : ""}.`], "bad");
  }
  if (text) return notice(`${what}: ${text}`, "bad");
  return found.error_line && !found.finished_at ? notice(["The last attempt failed: ", h("strong", null, found.error_line)], "warn") : null;
}

function about_(found, ownFlow, created) {
  const given = (name, value) => (value === undefined || value === null || value === "" ? null : [name, value]);
  const isWorker = /^[0-9a-f-]{36}$/.test(found.leased_by ?? "");
  const holder = isWorker
    ? h("a", { href: `/console/workers/${part(found.leased_by)}` }, "a worker")
    : found.leased_by;
  return [
    ["Queue", h("a", { href: `/console/queues/${part(found.queue)}` }, found.queue)],
    ownFlow && ["Member of the flow", flowLink(ownFlow)],
    created.length > 0 && ["Flows that it created", created.map((flow) => [flowLink(flow), " "])],
    given("Died in", found.dead_from),
    [isUnsent(found) ? "Planned" : "Sent", when(found.sent_at)],
    found.due_at && found.state !== "dead" && [found.state === "waiting" ? "Due" : "Due since", when(found.due_at)],
    found.leased_until && ["Lease expires", when(found.leased_until)],
    found.deadline_at && ["Times out", when(found.deadline_at)],
    found.finished_at && ["Finished", when(found.finished_at)],
    ["Attempts", found.max_attempts ? `${found.attempts} of ${found.max_attempts}` : count(found.attempts)],
    found.failures && ["Failures", count(found.failures)],
    found.crashes && ["Crashes", count(found.crashes)],
    given(found.state === "leased" ? "Leased by" : "Last leased by", holder),
    given("Group", found.group),
    given("Tags", (found.tags ?? []).join(", ")),
    given("About", found.entity_id),
    ["Priority", String(found.priority ?? 0)],
    given("Dedup key", found.dedup_key),
    given("Route", found.route),
    found.timeout_ms && ["Timeout of an attempt", duration(found.timeout_ms)],
    found.expires_at && ["Expires", when(found.expires_at)],
    given("Size", found.size ? size(found.size) : null),
    found.first_leased_at && ["Waited for its first claim", about(Math.max(0, Date.parse(found.first_leased_at) - Date.parse(found.sent_at)))],
    found.finished_at && ["Total time", about(Math.max(0, Date.parse(found.finished_at) - Date.parse(found.sent_at)))],
    [isUnsent(found) ? "Planned at" : "Sent at", instant(found.sent_at)],
  ].filter(Boolean);
}
