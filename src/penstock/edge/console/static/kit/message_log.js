// The log of a message's attempts; while one of them runs, new lines appear every second.

import { get, part } from "../server/api.js";
import { h } from "./dom.js";
import { instant } from "./format.js";
import { card } from "./parts.js";

const AGAIN_MS = 1_000;
const SHOWN_LINES = 5_000; // more would make the page slow

/** A card that stays hidden as long as nothing was logged. */
export function logCard(view, id, isRunning) {
  const lines = h("pre", { class: "block", "aria-label": "Log", tabindex: "0" });
  const root = card("Log", lines);
  root.hidden = true;
  const state = { cursor: null, lease: null, count: 0, isBusy: false };
  const read = async () => {
    if (state.isBusy || document.hidden) return;
    state.isBusy = true;
    try {
      await readAll(view, id, state, lines);
      root.hidden = state.count === 0;
    } catch {
      // The server is busy, or history has forgotten the message: the page shows the rest.
    } finally {
      state.isBusy = false;
    }
  };
  read();
  if (isRunning) {
    const timer = setInterval(read, AGAIN_MS);
    view.onLeave(() => clearInterval(timer));
  }
  return root;
}

async function readAll(view, id, state, lines) {
  for (;;) {
    const query = { limit: 1000, ...(state.cursor && { cursor: state.cursor }) };
    const page = await get(`/v1/messages/${part(id)}/logs`, query, { signal: view.signal });
    state.cursor = page.next;
    if (!page.lines.length) return;
    for (const line of page.lines) add(line, state, lines);
  }
}

function add(line, state, lines) {
  if (state.count >= SHOWN_LINES) return;
  if (line.lease_no !== state.lease) {
    state.lease = line.lease_no;
    lines.append(`── lease ${line.lease_no} ──\n`);
  }
  state.count += 1;
  lines.append(`${instant(line.at)}  ${text(line)}\n`);
  if (state.count === SHOWN_LINES) lines.append("There is more; penstock messages show --logs prints all of it.\n");
}

function text(line) {
  return line.level === "print" ? line.text : `${line.level.toUpperCase()} ${line.source}: ${line.text}`;
}
