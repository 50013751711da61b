// Small building blocks of pages.

import { h } from "./dom.js";
import { about, ago, compact, count, instant, serverNow } from "./format.js";

/** A page heading with its introduction, badges and actions. */
export function pageHead(title, { badges = [], actions = [], lead = null, back = null } = {}) {
  return h(
    "header",
    { class: "page-head" },
    back && h("a", { class: "back", href: back.href }, `‹ ${back.label}`),
    h(
      "div",
      { class: "title-line" },
      h("h1", { tabindex: "-1" }, title, badges.map((badge) => [" ", badge])),
      actions.length ? h("div", { class: "actions" }, actions) : null,
    ),
    lead && h("p", { class: "lead" }, lead),
  );
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title && h("h2", null, title), children);
}

/** A labelled figure; `set` updates it in place. */
export function figure(label, { tone = null, hint = null, href = null } = {}) {
  const value = h("span", { class: "value" }, "–");
  const more = h("span", { class: "more" });
  const inner = [h("span", { class: "label" }, label), value, more];
  const element = h(
    href ? "a" : "div",
    { class: tone ? `figure ${tone}` : "figure", title: hint, href, "data-figure": label },
    inner,
  );
  return {
    element,
    set(number, note = "") {
      const isNumber = typeof number === "number";
      value.textContent = isNumber ? compact(number) : number;
      value.title = isNumber ? count(number) : "";
      more.textContent = note;
      element.classList.toggle("zero", number === 0);
    },
  };
}

/** The figures that the overview and the page of a queue have in common. */
export function messageFigures() {
  return {
    ready: figure("Ready", { tone: "ready", hint: "Can be claimed now" }),
    waiting: figure("Waiting", { tone: "waiting", hint: "Not due yet: delayed, or backing off" }),
    leased: figure("Leased", { tone: "leased", hint: "Leased by workers" }),
    dead: figure("Dead", { tone: "dead", hint: "Out of attempts; a redrive sends them back" }),
    sent: figure("In", { tone: "accent", hint: "Messages sent per second" }),
    done: figure("Done", { tone: "done", hint: "Messages completed per second" }),
    failed: figure("Failing", { tone: "leased", hint: "Failed attempts per second" }),
  };
}

export function badge(text, tone = "", title = null) {
  // A long text is cut off on a phone: the title has all of it.
  return h("span", { class: `badge ${tone}`.trim(), title: title ?? (text.length > 24 && text) }, text);
}

export function stateBadge(state) {
  return badge(state, `state-${state}`);
}

/** An instant as relative time, with the full date as its title. */
export function when(text) {
  if (!text) return "–";
  return h("time", { datetime: text, title: `${instant(text)} (${text})` }, ago(text));
}

export function age(text) {
  if (!text) return "–";
  const passed = serverNow() - Date.parse(text);
  return h("time", { datetime: text, title: `${instant(text)} (${text})` }, about(Math.max(0, passed)));
}

/** A list of names and values. */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value ?? "–"))),
  );
}

export function tabs(entries, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": "Views" },
    entries.map(({ label, href, name }) =>
      h("a", { href, "aria-current": name === current ? "page" : null }, label),
    ),
  );
}

export function notice(text, tone = "") {
  return h("p", { class: `notice ${tone}`.trim(), role: tone === "bad" ? "alert" : null }, text);
}

/** Shown instead of a page that failed to load; `retry` loads it again. */
export function trouble(error, retry = null) {
  const code = error.code ? h("code", null, error.code) : null;
  return h(
    "section",
    { class: "trouble", role: "alert" },
    h("h1", { tabindex: "-1" }, error.status === 404 ? "Not found" : "Something went wrong"),
    h("p", null, error.message, " ", code),
    retry && error.status !== 404 && h("p", null, h("button", { type: "button", onclick: retry }, "Retry")),
    h("p", null, h("a", { href: "/console" }, "Back to the overview")),
  );
}
