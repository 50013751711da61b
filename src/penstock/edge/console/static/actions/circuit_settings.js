// Circuit breaker settings of single circuits: how each is shown and parsed, and changing them.

import { part, withQuery } from "../server/api.js";
import { badge } from "../kit/parts.js";
import { number, orNone, refuse, time, yesNo } from "./queue_settings.js";
import { flat } from "../kit/values.js";

const factor = {
  show: String,
  read: (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : refuse(text, "a number such as 1.5")),
};

const OVERRIDES = [
  { name: "circuit_check_enabled", label: "Check the circuit", kind: yesNo },
  { name: "statistics_update_enabled", label: "Count outcomes", kind: yesNo },
  { name: "error_threshold_percentage", label: "Failure percentage that opens it", kind: number },
  { name: "entries_max_age_ms", label: "Maximum age of outcomes", kind: time },
  { name: "min_queue_sample_count", label: "Outcomes needed", kind: number },
  { name: "max_queue_sample_count", label: "Outcomes kept", kind: number },
  { name: "slow_call_ms", label: "Calls count as failed after", kind: orNone(time) },
  { name: "min_open_ms", label: "Stays open at least", kind: time },
  { name: "open_growth", label: "Growth after each failed probe", kind: factor },
  { name: "max_open_ms", label: "Stays open at most", kind: time },
  { name: "single_probe", label: "One probe at a time", kind: yesNo },
];

/** Names and values for a list of facts; overrides are marked. */
export function settingFacts(own) {
  const mark = (text) => [text, " ", badge("override", "info")];
  const none = Object.keys(own.overrides).filter((name) => own.overrides[name] === null);
  return [
    ...flat(own.settings).map(([name, text]) => [name, name in own.overrides ? mark(text) : text]),
    ...none.map((name) => [name, mark("none")]),
  ];
}

/** "error_threshold_percentage=50", in the syntax of the command line. */
export function settingWords(values) {
  return Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
}

/** A form for all overrides of a circuit. */
export function changeSettings(own, defaults, then) {
  const path = withQuery(`/v1/circuits/${part(own.circuit)}/settings`, { route: own.route });
  const words = ["circuits", "set", "--route", own.route, "--reset"];
  return {
    label: "Settings",
    confirm: "Save",
    title: "Settings of this circuit",
    text: `For ${own.route} these override the breaker's defaults. An empty field keeps the default.`,
    fields: OVERRIDES.map(({ name, label, kind }) => {
      const usual = kind.show(defaults[name]);
      return {
        name,
        label,
        hint: `default: ${usual}${kind.hint ? `; ${kind.hint}` : ""}`,
        value: name in own.overrides ? kind.show(own.overrides[name]) : "",
        options: kind.options && [["", `default (${usual})`], ...kind.options],
      };
    }),
    request(texts) {
      const body = read(texts);
      return Object.keys(body).length ? { method: "PUT", path, body } : { method: "DELETE", path };
    },
    command: (texts) => [...words, ...settingWords(read(texts))],
    done: () => "The settings of the circuit are saved.",
    then,
  };
}

function read(texts) {
  const values = {};
  for (const { name, label, kind } of OVERRIDES) {
    const text = texts[name].trim();
    if (!text) continue;
    try {
      values[name] = kind.read(text);
    } catch (error) {
      throw new Error(`${label}: ${error.message}`);
    }
  }
  return values;
}
