// Calls of the native API and of AweQ's.

import { learnTime } from "../kit/format.js";
import { session } from "./session.js";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Called when the login has expired; set by the application. */
export const onLoggedOut = { call: () => {} };

export async function get(path, query, { signal } = {}) {
  return read(await send("GET", withQuery(path, query), { signal }));
}

export async function call(method, path, body, headers) {
  return read(await send(method, path, { body, headers }));
}

/** The response, whatever its status. */
export async function send(method, path, { body, signal, headers } = {}) {
  const answer = await ask(method, path, { body, signal, headers });
  learnTime(answer.headers.get("date"));
  if (answer.status === 401) onLoggedOut.call();
  return answer;
}

export function withQuery(path, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value != null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Encode one segment of a path. */
export function part(text) {
  return encodeURIComponent(text);
}

async function ask(method, path, { body, signal, headers }) {
  const all = { ...headers };
  const token = session()?.csrf_token;
  if (token) all["x-csrf-token"] = token;
  if (body !== undefined) all["content-type"] = "application/json";
  try {
    return await fetch(path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not respond.");
  }
}

async function read(answer) {
  if (answer.status === 204) return null;
  const text = await answer.text();
  let content = null;
  try {
    content = parse(text);
  } catch {
    throw new ApiError(answer.status, "not_json", text.slice(0, 300) || answer.statusText);
  }
  if (answer.ok) return content;
  throw new ApiError(answer.status, content?.error?.code ?? "error", content?.error?.message ?? text);
}

/** Parse JSON; large integers keep all their digits when they are shown. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    const isLarge = typeof value === "number" && !Number.isSafeInteger(value);
    if (isLarge && JSON.rawJSON && /^-?\d+$/.test(context?.source ?? "")) {
      return JSON.rawJSON(context.source);
    }
    return value;
  });
}
