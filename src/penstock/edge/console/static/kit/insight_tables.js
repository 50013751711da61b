// What the page of each computed table shows: its title, its one plot, and the question that it answers.
//
// chart: { title, y, by: columns whose texts name a line or bar, unit?, isBars?, rows?: which rows count,
//   step?: the column with the length of a row's time, of which only the most frequent is drawn }

const isTrue = (name) => (row) => row[name] === true;

export const TABLES = {
  breaker_tuning: {
    title: "Circuit breaker settings, tried on recorded outages",
    about: "Effects of alternative circuit breaker settings, and the recommended ones.",
    question: "breaker",
    chart: { title: "Failed calls with the recommended settings", y: "failed", by: ["route"], isBars: true, rows: isTrue("is_recommended") },
  },
  capacity: {
    title: "Capacity",
    about: "Load, cost and storage per day, by queue and in total.",
    question: "storage",
    chart: { title: "Highest load of each day", y: "per_second_peak", by: ["queue"], unit: "per_second", rows: (row) => row.queue !== null },
  },
  flapping_routes: {
    title: "Flapping circuits",
    about: "Circuits that changed their state, and how often.",
    chart: { title: "Changes of state per day", y: "changes", by: ["route"] },
  },
  flow_facts: {
    title: "Flows",
    about: "How long each flow took, and the critical path through it.",
    chart: { title: "Longest duration of a day", y: "duration_ms", by: ["name"], unit: "ms" },
  },
  known_workers: { title: "Workers", about: "The workers of each day, with their queues and releases." },
  lifecycle: { title: "Endings of messages", about: "One row per ending of a message." },
  outage_cost: {
    title: "What outages cost",
    about: "Messages that outages made late, by queue and tenant.",
    question: "outage",
    chart: { title: "Late messages", y: "late", by: ["queue", "tenant"], isBars: true },
  },
  poison_kinds: {
    title: "Kinds that fail",
    about: "Kinds whose messages fail, crash workers or die.",
    question: "poison",
    chart: { title: "Share of messages that failed, on the worst day", y: "failing_ratio", by: ["kind"], unit: "ratio", isBars: true, rows: (row) => row.failing > 0 },
  },
  poison_messages: {
    title: "Messages that fail",
    about: "Messages that fail, crash, loop or flap.",
    question: "poison",
    chart: { title: "Most failed attempts of a message", y: "failed", by: ["kind"], isBars: true },
  },
  poison_releases: {
    title: "Releases that fail",
    about: "Failing kinds by the release of the workers.",
    question: "poison",
    chart: { title: "Share of messages that failed", y: "failing_ratio", by: ["kind", "release"], unit: "ratio", isBars: true },
  },
  quality: {
    title: "Data quality",
    about: "Checks of the loaded data.",
    chart: { title: "Rows that failed a check", y: "bad", by: ["table", "check"], isBars: true, rows: (row) => row.is_passed === false, none: "All checks of these days have passed." },
  },
  quarantine: { title: "Quarantine", about: "Rows that no job reads because of their problems." },
  rollups: {
    title: "Throughput and latency",
    about: "Finished messages per minute, hour or day, by queue, kind, route or worker.",
    chart: { title: "Finished messages", y: "finished", by: ["name"], rows: (row) => row.dimension === "queue", step: "grain" },
  },
  scaling_backtest: {
    title: "Autoscaler profiles, tried on recorded load",
    about: "Effects of alternative autoscaler profiles, and the recommended ones.",
    question: "fleet",
    chart: { title: "Age of the oldest message, 99th percentile", y: "age_p99_ms", by: ["queue", "is_recommended"], unit: "ms", names: { is_recommended: { true: "recommended", false: "the worst of the others" } } },
  },
  silent_workers: {
    title: "Silent workers",
    about: "Workers whose beats were missed, or whose leases expired.",
    chart: { title: "Times that a worker was lost", y: "lost", by: ["name"], isBars: true },
  },
  slo: {
    title: "Service levels",
    about: "Number of messages that met each target, per day.",
    chart: { title: "Burn of the error budget (1: spent exactly by the end of its period)", y: "burn", by: ["queue", "objective"] },
  },
  slo_budget: {
    title: "Error budgets",
    about: "Remaining error budget of each target.",
    chart: { title: "Error budget left", y: "left", by: ["queue", "objective"], unit: "ratio" },
  },
  slo_offenders: {
    title: "Who missed the targets",
    about: "Queues and kinds that missed a target most often.",
    chart: { title: "Messages that missed a target", y: "bad", by: ["queue", "name"], isBars: true },
  },
  starvation: {
    title: "Starvation",
    about: "Queues and tenants that wait too long, and who keeps the workers busy.",
    question: "starvation",
    chart: { title: "Late messages", y: "late", by: ["queue", "tenant"], isBars: true },
  },
};
