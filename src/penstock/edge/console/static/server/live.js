// The stream of live updates (/v1/live), once a second while the page is visible.
//
// Not EventSource: it cannot send the header that a login requires.

import { parse, send } from "./api.js";

const AGAIN_MS = [500, 1_000, 2_000, 5_000, 10_000];
const listeners = new Set();
const watchers = new Set();
let state = "off";
let heardAt = null; // ms; when the server last answered
let running = null; // the AbortController of the open stream
let failures = 0;
let isFirst = false; // the first event of a stream is a snapshot, not a change

/** Call fn(event, isFirst) for every event; returns a function that unsubscribes. */
export function onLive(listener) {
  listeners.add(listener);
  start();
  return () => {
    listeners.delete(listener);
    if (!listeners.size) stop();
  };
}

/** Call fn(state, heardAt) now and on every change: off, live, reconnecting, lost (no answer). */
export function onLiveState(watcher) {
  watchers.add(watcher);
  watcher(state, heardAt);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else if (listeners.size) start();
});

function start() {
  if (running || document.hidden) return;
  running = new AbortController();
  follow(running);
}

function stop() {
  running?.abort();
  running = null;
  setState("off");
}

async function follow(control) {
  let isAnswered = false;
  try {
    const answer = await send("GET", "/v1/live", { signal: control.signal });
    isAnswered = true;
    if (answer.status === 403) return stop(); // this key sees no updates
    if (!answer.ok) throw new Error(`live: ${answer.status}`);
    isFirst = true;
    heardAt = Date.now();
    setState("live");
    await read(answer.body, control);
  } catch {
    // The server is gone or busy: reconnect.
  }
  if (control !== running) return;
  setState(isAnswered ? "reconnecting" : "lost");
  const pause = AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)];
  failures += 1;
  setTimeout(() => {
    if (control === running) follow(control);
  }, pause);
}

async function read(body, control) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done || control !== running) return;
    unread += value;
    const events = unread.split("\n\n");
    unread = events.pop();
    for (const text of events) dispatch(text);
  }
}

function dispatch(text) {
  const data = text.split("\n").filter((line) => line.startsWith("data: "));
  if (!data.length) return;
  failures = 0;
  heardAt = Date.now();
  const event = parse(data.map((line) => line.slice(6)).join("\n"));
  const wasFirst = isFirst;
  isFirst = false;
  for (const listener of [...listeners]) listener(event, wasFirst);
}

function setState(next) {
  if (next === state) return;
  state = next;
  for (const watcher of watchers) watcher(state, heardAt);
}
