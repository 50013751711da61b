// Updates of a page in place.

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
