// Keys and settings, to be looked at.  They are made and changed on the server itself.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { badge, notice, pageHead, when } from "../parts.js";
import { makeTable } from "../table.js";
import { withCode } from "../values.js";

export const keys = {
  path: "/console/keys",
  title: "Keys",
  nav: "Keys",
  icon: "keys",
  key: "k",

  async show(view) {
    const answer = await get("/v1/keys", {}, { signal: view.signal });
    const table = makeTable({
      caption: "API keys",
      columns: [
        { label: "Name", isMain: true, value: (one) => one.name },
        { label: "State", value: (one) => (one.revoked_at ? badge("revoked", "bad") : badge("in use", "good")) },
        { label: "Roles", value: (one) => one.roles.map((role) => [badge(role), " "]) },
        { label: "Queues", value: (one) => one.queues.join(", ") },
        { label: "Made", value: (one) => when(one.created_at) },
        { label: "Revoked", value: (one) => when(one.revoked_at) },
        { label: "Id", value: (one) => h("code", { class: "id" }, one.id) },
      ],
      rows: answer.keys,
      key: (one) => one.id,
      empty: "There are no keys: everybody on this machine may do everything.",
    });
    replace(
      view.root,
      pageHead("Keys", { lead: "Who may do what on which queues. Of a key only a hash is kept, so its secret is shown nowhere." }),
      notice(withCode("Keys are made and revoked on the server: `penstock keys create` and `penstock keys revoke`.")),
      table.element,
    );
  },
};

export const settings = {
  path: "/console/settings",
  title: "Settings",
  nav: "Settings",
  icon: "settings",
  key: "e",

  async show(view) {
    const isChanged = view.query.get("changed") === "true";
    const answer = await get("/v1/settings", {}, { signal: view.signal });
    const rows = answer.settings.filter((one) => !isChanged || !one.is_default);
    const table = makeTable({
      caption: "Settings",
      columns: [
        { label: "Setting", isMain: true, value: (one) => h("code", { title: one.env }, one.key) },
        { label: "Value", value: value },
        { label: "Meaning", value: (one) => one.text },
        { label: "Default", value: (one) => h("span", { class: "soft" }, one.default ?? "unset") },
      ],
      rows,
      key: (one) => one.key,
      empty: "All are as they come.",
    });
    replace(
      view.root,
      pageHead("Settings", {
        lead: "What this node goes by. They are set in the config file, in the environment or with flags, and read at its start.",
        actions: [
          h("a", { class: "button", href: isChanged ? "/console/settings" : "/console/settings?changed=true" }, isChanged ? "Show all" : "Show only what was changed"),
        ],
      }),
      table.element,
    );
  },
};

function value(one) {
  const text = one.value ?? "unset";
  return one.is_default ? text : [h("strong", null, text), " ", badge("changed", "info")];
}
