// All changes go through here: show what will happen and to how many, with the equivalent command
// and API call; then do it and report the result.
//
// An action: {
//   label, role, isDanger?, title, text, details?: an element below the text, confirm?, dismiss?: labels of its two buttons,
//   typed?: a name that must be typed if TYPED_FROM items or more are affected,
//   count?: async (values) => number of affected items, noun?: "message",
//   fields?: [{ name, label, hint?, type?, value?, options?, isRequired?, rows? }],
//   request: (values) => ({ method, path, body?, headers? }),
//   command: (values) => words after `penstock`, or null if the command line has no equivalent;
//     with `requests` a list of them,
//   requests?: (values) => [request], instead of `request`: several, one after the other,
//   explain?: (error, values) => nodes shown after the text of a refusal,
//   done: (answer, values) => text, then?: (answer) => …,
// }

import { call } from "../server/api.js";
import { commandLine, curl } from "../server/commands.js";
import { codeBlock, openDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { count } from "./format.js";
import { whyNot } from "../server/session.js";
import { say } from "./toast.js";

const TYPED_FROM = 100;

/** A button for the action; if the user may not do it, it is disabled and says why. */
export function actionButton(action, { isSmall = false } = {}) {
  const reason = whyNot(action.role ?? "operate") ?? action.reason ?? null;
  const classes = [action.isDanger && "danger", isSmall && "small"].filter(Boolean).join(" ");
  return h(
    "button",
    {
      type: "button",
      class: classes || null,
      disabled: reason !== null,
      title: reason,
      "data-action": action.label,
      onclick: () => runAction(action),
    },
    action.label,
  );
}

/** Ask for confirmation, do it, report the result. */
export function runAction(action) {
  const commands = codeBlock("Command line", "");
  const calls = codeBlock("HTTP API", "");
  const counted = h("p", { class: "counted", role: "status" });
  const problem = h("p", { class: "problem", role: "alert" });
  const typed = action.typed ? makeField({ name: "typed", label: `Type ${action.typed} to confirm` }, () => checkTyped()) : null;
  if (typed) typed.element.hidden = true;
  const fields = (action.fields ?? []).map((field) => makeField(field, () => refresh()));
  const confirm = h(
    "button",
    { type: "submit", class: action.isDanger ? "danger primary" : "primary" },
    action.confirm ?? action.label,
  );
  const cancel = h("button", { type: "button" }, action.dismiss ?? "Cancel");
  const form = h(
    "form",
    { method: "dialog" },
    action.text && h("p", null, action.text),
    action.details,
    counted,
    fields.map((field) => field.element),
    typed?.element,
    problem,
    h("details", { class: "forms", open: true }, h("summary", null, "Do the same from a shell"),
      commands.element, calls.element),
    h("footer", null, cancel, confirm),
  );
  const box = openDialog({ title: action.title, children: [form] });
  let queries = 0;

  function values() {
    return Object.fromEntries(fields.map((field) => [field.name, field.value()]));
  }

  function checkTyped() {
    if (typed && !typed.element.hidden) confirm.disabled = typed.value() !== action.typed;
  }

  async function refresh() {
    const given = values();
    let requests;
    try {
      requests = requestsOf(action, given);
    } catch (error) {
      replace(problem, error.message);
      confirm.disabled = true;
      return;
    }
    replace(problem);
    confirm.disabled = false;
    const words = action.command(given);
    commands.element.hidden = words === null;
    if (words !== null) commands.set(action.requests ? words.map(commandLine).join("\n") : commandLine(words));
    calls.set(requests.map(curl).join("\n"));
    if (action.count) await showCount(given);
  }

  async function showCount(given) {
    const query = (queries += 1);
    try {
      const many = await action.count(given);
      if (query !== queries) return;
      replace(counted, affectedText(many, action.noun ?? "message"));
      if (typed) typed.element.hidden = many < TYPED_FROM;
      checkTyped();
    } catch (error) {
      if (query === queries) replace(counted, `The number is unknown: ${error.message}`);
    }
  }

  cancel.addEventListener("click", () => box.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = values();
    confirm.disabled = true;
    try {
      let answer = null;
      for (const { method, path, body, headers } of requestsOf(action, given)) {
        answer = await call(method, path, body, headers);
      }
      box.close();
      say(action.done(answer, given));
      action.then?.(answer);
    } catch (error) {
      replace(problem, error.message, action.explain?.(error, given) ?? null);
      confirm.disabled = false;
    }
  });
  refresh();
  return box;
}

function requestsOf(action, values) {
  return action.requests ? action.requests(values) : [action.request(values)];
}

function affectedText(many, noun) {
  return many === 1 ? `1 ${noun} is affected.` : `${count(many)} ${noun}s are affected.`;
}

/** A labelled input; also used by forms outside of actions. */
export function makeField(field, onInput) {
  const id = `field-${field.name}`;
  const input = makeInput(field, id);
  input.addEventListener("input", () => onInput?.());
  const isCheck = input.type === "checkbox";
  const hint = field.hint && h("small", { id: `${id}-hint` }, field.hint);
  const label = h("label", { for: id }, field.label);
  return {
    name: field.name,
    input,
    element: h("div", { class: isCheck ? "field check" : "field" }, label, input, hint),
    value: () => (isCheck ? input.checked : input.value.trim()),
  };
}

function makeInput(field, id) {
  const shared = {
    id,
    name: field.name,
    required: field.isRequired,
    autocomplete: "off",
    "aria-describedby": field.hint ? `${id}-hint` : null,
  };
  if (field.options) {
    const options = field.options.map((option) => {
      const [value, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value, selected: value === field.value }, text);
    });
    return h("select", shared, options);
  }
  if (field.rows) {
    const area = h("textarea", { ...shared, rows: field.rows, spellcheck: "false" });
    area.value = field.value ?? "";
    return area;
  }
  const type = field.type ?? "text";
  const input = h("input", { ...shared, type, placeholder: field.placeholder, min: field.min, step: field.step });
  if (type === "checkbox") input.checked = Boolean(field.value);
  else input.value = field.value ?? "";
  return input;
}
