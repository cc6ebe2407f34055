// A question of the explorer as the SQL that asks the same of the table `events`.
//
//     SELECT date_trunc('day', timestamp) AS bucket, count(*) AS value FROM events WHERE … GROUP BY 1 ORDER BY 1

import type { Question } from "./explore";

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

const INTERVALS: Record<string, string> = {
  "1h": "1 hour",
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
};

/** The aggregate of a metric; `number` is the property's expression. */
function aggregateOf(metric: string, number: string): string {
  const percentile = /^p(\d+)$/.exec(metric)?.[1];
  if (percentile) return `percentile_cont(0.${percentile}) WITHIN GROUP (ORDER BY ${number})`;
  if (metric === "count") return "count(*)";
  if (metric === "count_unique") return "count(DISTINCT user_id)";
  if (metric === "count_unique_approx") return "approx_distinct(user_id)";
  return `${metric}(${number})`;
}

export function sqlOf({ event, metric, property, group, granularity, period, tenant, filters }: Question): string {
  const columns = [
    ...(granularity ? [`date_trunc('${granularity}', timestamp) AS bucket`] : []),
    ...(group ? [`string_props[${quoted(group)}] AS "group"`] : []),
  ];
  const conditions = [
    `event_name = ${quoted(event)}`,
    `timestamp >= now() - interval '${INTERVALS[period] ?? "30 days"}'`,
    ...(tenant ? [`tenant_id = ${quoted(tenant)}`] : []),
    ...Object.entries(filters).map(([name, value]) => `string_props[${quoted(name)}] = ${quoted(value)}`),
  ];
  const positions = columns.map((_, at) => at + 1).join(", ");
  return [
    `SELECT ${[...columns, `${aggregateOf(metric, `numeric_props[${quoted(property)}]`)} AS value`].join(",\n       ")}`,
    "FROM events",
    `WHERE ${conditions.join("\n  AND ")}`,
    ...(positions ? [`GROUP BY ${positions}`, granularity ? "ORDER BY 1" : "ORDER BY value DESC"] : []),
  ].join("\n");
}
