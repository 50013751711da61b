// The settings of a queue: view and change.

import { makeField, runAction } from "../kit/action.js";
import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { pathOf } from "../actions/queue_actions.js";
import { GROUPS, difference, settingText } from "../actions/queue_settings.js";
import { whyNot } from "../server/session.js";
import { queueHead } from "./queue.js";

export const queueSettings = {
  path: "/console/queues/{queue}/settings",
  title: "Settings",
  under: "/console/queues",

  async show(view) {
    const found = await get(pathOf(view.params.queue), {}, { signal: view.signal });
    const fields = [];
    const problem = h("p", { class: "problem", role: "alert" });
    const reason = whyNot("operate");
    const save = h("button", { type: "submit", class: "primary", disabled: true, title: reason }, "Save");
    const reset = h("button", { type: "reset" }, "Undo");
    const groups = GROUPS.map((group) =>
      h(
        "fieldset",
        { class: "card", disabled: reason !== null },
        h("legend", null, group.title),
        h("div", { class: "settings" }, group.settings.map((setting) => field(setting))),
      ),
    );
    const form = h("form", { class: "settings-form" }, groups, problem,
      reason && h("p", { class: "soft" }, reason), h("div", { class: "actions" }, save, reset));

    function field(setting) {
      const { kind } = setting;
      const made = makeField(
        {
          name: setting.name,
          label: setting.label,
          hint: [setting.hint, kind.hint].filter(Boolean).join("; "),
          options: kind.options,
          rows: kind.rows,
          value: settingText(setting, found.settings),
        },
        refresh,
      );
      made.input.disabled = Boolean(setting.isFixed);
      fields.push(made);
      return made.element;
    }

    function texts() {
      return Object.fromEntries(fields.map((one) => [one.name, one.input.value]));
    }

    function refresh() {
      try {
        const { words } = difference(texts(), found.settings);
        replace(problem);
        save.disabled = reason !== null || !words.length;
      } catch (error) {
        replace(problem, error.message);
        save.disabled = true;
      }
    }

    form.addEventListener("reset", () => setTimeout(() => view.again()));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { changes, words } = difference(texts(), found.settings);
      runAction({
        label: "Save",
        title: `Change the settings of ${found.name}?`,
        text: "Settings that are not listed here stay unchanged.",
        request: () => ({ method: "PATCH", path: pathOf(found.name), body: changes }),
        command: () => ["queues", "set", found.name, ...words],
        done: () => `${found.name} has new settings.`,
        then: () => view.again(),
      });
    });

    replace(view.root, queueHead(found, view, "settings"), form);
  },
};
