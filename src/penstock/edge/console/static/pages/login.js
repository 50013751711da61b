// Log in with an API key.  It is sent once and not stored; the session is a cookie that scripts
// cannot read.

import { h, replace } from "../kit/dom.js";
import { brandMark } from "../kit/icons.js";
import { isIn, logIn } from "../server/session.js";

export const login = {
  path: "/console/login",
  title: "Log in",
  isOpen: true,

  show(view) {
    if (isIn()) return view.go("/console", { replacing: true });
    const key = h("input", {
      id: "key",
      type: "password",
      name: "key",
      required: true,
      autocomplete: "current-password",
      spellcheck: "false",
      placeholder: "pk_…",
    });
    const problem = h("p", { class: "problem", role: "alert" });
    const button = h("button", { type: "submit", class: "primary" }, "Log in");
    const form = h(
      "form",
      { class: "login card" },
      h("div", { class: "brand" }, brandMark(), "Penstock"),
      h("h1", { tabindex: "-1" }, "Log in"),
      h("div", { class: "field" }, h("label", { for: "key" }, "API key"), key),
      problem,
      button,
      h("p", { class: "lead" }, "Create one with ", h("code", null, "penstock keys create"),
        ". A key with the role “read” can see everything and change nothing."),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        await logIn(key.value.trim());
        location.assign(wanted(view.query.get("then")));
      } catch (error) {
        replace(problem, error.message);
        button.disabled = false;
        key.select();
      }
    });
    replace(view.root, form);
    key.focus();
  },
};

/** The page to return to after the login; only our own pages. */
function wanted(then) {
  return then && /^\/console(?:[/?]|$)/.test(then) ? then : "/console";
}
