// Runs before the first stroke is painted, so that nobody who chose dark sees a white flash.
try {
  const chosen = localStorage.getItem("penstock-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage, no choice: the system's wish is followed.
}
