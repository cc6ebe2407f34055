// The names of `GET /v1/query` that forms offer: metrics and periods.

export const METRICS = [
  "count",
  "count_unique",
  "count_unique_approx",
  "sum",
  "avg",
  "min",
  "max",
  "p50",
  "p95",
  "p99",
] as const;

/** Metrics of a numeric property. */
export const OF_NUMBER = new Set<string>(["sum", "avg", "min", "max", "p50", "p95", "p99"]);

export const PERIODS = ["1h", "24h", "7d", "30d", "90d"] as const;

/** Periods of pages that look back at least a day. */
export const LONG_PERIODS = ["24h", "7d", "30d", "90d"] as const;
