// Workers: state, slots and leases; draining a worker.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { h, replace } from "../kit/dom.js";
import { count } from "../kit/format.js";
import { badge, card, facts, notice, pageHead, when } from "../kit/parts.js";
import { repeatedly } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";
import { withCode } from "../kit/values.js";
import { messageLink } from "./messages.js";

const PAGE = 50;
const TONES = { active: "good", draining: "warn", left: "", lost: "bad" };
const LOOK_EVERY_MS = 5_000;

export const workers = {
  path: "/console/workers",
  title: "Workers",
  nav: "Workers",
  icon: "workers",
  key: "w",

  async show(view) {
    const isAll = view.query.get("gone") === "true";
    const cursor = view.query.get("cursor") ?? "";
    const ask = () => get("/v1/workers", { gone: isAll, cursor, limit: PAGE }, { signal: view.signal });
    const answer = await ask();
    const table = makeTable({
      caption: "Workers",
      columns: columns(view),
      rows: answer.workers,
      key: (worker) => worker.id,
      empty: withCode("No worker is registered. Start one with `penstock worker`."),
    });
    replace(
      view.root,
      pageHead("Workers", {
        actions: [
          h("a", { class: "button", href: changed(view.query, { gone: isAll ? null : "true", cursor: null }) },
            isAll ? "Hide ended workers" : "Show ended workers"),
        ],
      }),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
    repeatedly(view, async () => table.update((await ask()).workers), LOOK_EVERY_MS);
  },
};

export const worker = {
  path: "/console/workers/{worker}",
  title: "Worker",
  under: "/console/workers",

  async show(view) {
    const id = part(view.params.worker);
    const ask = () => get(`/v1/workers/${id}`, {}, { signal: view.signal });
    const [found, history] = await Promise.all([
      ask(),
      get("/v1/facts", { subject: view.params.worker, limit: 20 }, { signal: view.signal }),
    ]);
    const held = makeTable({
      caption: "Leases",
      columns: leaseColumns(),
      rows: found.leases ?? [],
      key: (lease) => lease.id,
      empty: "It has no leases.",
    });
    replace(
      view.root,
      pageHead(found.name ?? "Worker", {
        badges: [stateOf(found)].flat(),
        actions: [drainButton(view, found)],
        lead: [found.host && `${found.host}${found.pid ? ` (${found.pid})` : ""} · `, h("code", { class: "id" }, found.id)],
        back: { label: "Workers", href: "/console/workers" },
      }),
      found.is_silent && notice(["Its last beat arrived ", when(found.beat_at), ": it may have been killed, or has no connection."], "warn"),
      found.state === "lost" && notice("It sent no beat for too long: its messages returned to their queues.", "bad"),
      h(
        "div",
        { class: "grid" },
        card("Worker", facts(about(found))),
        card("What happened", changes(history.facts)),
      ),
      card("Current work", held.element),
    );
    repeatedly(view, async () => held.update((await ask()).leases ?? []), LOOK_EVERY_MS);
  },
};

function stateOf(found) {
  const state = badge(found.state, TONES[found.state] ?? "");
  if (!found.is_silent) return state;
  return [badge("silent", "warn", "Two beats are missing; it becomes lost if no other arrives"), found.state === "active" ? null : [" ", state]];
}

function drainButton(view, found, options) {
  const reason = found.state === "active" ? null : `It is ${found.state}.`;
  return actionButton(
    {
      label: "Drain",
      role: "operate",
      reason,
      title: `Drain ${found.name ?? found.id}?`,
      text: "It finishes its leases, claims no more and exits. It learns of this with its next beat.",
      request: () => ({ method: "POST", path: `/v1/workers/${part(found.id)}/drain` }),
      command: () => ["workers", "drain", found.id],
      done: () => "The worker is draining.",
      then: () => view.again(),
    },
    options,
  );
}

function columns(view) {
  return [
    {
      label: "Worker",
      isMain: true,
      value: (found) => h("a", { href: `/console/workers/${part(found.id)}` }, found.name ?? found.id),
    },
    { label: "State", value: stateOf },
    { label: "Host", isWide: true, value: (found) => [found.host ?? "–", found.pid ? ` (${found.pid})` : ""] },
    { label: "Queues", isWide: true, value: (found) => names(found.queues, "all") },
    { label: "Slots", value: slots },
    { label: "Heard", value: (found) => when(found.beat_at) },
    { label: "Since", value: (found) => when(found.registered_at) },
    { label: "Acts", isWide: true, value: (found) => drainButton(view, found, { isSmall: true }) },
  ];
}

function names(list, none) {
  if (!list?.length) return h("span", { class: "none" }, none);
  const shown = list.slice(0, 4).join(", ");
  return h("span", { title: list.join(", ") }, list.length > 4 ? `${shown} and ${list.length - 4} more` : shown);
}

function slots(found) {
  const held = found.holding ?? 0;
  return h(
    "span",
    { class: "slots", title: `${count(held)} of ${count(found.slots)} slots in use` },
    h("meter", { min: 0, max: Math.max(found.slots, 1), value: Math.min(held, found.slots) }),
    ` ${count(held)} / ${count(found.slots)}`,
  );
}

function about(found) {
  return [
    ["Health", stateOf(found)],
    ["Slots", slots(found)],
    ["Host", found.host],
    ["Process", found.pid],
    ["Queues", names(found.queues, "all")],
    ["Kinds", names(found.kinds, "all")],
    ...Object.entries(found.labels ?? {}).map(([name, value]) => [`Label ${name}`, value]),
    ["Registered", when(found.registered_at)],
    ["Last beat", when(found.beat_at)],
    found.ended_at ? ["Ended", when(found.ended_at)] : ["Alive until", when(found.alive_until)],
  ];
}

function leaseColumns() {
  return [
    { label: "Message", isMain: true, value: (lease) => [messageLink(lease.id), lease.kind && [" ", badge(lease.kind)]] },
    { label: "Queue", value: (lease) => h("a", { href: `/console/queues/${part(lease.queue)}` }, lease.queue) },
    { label: "Attempt", isNumber: true, value: (lease) => count(lease.attempts) },
    { label: "Since", value: (lease) => when(lease.leased_at) },
    { label: "Lease expires", value: (lease) => when(lease.leased_until) },
  ];
}

/** Facts, newest first. */
function changes(facts) {
  if (!facts.length) return h("p", { class: "soft" }, "Its history has been pruned.");
  return h(
    "ol",
    { class: "timeline" },
    facts.map((fact) =>
      h("li", { "data-step": fact.kind }, h("div", { class: "step-head" }, badge(fact.kind.replace("worker_", "")), " ", when(fact.at))),
    ),
  );
}
