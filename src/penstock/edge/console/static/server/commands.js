// The actions of a page as shell commands.  Tests run these texts.

import { session } from "./session.js";

const DEFAULT_SERVER = "http://127.0.0.1:7654";
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** words: the arguments after `penstock`; undefined and null are omitted. */
export function commandLine(words) {
  const given = words.filter((word) => word !== null && word !== undefined);
  const where = location.origin === DEFAULT_SERVER ? [] : ["--server", location.origin];
  return ["penstock", ...given, ...where].map(quoted).join(" ");
}

export function curl({ method, path, body, headers }) {
  const usual = body === undefined ? "GET" : "POST";
  const words = ["curl -sS"];
  if (method !== usual) words.push(`-X ${method}`);
  words.push(quoted(location.origin + path));
  const lines = [words.join(" ")];
  if (session()?.is_key_needed) lines.push('-H "authorization: Bearer $PENSTOCK_KEY"');
  for (const [name, value] of Object.entries(headers ?? {})) {
    lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  }
  if (body !== undefined) {
    lines.push(`-H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

function quoted(word) {
  const text = String(word);
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
