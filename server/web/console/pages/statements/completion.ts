// Completions of the SQL editor: tables and columns, the organisation's own properties and events, and functions of
// the server's dialect.

import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Schemas } from "../../api/client";

const FUNCTIONS = [
  "count",
  "sum",
  "avg",
  "min",
  "max",
  "date_trunc",
  "date_part",
  "now",
  "percentile_cont",
  "approx_distinct",
  "coalesce",
  "nullif",
  "lower",
  "upper",
  "length",
  "substr",
  "round",
  "abs",
  "row_number",
  "lag",
  "lead",
  "rank",
  "first_value",
  "last_value",
  "to_char",
  "regexp_like",
];

/** Columns by table, as the language package takes them. */
export const schemaOf = (datasets: readonly Schemas["Dataset"][]): Record<string, string[]> =>
  Object.fromEntries(datasets.map(({ name, columns }) => [name, columns.map((column) => column.name)]));

/** Completions of `string_props['…']`, of `event_name = '…'`, and of functions. */
export function ownCompletions(datasets: readonly Schemas["Dataset"][], events: readonly string[]) {
  const properties = datasets.flatMap((dataset) => dataset.properties);
  const names = (map: string) => [
    ...new Set(properties.filter(({ sql }) => sql.startsWith(map)).map(({ name }) => name)),
  ];
  return (context: CompletionContext): CompletionResult | null => {
    const inMap = context.matchBefore(/(string_props|numeric_props)\['[^']*/);
    if (inMap) {
      const map = inMap.text.slice(0, inMap.text.indexOf("["));
      return {
        from: inMap.from + map.length + 2,
        options: names(map).map((label) => ({ label, type: "property", apply: `${label}']` })),
        validFor: /^[^']*$/,
      };
    }
    const inEvent = context.matchBefore(/event_name\s*(=|IN\s*\()\s*'[^']*/i);
    if (inEvent)
      return {
        from: inEvent.from + inEvent.text.lastIndexOf("'") + 1,
        options: events.map((label) => ({ label, type: "constant", apply: `${label}'` })),
        validFor: /^[^']*$/,
      };
    const word = context.matchBefore(/\w+/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    return {
      from: word.from,
      options: [
        ...FUNCTIONS.map((label) => ({ label, type: "function", apply: `${label}(` })),
        ...properties.map(({ name, sql, type }) => ({
          label: name,
          detail: type,
          type: "property",
          apply: sql,
          boost: 1,
        })),
      ],
      validFor: /^\w*$/,
    };
  };
}
