// Problems of queues: name, tone and meaning of each kind, the worst first.

import { badge } from "./parts.js";

export const PROBLEMS = {
  full: ["full", "bad", "The queue is full: sends are rejected"],
  held: ["held", "bad", "A circuit holds it"],
  stuck: ["stuck", "warn", "Its first message has been claimable for five minutes or longer"],
  dead: ["dead messages", "bad", "Messages died in this queue"],
  dead_letters: ["dead letters", "bad", "It contains dead messages of other queues"],
  paused: ["paused", "warn", "An operator stopped claims, and messages are waiting"],
};

export function problemBadge(problem) {
  const [text, tone, title] = PROBLEMS[problem] ?? [problem, "", null];
  return badge(text, tone, title);
}
