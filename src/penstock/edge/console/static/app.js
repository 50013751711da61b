// Entry point: build the shell and start the router.

import { onLoggedOut } from "./server/api.js";
import { h, replace } from "./kit/dom.js";
import { listenToKeys } from "./shell/keyboard.js";
import { groups, pages } from "./pages.js";
import { trouble } from "./kit/parts.js";
import { Router } from "./shell/router.js";
import { isIn, loadSession } from "./server/session.js";
import { makeShell } from "./shell/shell.js";

const RETRY_MS = 2_000; // of a page that could not be loaded because the server did not answer

const missing = {
  title: "Not found",
  isOpen: true,
  show: (view) =>
    replace(view.root, trouble({ status: 404, message: "No page exists at this address." })),
};

/** Whether the same request may succeed later. */
function isTemporary(error) {
  return error.status === 0 || error.status === 503;
}

async function start() {
  try {
    await loadSession();
  } catch (error) {
    replace(document.body, h("main", null, trouble(error)));
    return;
  }
  const shell = makeShell(groups, pages, { go: (url) => router.go(url) });
  const router = new Router(pages, {
    root: shell.main,
    missing,
    onShow(page, params) {
      const name = Object.values(params)[0];
      document.title = `${name ? `${name} · ` : ""}${page.title} · Penstock`;
      document.body.classList.toggle("outside", !isIn());
      shell.show(page);
      scrollTo(0, 0);
      const mayShow = isIn() || page.isOpen === true;
      if (!mayShow) toLogin();
      return mayShow;
    },
    onError(error, view) {
      replace(view.root, trouble(error, () => view.again()));
      if (!isTemporary(error)) return;
      const timer = setTimeout(() => view.again(), RETRY_MS);
      view.onLeave(() => clearTimeout(timer));
    },
  });
  const toLogin = () => {
    const then = encodeURIComponent(location.pathname + location.search);
    if (location.pathname !== "/console/login") location.replace(`/console/login?then=${then}`);
  };
  onLoggedOut.call = toLogin;
  listenToKeys(pages, { go: (url) => router.go(url), search: shell.focusSearch });
  await router.show();
}

start();
