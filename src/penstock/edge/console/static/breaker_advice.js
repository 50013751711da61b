// Recommendations of breaker_tuning per route, each with a button to apply it.

import { actionButton } from "./action.js";
import { get, part, withQuery } from "./api.js";
import { applyAdvice, recommended } from "./circuit_settings.js";
import { h } from "./dom.js";
import { card } from "./parts.js";
import { makeTable } from "./table.js";
import { flat } from "./values.js";

const ALL = "*";
const MAX_ROUTES = 50; // routes

/** A card for the newest day of the table; null if there are no recommendations. */
export async function adviceCard(view, { columns, rows }) {
  const named = rows.map((row) => Object.fromEntries(columns.map((name, place) => [name, row[place]])));
  const day = named.map(({ dt }) => dt).sort().at(-1);
  const best = named.filter((row) => row.is_recommended && row.dt === day).slice(0, MAX_ROUTES);
  if (!best.length) return null;
  const advice = await Promise.all(best.map((row) => withCircuit(view, row)));
  const table = makeTable({
    caption: "Recommended settings",
    columns: [
      { label: "Route", isMain: true, value: ({ row }) => (row.route === ALL ? "all routes" : h("code", null, row.route)) },
      { label: "Recommended", value: ({ row }) => inLine(recommended(row)) },
      { label: "In force", value: ({ row, inForce }) => inLine(Object.fromEntries(Object.keys(recommended(row)).map((name) => [name, inForce[name]]))) },
      { label: "", value: ({ row, circuit, inForce }) => actionButton(applyAdvice(row, circuit, inForce, () => view.again()), { isSmall: true }) },
    ],
    rows: advice,
    key: ({ row }) => `advice ${row.route}`,
  });
  return card(`Recommended by ${day}`, table.element);
}

async function withCircuit(view, row) {
  const options = { signal: view.signal };
  if (row.route === ALL) return { row, circuit: null, inForce: await get("/v1/breaker", {}, options) };
  const { circuits: [circuit] } = await get("/v1/circuits", { route: row.route }, options);
  const own = await get(withQuery(`/v1/circuits/${part(circuit.hash)}/settings`, { route: row.route }), {}, options);
  return { row, circuit, inForce: own.settings };
}

function inLine(values) {
  return flat(values).map(([name, text]) => h("div", null, `${name.replaceAll("_", " ")}: ${text}`));
}
