// The logged-in user and their roles.  The server checks access; this only avoids useless requests.

import { learnTime } from "../kit/format.js";

let known = null;

export async function loadSession() {
  return take(await ask("GET"));
}

export async function logIn(key) {
  return take(await ask("POST", { key }));
}

export async function logOut() {
  return take(await ask("DELETE"));
}

export function session() {
  return known;
}

export function isIn() {
  return known?.caller != null;
}

/** Why the user lacks this role; null if they have it. */
export function whyNot(role) {
  const roles = known?.caller?.roles ?? [];
  if (roles.includes(role) || (role === "read" && roles.includes("operate"))) return null;
  return `Your key lacks the role “${role}”.`;
}

function take(session) {
  known = session;
  return session;
}

async function ask(method, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const answer = await fetch("/console/session", {
    method,
    headers,
    body: body && JSON.stringify(body),
    cache: "no-store",
  });
  learnTime(answer.headers.get("date"));
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error.message);
  return content;
}
