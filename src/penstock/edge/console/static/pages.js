// All pages.  `nav` lists a page in the side bar, `key` is its shortcut after "g".

import { keys, settings } from "./pages/administration.js";
import { aweqPages } from "./pages/aweq.js";
import { circuit, circuits } from "./pages/circuits.js";
import { errors } from "./pages/errors.js";
import { facts } from "./pages/facts.js";
import { flow, flowMembers } from "./flows/flow_page.js";
import { flows } from "./flows/flows_page.js";
import { history } from "./pages/history.js";
import { answerPage, insight, insights } from "./pages/insights.js";
import { login } from "./pages/login.js";
import { message } from "./pages/message.js";
import { messages } from "./pages/messages.js";
import { overview } from "./pages/overview.js";
import { queue } from "./pages/queue.js";
import { queueSettings } from "./pages/queue_settings.js";
import { queues } from "./pages/queues.js";
import { recurring, schedule } from "./pages/recurring.js";
import { fleet, scaling } from "./pages/scaling.js";
import { sql } from "./pages/sql.js";
import { topic, topics } from "./pages/topics.js";
import { worker, workers } from "./pages/workers.js";
import { session } from "./server/session.js";

export const groups = [
  { label: "", pages: [overview, queues, messages, errors, history] },
  { label: "Work", pages: [flows, workers, topics, circuits, recurring, scaling] },
  { label: "Server", pages: [insights, sql, facts, keys, settings] },
  { label: "AweQ", pages: aweqPages, isFolded: true, isShown: () => session().is_aweq_used },
];

// A page that is not in the side bar names its parent with `under`.
const inside = [queue, queueSettings, message, flow, flowMembers, worker, circuit, schedule, topic, fleet, answerPage, insight, login];

export const pages = [...groups.flatMap((group) => group.pages), ...inside];
