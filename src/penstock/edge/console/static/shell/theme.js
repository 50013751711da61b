// The theme: light, dark, or the system's.

const KEY = "penstock-theme";
const ORDER = ["auto", "light", "dark"];

export function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // Without storage it applies to this page only.
  }
  return next;
}
