// A form whose fields are the query of the page, so that filters can be shared and bookmarked.

import { h } from "./dom.js";

/**
 * fields: [{ name, label, type?, options?, placeholder?, list?, isWide? }].  Times are in the
 * query as ISO 8601 in UTC and in the field in the user's time zone.
 */
export function filterForm(view, fields, { submit = "Find", keeps = [] } = {}) {
  const inputs = fields.map((field) => makeInput(field, view.query.get(field.name) ?? ""));
  const form = h(
    "form",
    { class: "filter-grid", role: "search" },
    inputs.map(({ element }) => element),
    h(
      "div",
      { class: "filter-buttons" },
      h("button", { type: "submit", class: "primary" }, submit),
      fields.some(({ name }) => view.query.get(name)) && clearLink(view, fields, keeps),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = Object.fromEntries(inputs.map(({ name, value }) => [name, value()]));
    view.setQuery({ ...said, cursor: null });
  });
  // On a phone the fields would fill the first screen.
  const isOpen = matchMedia("(min-width: 641px)").matches;
  return h("details", { class: "filter-fold", open: isOpen }, h("summary", null, "Filters"), form);
}

function clearLink(view, fields, keeps) {
  const gone = fields.filter(({ name }) => !keeps.includes(name)).map(({ name }) => [name, null]);
  return h(
    "button",
    { type: "button", class: "plain", onclick: () => view.setQuery({ ...Object.fromEntries(gone), cursor: null }) },
    "Clear",
  );
}

function makeInput(field, value) {
  const id = `filter-${field.name}`;
  const shared = { id, name: field.name, autocomplete: "off", placeholder: field.placeholder };
  let input;
  if (field.options) {
    const options = field.options.map((option) => {
      const [name, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value: name, selected: name === value }, text);
    });
    input = h("select", shared, options);
  } else {
    const isTime = field.type === "time";
    const type = isTime ? "datetime-local" : field.type ?? "text";
    input = h("input", { ...shared, type, step: isTime ? 1 : null, list: field.list });
    input.value = isTime ? localText(value) : value;
  }
  return {
    name: field.name,
    element: h(
      "div",
      { class: field.isWide ? "filter wide" : "filter" },
      h("label", { for: id }, field.label),
      input,
    ),
    value: () => (field.type === "time" ? utcText(input.value) : input.value.trim()),
  };
}

/** "2031-01-01T09:00:00.000Z" as the value of a field, in the user's time zone. */
export function localText(iso) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return "";
  const own = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return own.toISOString().slice(0, 19);
}

export function utcText(local) {
  const at = new Date(local);
  return local && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
}
