// Keys and settings, read-only.  They are changed on the server.

import { get } from "../server/api.js";
import { h, replace } from "../kit/dom.js";
import { badge, notice, pageHead, when } from "../kit/parts.js";
import { makeTable } from "../kit/table.js";
import { withCode } from "../kit/values.js";

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
        { label: "Roles", isWide: true, value: (one) => one.roles.map((role) => [badge(role), " "]) },
        { label: "Queues", value: (one) => one.queues.join(", ") },
        { label: "Created", value: (one) => when(one.created_at) },
        { label: "Revoked", value: (one) => when(one.revoked_at) },
        { label: "Id", isWide: true, value: (one) => h("code", { class: "id" }, one.id) },
      ],
      rows: answer.keys,
      key: (one) => one.id,
      empty: "There are no keys: every program on this machine has full access.",
    });
    replace(
      view.root,
      pageHead("Keys", { lead: "Each key has roles, and queues that it is for. Only a hash of its secret is stored, so it cannot be shown." }),
      notice(withCode("Keys are created and revoked on the server: `penstock keys create` and `penstock keys revoke`.")),
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
        { label: "Value", isWide: true, value: value },
        { label: "Meaning", isWide: true, value: (one) => one.text },
        { label: "Default", isWide: true, value: (one) => h("span", { class: "soft" }, one.default ?? "unset") },
      ],
      rows,
      key: (one) => one.key,
      empty: "All settings have their defaults.",
    });
    replace(
      view.root,
      pageHead("Settings", {
        lead: "The settings of this node. They come from the config file, the environment or flags, and are read at start.",
        actions: [
          h("a", { class: "button", href: isChanged ? "/console/settings" : "/console/settings?changed=true" }, isChanged ? "Show all" : "Show only changed settings"),
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
