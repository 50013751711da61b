// Line drawings of 20 by 20, one path each.

import { h, svg } from "./dom.js";

const PATHS = {
  overview: "M3 11h5V3H3zM12 17h5V9h-5zM3 17h5v-3H3zM12 6h5V3h-5z",
  queues: "M3 5h14M3 10h14M3 15h9",
  messages: "M3 5h14v10H3zM3 6l7 5 7-5",
  facts: "M5 3h10v14H5zM8 7h4M8 10h4M8 13h2",
  topics: "M4 10h3l8-5v10l-8-5M17 8v4",
  errors: "M10 3l8 14H2zM10 8v4M10 14v1",
  history: "M10 4a6 6 0 1 1-6 6M4 4v4h4M10 7v3l2 2",
  workers: "M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17c0-3 3-5 6-5s6 2 6 5",
  flows: "M7 3h6v4H7zM2 13h6v4H2zM12 13h6v4h-6zM10 7v3M5 13v-3h10v3",
  routes: "M4 4v6a3 3 0 0 0 3 3h9M13 10l3 3-3 3M4 16v1",
  recurring: "M4 10a6 6 0 0 1 10-4l2 2M16 4v4h-4M16 10a6 6 0 0 1-10 4l-2-2M4 16v-4h4",
  scaling: "M3 17h14M5 17v-4M9 17V9M13 17V6M17 17V3",
  insights: "M3 16l4-5 4 3 6-9M13 5h4v4",
  sql: "M4 5c0-1.500 2.700-2 6-2s6 .500 6 2v10c0 1.500-2.700 2-6 2s-6-.500-6-2zM4 5c0 1.500 2.700 2 6 2s6-.500 6-2M4 10c0 1.500 2.700 2 6 2s6-.500 6-2",
  keys: "M12 8a4 4 0 1 0-3.5 4L10 13.500h2v2h2v2h3v-3l-5-5",
  settings: "M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4",
  aweq: "M4 10h12M11 5l5 5-5 5",
  remove: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11",
  menu: "M3 5h14M3 10h14M3 15h14",
  auto: "M10 3v14A7 7 0 0 0 10 3zM10 3a7 7 0 0 0 0 14",
  light: "M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6M10 2v2M10 16v2M2 10h2M16 10h2M4.500 4.500 6 6M14 14l1.500 1.500M4.500 15.500 6 14M14 6l1.500-1.500",
  dark: "M16 12A7 7 0 0 1 8 4a6.500 6.500 0 1 0 8 8z",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] ?? PATHS.aweq }),
  );
}

export function brandMark() {
  const src = new URL(document.querySelector('link[rel="icon"]').href).pathname;
  return h("img", { class: "brand-mark", src, alt: "" });
}
