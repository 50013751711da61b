// Topics, their subscriptions, and how many events were published.

import { get, part } from "../server/api.js";
import { actionButton } from "../kit/action.js";
import { h, replace } from "../kit/dom.js";
import { count } from "../kit/format.js";
import { badge, card, facts, pageHead, when } from "../kit/parts.js";
import { freshness } from "../kit/repeat.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";

const PAGE = 50;
const LOOK_EVERY_MS = 5_000;

export const topics = {
  path: "/console/topics",
  title: "Topics",
  nav: "Topics",
  icon: "topics",
  key: "b",

  async show(view) {
    const cursor = view.query.get("cursor") ?? "";
    const ask = () => get("/v1/topics", { cursor, limit: PAGE }, { signal: view.signal });
    const answer = await ask();
    const table = makeTable({
      caption: "Topics",
      columns: [
        { label: "Topic", isMain: true, value: (one) => h("a", { href: `/console/topics/${part(one.name)}` }, one.name) },
        { label: "Published", isNumber: true, value: (one) => count(one.published) },
        { label: "Without a subscription", isNumber: true, value: (one) => h("span", { class: one.unmatched ? "leased" : "none" }, count(one.unmatched)) },
        { label: "Created", value: (one) => when(one.created_at) },
      ],
      rows: answer.topics,
      key: (one) => one.name,
      empty: "There are no topics yet: a topic is created with its first subscription.",
    });
    replace(
      view.root,
      pageHead("Topics", { actions: [freshness(view, async () => table.update((await ask()).topics), LOOK_EVERY_MS)] }),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
  },
};

export const topic = {
  path: "/console/topics/{topic}",
  title: "Topic",
  under: "/console/topics",

  async show(view) {
    const path = `/v1/topics/${part(view.params.topic)}`;
    const found = await get(path, {}, { signal: view.signal });
    const table = makeTable({
      caption: "Subscriptions",
      columns: [
        { label: "Subscription", isMain: true, value: (one) => [one.name, one.is_pending && [" ", badge("not confirmed", "warn")]] },
        { label: "Queue", value: (one) => h("a", { href: `/console/queues/${part(one.queue)}` }, one.queue) },
        { label: "Kinds", value: (one) => (one.kinds.length ? one.kinds.map((kind) => [badge(kind), " "]) : "all") },
        { label: "Filter", value: (one) => (one.filter ? h("code", { class: "one-line", title: JSON.stringify(one.filter) }, JSON.stringify(one.filter)) : h("span", { class: "none" }, "–")) },
        { label: "Dispatch", value: (one) => one.dispatch },
        { label: "Created", value: (one) => when(one.created_at) },
        { label: "Acts", isWide: true, value: (one) => actionButton(unsubscribe(path, found, one, () => view.again()), { isSmall: true }) },
      ],
      rows: found.subscriptions ?? [],
      key: (one) => one.name,
      empty: "It has no subscription: its events are counted and dropped.",
    });
    replace(
      view.root,
      pageHead(found.name, { actions: [freshness(view, async () => view.again())], back: { label: "Topics", href: "/console/topics" } }),
      card("Topic", facts([
        ["Published", count(found.published)],
        ["Events without a subscription", count(found.unmatched)],
        ["Created", when(found.created_at)],
      ])),
      card("Subscriptions", table.element),
    );
  },
};

function unsubscribe(path, found, one, then) {
  return {
    label: "Unsubscribe",
    isDanger: true,
    title: `Remove the subscription ${one.name}?`,
    text: `New events of ${found.name} are no longer sent to ${one.queue}. The queue and the messages in it stay.`,
    request: () => ({ method: "DELETE", path: `${path}/subscriptions/${part(one.name)}` }),
    command: () => ["topics", "unsubscribe", found.name, one.name],
    done: () => `${one.name} is removed.`,
    then,
  };
}
