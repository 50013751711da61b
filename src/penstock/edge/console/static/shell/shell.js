// The frame around all pages: side bar, search, user and live state.

import { h, replace } from "../kit/dom.js";
import { brandMark, icon } from "../kit/icons.js";
import { showKeys } from "./keyboard.js";
import { listenForSearch, openSearch } from "./search.js";
import { onLiveState } from "../server/live.js";
import { logOut, session } from "../server/session.js";
import { nextTheme, theme } from "./theme.js";

const THEMES = { auto: "system", light: "light", dark: "dark" };

/** groups: [{ label, pages }]; pages with `nav` are in the side bar. */
export function makeShell(groups, pages, { go }) {
  const main = h("main", { id: "main", tabindex: "-1" });
  const search = makeSearch(go);
  const links = new Map();
  const nav = h(
    "nav",
    { id: "pages", class: "pages", "aria-label": "Pages" },
    h("a", { class: "brand", href: "/console" }, brandMark(), "Penstock"),
    groups.map((group) => navGroup(group, links)),
    h(
      "div",
      { class: "nav-foot" },
      h("a", { href: "/docs", target: "_blank", rel: "noopener" }, "API reference"),
      h("span", { class: "version" }, session()?.version ?? ""),
    ),
  );
  const menu = h(
    "button",
    { type: "button", class: "plain menu", "aria-label": "Menu", "aria-controls": "pages" },
    icon("menu"),
  );
  const root = h("div", { class: "shell" });
  const setOpen = (isOpen) => {
    root.classList.toggle("open", isOpen);
    menu.setAttribute("aria-expanded", String(isOpen));
  };
  setOpen(false);
  menu.addEventListener("click", () => setOpen(!root.classList.contains("open")));
  const find = h("button", { type: "button", class: "small find", title: "Search everything (Ctrl-K)" }, "Search ", h("kbd", null, "Ctrl K"));
  find.addEventListener("click", () => openSearch(pages, go));
  listenForSearch(pages, go);
  const bar = h("header", { class: "bar" }, menu, search.form, find, tools(pages, go));
  replace(root, nav, h("div", { class: "beside" }, bar, connectionBar(), main));
  main.addEventListener("click", () => setOpen(false));
  replace(document.body, h("a", { class: "skip", href: "#main" }, "Skip to content"), root);
  return {
    main,
    focusSearch: () => search.input.focus(),
    show(page) {
      setOpen(false);
      for (const [path, link] of links) {
        if (path === page.path || path === page.under) {
          link.setAttribute("aria-current", "page");
          link.closest("details")?.setAttribute("open", "");
        }
        else link.removeAttribute("aria-current");
      }
    },
  };
}

function navGroup(group, links) {
  const entries = group.pages.map((page) => {
    const link = h("a", { href: page.path }, icon(page.icon), page.nav);
    links.set(page.path, link);
    return h("li", null, link);
  });
  if (group.isFolded) {
    return h("details", { class: "nav-group", hidden: !group.isShown() }, h("summary", null, group.label), h("ul", null, entries));
  }
  return h("div", { class: "nav-group" }, group.label && h("h2", null, group.label),
    h("ul", null, entries));
}

function makeSearch(go) {
  const input = h("input", {
    type: "search",
    name: "contains",
    placeholder: "Search queues",
    "aria-label": "Search queues",
    autocomplete: "off",
    spellcheck: "false",
  });
  const form = h("form", { role: "search", action: "/console/queues" }, input, h("kbd", null, "/"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    go(text ? `/console/queues?contains=${encodeURIComponent(text)}` : "/console/queues");
  });
  return { form, input };
}

/** A bar across the page while the server does not answer; the figures are grey meanwhile. */
function connectionBar() {
  const bar = h("div", { class: "connection", role: "alert", hidden: true });
  onLiveState((state, heardAt) => {
    const isLost = state === "lost";
    bar.hidden = !isLost;
    document.body.classList.toggle("stale", isLost);
    const since = heardAt ? ` since ${new Date(heardAt).toLocaleTimeString("en-GB")}` : "";
    replace(bar, isLost ? `The server has not answered${since}; reconnecting. The figures are not up to date.` : null);
  });
  return bar;
}

function tools(pages, go) {
  const dot = h("span", { class: "live-dot" });
  const word = h("span", null, "");
  const live = h("span", { class: "live", role: "status" }, dot, word);
  onLiveState((state) => {
    live.dataset.state = state;
    word.textContent = state === "lost" ? "no connection" : state;
    live.title = { live: "Figures are updated once a second", off: "This page is not live" }[state] ?? "";
  });
  const help = h("button", { type: "button", class: "plain", title: "Keys (?)" }, "?");
  help.setAttribute("aria-label", "Keys");
  help.addEventListener("click", () => showKeys(pages));
  return h("div", { class: "tools" }, live, themeButton(), help, account(go));
}

function themeButton() {
  const button = h("button", { type: "button", class: "plain" });
  const show = () => {
    replace(button, icon(theme()));
    button.title = `Colours: ${THEMES[theme()]}`;
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => {
    nextTheme();
    show();
  });
  show();
  return button;
}

function account(go) {
  const { is_key_needed: isNeeded, caller } = session();
  if (!isNeeded || !caller) return null;
  const out = h("button", { type: "button", class: "small" }, "Log out");
  out.addEventListener("click", async () => {
    await logOut();
    go("/console/login");
  });
  const roles = caller.roles.join(", ");
  return h("span", { class: "account", title: `Roles: ${roles}` }, h("b", null, caller.name), out);
}
