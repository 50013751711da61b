// Who works: are they well, how many slots are taken, what do they hold; and draining them.

import { get, part } from "../api.js";
import { actionButton } from "../action.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { badge, card, facts, notice, pageHead, when } from "../parts.js";
import { changed } from "../router.js";
import { makeTable, pager } from "../table.js";
import { withCode } from "../values.js";
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
      empty: withCode("No worker is registered. `penstock worker` starts one."),
    });
    replace(
      view.root,
      pageHead("Workers", {
        actions: [
          h("a", { class: "button", href: changed(view.query, { gone: isAll ? null : "true", cursor: null }) },
            isAll ? "Hide those that are gone" : "Show those that are gone"),
        ],
      }),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
    repeatedly(view, async () => table.update((await ask()).workers));
  },
};

export const worker = {
  path: "/console/workers/{worker}",
  title: "Worker",
  under: "/console/workers",

  async show(view) {
    const id = part(view.params.worker);
    const ask = () => get(`/v1/workers/${id}`, {}, { signal: view.signal });
    const [found, told] = await Promise.all([
      ask(),
      get("/v1/facts", { subject: view.params.worker, limit: 20 }, { signal: view.signal }),
    ]);
    const held = makeTable({
      caption: "What it holds",
      columns: leaseColumns(),
      rows: found.leases ?? [],
      key: (lease) => lease.id,
      empty: "It holds nothing now.",
    });
    replace(
      view.root,
      pageHead(found.name ?? "Worker", {
        badges: [stateOf(found)],
        actions: [drainButton(view, found)],
        lead: h("code", { class: "id" }, found.id),
        back: { label: "Workers", href: "/console/workers" },
      }),
      found.state === "lost" && notice("It was not heard for too long: what it held has gone back in line.", "bad"),
      h(
        "div",
        { class: "grid" },
        card("Worker", facts(about(found))),
        card("What happened", changes(told.facts)),
      ),
      card("Current work", held.element),
    );
    repeatedly(view, async () => held.update((await ask()).leases ?? []));
  },
};

/** Again and again while the page is shown and looked at. */
function repeatedly(view, look) {
  const timer = setInterval(() => {
    if (!document.hidden) look().catch(() => {}); // the next look may work
  }, LOOK_EVERY_MS);
  view.onLeave(() => clearInterval(timer));
}

function stateOf(found) {
  return badge(found.state, TONES[found.state] ?? "");
}

function drainButton(view, found, options) {
  const reason = found.state === "active" ? null : `It is ${found.state}.`;
  return actionButton(
    {
      label: "Drain",
      role: "operate",
      reason,
      title: `Drain ${found.name ?? found.id}?`,
      text: "It finishes what it holds, claims nothing more and leaves. It hears of it with its next beat.",
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
    { label: "Host", value: (found) => [found.host ?? "–", found.pid ? ` (${found.pid})` : ""] },
    { label: "Queues", value: (found) => names(found.queues, "all") },
    { label: "Slots", value: slots },
    { label: "Heard", value: (found) => when(found.beat_at) },
    { label: "Since", value: (found) => when(found.registered_at) },
    { label: "Acts", value: (found) => drainButton(view, found, { isSmall: true }) },
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
    { class: "slots", title: `${count(held)} of ${count(found.slots)} slots are taken` },
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
    ["Last heard", when(found.beat_at)],
    found.ended_at ? ["Ended", when(found.ended_at)] : ["Alive until", when(found.alive_until)],
  ];
}

function leaseColumns() {
  return [
    { label: "Message", isMain: true, value: (lease) => [messageLink(lease.id), lease.kind && [" ", badge(lease.kind)]] },
    { label: "Queue", value: (lease) => h("a", { href: `/console/queues/${part(lease.queue)}` }, lease.queue) },
    { label: "Attempt", isNumber: true, value: (lease) => count(lease.attempts) },
    { label: "Since", value: (lease) => when(lease.leased_at) },
    { label: "Lease runs out", value: (lease) => when(lease.leased_until) },
  ];
}

/** Facts, newest first. */
function changes(told) {
  if (!told.length) return h("p", { class: "soft" }, "Nothing is kept of it.");
  return h(
    "ol",
    { class: "timeline" },
    told.map((fact) =>
      h("li", { "data-step": fact.kind }, h("div", { class: "step-head" }, badge(fact.kind.replace("worker_", "")), " ", when(fact.at))),
    ),
  );
}
