// Keys, and the settings of the server, which are changed there.

import { actionButton } from "../kit/action.js";
import { codeBlock, openDialog } from "../kit/dialog.js";
import { get, part } from "../server/api.js";
import { utcText } from "../kit/filters.js";
import { h, replace } from "../kit/dom.js";
import { serverNow } from "../kit/format.js";
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
        { label: "State", value: stateOf },
        { label: "Roles", isWide: true, value: (one) => one.roles.map((role) => [badge(role), " "]) },
        { label: "Queues", value: (one) => one.queues.join(", ") },
        { label: "Created", value: (one) => when(one.created_at) },
        { label: "Last used", value: (one) => when(one.last_used_at) },
        { label: "Expires", value: (one) => when(one.expires_at) },
        { label: "Revoked", value: (one) => when(one.revoked_at) },
        { label: "Id", isWide: true, value: (one) => h("code", { class: "id" }, one.id) },
        { label: "Acts", isWide: true, value: (one) => one.revoked_at ? null : actionButton(revoke(one, () => view.again()), { isSmall: true }) },
      ],
      rows: answer.keys,
      key: (one) => one.id,
      empty: "There are no keys: every program on this machine has full access.",
    });
    replace(
      view.root,
      pageHead("Keys", { lead: "Each key has roles, and queues that it is for. Only a hash of its secret is stored, so it is shown only once.", actions: [actionButton(create(() => view.again()))] }),
      !answer.keys.length && notice(withCode("As soon as there is a key, every request needs one, and so does this console.")),
      table.element,
    );
  },
};

function stateOf(one) {
  if (one.revoked_at) return badge("revoked", "bad");
  if (one.expires_at && Date.parse(one.expires_at) <= serverNow()) return badge("expired", "warn");
  return badge("in use", "good");
}

function create(then) {
  const roles = ["produce", "consume", "operate", "read"];
  return {
    label: "New key",
    confirm: "Create",
    title: "Create an API key",
    text: "Give it the fewest roles and queues that its program needs. You can give roles that you have.",
    fields: [
      { name: "name", label: "Name", isRequired: true, hint: "What the key is for" },
      ...roles.map((role) => ({ name: role, label: `Role ${role}`, type: "checkbox" })),
      { name: "queues", label: "Queues", value: "*", hint: "Patterns, separated by spaces: mail.* orders" },
      { name: "expires", label: "Expires", type: "datetime-local", hint: "In your time zone; empty: never" },
    ],
    request: (values) => ({
      method: "POST",
      path: "/v1/keys",
      body: {
        name: values.name,
        roles: roles.filter((role) => values[role]),
        queues: values.queues.split(/\s+/).filter(Boolean),
        ...(values.expires && { expires_at: utcText(values.expires) }),
      },
    }),
    // The command opens the store, so it can only be run where that is.
    command: () => null,
    done: ({ key }) => `${key.name} is created.`,
    then: ({ key, secret }) =>
      openDialog({
        title: `The secret of ${key.name}`,
        children: [h("p", null, "Copy it now: it is not stored and not shown again."), codeBlock("Secret", secret).element],
        onClose: then,
      }),
  };
}

function revoke(one, then) {
  return {
    label: "Revoke",
    isDanger: true,
    title: `Revoke ${one.name}?`,
    text: "Requests with this key are rejected within a second, and its logins end. This cannot be undone.",
    request: () => ({ method: "DELETE", path: `/v1/keys/${part(one.id)}` }),
    command: () => ["keys", "revoke", one.id],
    done: () => `${one.name} is revoked.`,
    then,
  };
}

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
