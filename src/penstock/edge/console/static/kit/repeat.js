// Updates of a page in place.

import { h, replace } from "./dom.js";
import { serverNow } from "./format.js";
import { onLive } from "../server/live.js";

const REST = 20; // times as long as the last look took

/** Poll while the page is visible. */
export function repeatedly(view, look, everyMs) {
  const timer = setInterval(() => {
    if (!document.hidden) look().catch(() => {}); // the next poll retries
  }, everyMs);
  view.onLeave(() => clearInterval(timer));
}

/** Look whenever the server reports news, about once a second; less often if a look takes long. */
export function whileLive(view, look) {
  let isBusy = false;
  let restUntil = 0;
  view.onLeave(
    onLive(async (_, isFirst) => {
      if (isFirst || isBusy || performance.now() < restUntil) return;
      isBusy = true;
      const began = performance.now();
      try {
        await look();
      } catch {
        // The next news retries.
      }
      isBusy = false;
      restUntil = performance.now() + REST * (performance.now() - began);
    }),
  );
}

/**
 * "As of 06:12:03" with a button that calls `look` again; with `everyMs` it is also polled.
 * `look` reads the data again and shows it.  Returns an element for the head of the page.
 */
export function freshness(view, look, everyMs = null) {
  const at = h("span");
  const button = h("button", { type: "button", class: "small" }, "Refresh");
  const stamp = () => replace(at, `As of ${new Date(serverNow()).toLocaleTimeString("en-GB")} `);
  const again = async () => {
    await look();
    stamp();
  };
  button.addEventListener("click", () =>
    again().catch((error) => {
      if (error.name !== "AbortError") replace(at, `Not refreshed: ${error.message} `);
    }),
  );
  stamp();
  if (everyMs) repeatedly(view, again, everyMs);
  return h("span", { class: "as-of soft" }, at, button);
}
