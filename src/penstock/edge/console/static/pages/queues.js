// The queues by name: searchable and paged.

import { actionButton } from "../kit/action.js";
import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { count, rate } from "../kit/format.js";
import { onLive } from "../server/live.js";
import { badge, pageHead } from "../kit/parts.js";
import { create } from "../actions/queue_actions.js";
import { changed } from "../shell/router.js";
import { makeTable, pager } from "../kit/table.js";

const PAGE = 50;

export const queues = {
  path: "/console/queues",
  title: "Queues",
  nav: "Queues",
  icon: "queues",
  key: "q",

  async show(view) {
    const contains = view.query.get("contains") ?? "";
    const cursor = view.query.get("cursor") ?? "";
    const asked = { contains, cursor, limit: PAGE };
    const answer = await get("/v1/queues", asked, { signal: view.signal });
    const shown = new Map(answer.queues.map((queue) => [queue.name, queue]));
    const table = makeTable({
      caption: "Queues",
      columns: columns(),
      key: (queue) => queue.name,
      empty: contains ? `No queue has “${contains}” in its name.` : "There are no queues yet.",
      rows: answer.queues,
    });
    replace(
      view.root,
      pageHead("Queues", { actions: [actionButton(create((made) => view.go(hrefOf(made.name))))] }),
      filter(view, contains),
      table.element,
      pager({
        isFirst: !cursor,
        first: changed(view.query, { cursor: null }),
        next: answer.next && changed(view.query, { cursor: answer.next }),
      }),
    );
    const updated = new Set(); // queues that the stream has updated: its data is newer
    const askAgain = async () => {
      const again = await get("/v1/queues", asked, { signal: view.signal });
      for (const queue of again.queues) {
        if (shown.has(queue.name) && !updated.has(queue.name)) {
          Object.assign(shown.get(queue.name), queue);
        }
      }
      table.update([...shown.values()]);
    };
    view.onLeave(
      onLive((news, isFirst) => {
        if (isFirst) {
          updated.clear();
          askAgain().catch(() => {}); // the next update retries
        }
        let isTouched = false;
        for (const queue of shown.values()) {
          if (queue.rates) isTouched = true;
          delete queue.rates;
        }
        for (const fresh of news.queues) {
          if (!shown.has(fresh.name)) continue;
          Object.assign(shown.get(fresh.name), fresh);
          updated.add(fresh.name);
          isTouched = true;
        }
        if (isTouched) table.update([...shown.values()]);
      }),
    );
  },
};

function hrefOf(name) {
  return `/console/queues/${encodeURIComponent(name)}`;
}

export function stopBadges(queue) {
  return [
    queue.is_paused && badge("paused", "warn", "An operator stopped claims"),
    queue.held_by && badge("held", "bad", `Circuit ${queue.held_by} holds it`),
  ].filter(Boolean);
}

function columns() {
  const number = (label, value, tone) => ({
    label,
    isNumber: true,
    value: (queue) => {
      const many = value(queue);
      return h("span", { class: many ? tone : "none" }, count(many));
    },
  });
  return [
    {
      label: "Queue",
      isMain: true,
      value: (queue) => [
        h("a", { href: hrefOf(queue.name) }, queue.name),
        stopBadges(queue).map((one) => [" ", one]),
      ],
    },
    number("Ready", (queue) => queue.counts.ready, "ready"),
    number("Waiting", (queue) => queue.counts.waiting, "waiting"),
    number("Leased", (queue) => queue.counts.leased, "leased"),
    number("Dead", (queue) => queue.counts.dead, "dead"),
    number("Done", (queue) => queue.totals?.done ?? 0, ""),
    {
      label: "In / out",
      isNumber: true,
      value: (queue) =>
        queue.rates
          ? `${rate(queue.rates.sent)} / ${rate(queue.rates.done)}`
          : h("span", { class: "none" }, "–"),
    },
  ];
}

function filter(view, contains) {
  const input = h("input", {
    type: "search",
    name: "contains",
    value: contains,
    placeholder: "Part of a name",
    "aria-label": "Part of a name",
    autocomplete: "off",
  });
  const form = h("form", { class: "filters" }, input, h("button", { type: "submit" }, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    view.setQuery({ contains: input.value.trim(), cursor: null });
  });
  return form;
}
