// Statements to begin with, written about the organisation's own events.

import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";

const text = texts.sql.templates;
const quoted = (name: string) => `'${name.replaceAll("'", "''")}'`;

export interface Template {
  title: string;
  sql: string;
}

export function templatesOf(events: readonly Schemas["DiscoveredEvent"][]): Template[] {
  const [event] = [...events].sort((a, b) => b.count - a.count);
  const name = event?.event_name ?? "api_request";
  const property = event?.string_props[0]?.name;
  const measure = event?.numeric_props[0]?.name;
  const last = (days: number) => `timestamp > now() - interval '${days} days'`;
  return [
    {
      title: text.newest,
      sql: `-- ${text.newest}\nSELECT timestamp, tenant_id, event_name, user_id, string_props, numeric_props\nFROM events\nORDER BY timestamp DESC\nLIMIT 100`,
    },
    {
      title: text.perDay,
      sql: `-- ${text.perDay}\nSELECT date_trunc('day', timestamp) AS day, count(*) AS events\nFROM events\nWHERE ${last(30)}\nGROUP BY 1\nORDER BY 1`,
    },
    {
      title: text.tenants,
      sql: `-- ${text.tenants}\nSELECT tenant_id, count(*) AS events, count(DISTINCT user_id) AS users\nFROM events\nWHERE ${last(30)}\nGROUP BY 1\nORDER BY events DESC\nLIMIT 20`,
    },
    ...(property
      ? [
          {
            title: text.byProperty(property),
            sql: `-- ${text.byProperty(property)}\nSELECT string_props[${quoted(property)}] AS ${JSON.stringify(property)}, count(*) AS events\nFROM events\nWHERE event_name = ${quoted(name)} AND ${last(7)}\nGROUP BY 1\nORDER BY 2 DESC`,
          },
        ]
      : []),
    ...(measure
      ? [
          {
            title: text.percentiles(measure),
            sql: `-- ${text.percentiles(measure)}\nSELECT date_trunc('day', timestamp) AS day,\n       percentile_cont(0.5) WITHIN GROUP (ORDER BY numeric_props[${quoted(measure)}]) AS p50,\n       percentile_cont(0.95) WITHIN GROUP (ORDER BY numeric_props[${quoted(measure)}]) AS p95\nFROM events\nWHERE event_name = ${quoted(name)} AND ${last(14)}\nGROUP BY 1\nORDER BY 1`,
          },
        ]
      : []),
    {
      title: text.users,
      sql: `-- ${text.users}\nSELECT date_trunc('week', timestamp) AS week, count(DISTINCT user_id) AS users\nFROM events\nWHERE ${last(90)}\nGROUP BY 1\nORDER BY 1`,
    },
  ];
}
