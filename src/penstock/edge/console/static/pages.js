// All pages.  `nav` puts one into the list at the side, `key` makes "g" and that letter go there.

import { aweqPages } from "./pages/aweq.js";
import { login } from "./pages/login.js";
import { overview } from "./pages/overview.js";
import { queue } from "./pages/queue.js";
import { queueSettings } from "./pages/queue_settings.js";
import { queues } from "./pages/queues.js";

export const groups = [
  { label: "", pages: [overview, queues] },
  { label: "AweQ", pages: aweqPages },
];

// A page that is not in the list at the side names the one it stands `under`.
export const pages = [...groups.flatMap((group) => group.pages), queue, queueSettings, login];
