// A statement as the question of a widget, where a widget can ask the same: one metric of one event, over time and by one
// property. The explorer writes such statements (`explore_sql.ts`); this reads them, in any layout and order.
//
//     SELECT date_trunc('day', timestamp), count(*) FROM events
//     WHERE event_name = 'api_request' AND timestamp >= now() - interval '30 days' GROUP BY 1
//     → { parameters: { event: "api_request", metric: "count", granularity: "day", period: "30d", … } }

import { texts } from "../../texts/en";
import { METRICS, PERIODS } from "../query_names";

const text = texts.sql.widget;

/** Parameters of the explorer's address, or why there are none. */
export type WidgetQuery = { parameters: Record<string, string> } | { reason: string };

/** Columns of the table `events`. */
const COLUMNS = new Set([
  "event_id",
  "tenant_id",
  "user_id",
  "event_name",
  "timestamp",
  "string_props",
  "numeric_props",
]);

class NotExpressible extends Error {}

const fail = (reason: string): never => {
  throw new NotExpressible(reason);
};

// Comments, quoted text and names, words and numbers, and everything else by character.
const TOKEN = /--[^\n]*|\/\*[^]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|>=|<=|<>|!=|::|\S/g;

/** Unquoted words are the same in any case. */
function tokensOf(sql: string): string[] {
  const tokens = sql.match(TOKEN) ?? [];
  // Comments nest in SQL, and end at their first end here.
  if (tokens.some((token) => token.startsWith("/*") && token.indexOf("/*", 2) > 0)) fail(text.shape);
  const words = tokens.filter((token) => !/^(--|\/\*)/.test(token));
  while (words.at(-1) === ";") words.pop();
  return words.map((token) => (/^['"]/.test(token) ? token : token.toLowerCase()));
}

/** Parts between a separator outside of brackets. */
function split(tokens: readonly string[], separator: string): string[][] {
  const parts: string[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token === "(" || token === "[") depth++;
    if (token === ")" || token === "]") depth--;
    if (depth === 0 && token === separator) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

const CLAUSE = /^(select|from|where|having|limit|offset|fetch|union|intersect|except|qualify|window)$/;

/** The clauses of a statement by their keyword. */
function clausesOf(tokens: readonly string[]): Record<string, string[]> {
  const clauses: Record<string, string[]> = {};
  let [name, depth] = ["", 0];
  tokens.forEach((token, at) => {
    if (token === "(" || token === "[") depth++;
    if (token === ")" || token === "]") depth--;
    const isPair = /^(group|order)$/.test(token) && tokens[at + 1] === "by";
    if (depth === 0 && (isPair || CLAUSE.test(token))) {
      if (token in clauses) fail(text.shape);
      name = token;
      clauses[name] = [];
    } else if (!(depth === 0 && token === "by")) {
      (clauses[name] ?? fail(text.shape)).push(token);
    }
  });
  return clauses;
}

const literal = (token: string) => token.slice(1, -1).replaceAll("''", "'");

/** Matches tokens with a pattern of them, as text; literals are `'…'` there, and come back in order. */
function match(tokens: readonly string[], pattern: RegExp): string[] | null {
  const values = tokens.filter((token) => token.startsWith("'"));
  const shape = tokens.map((token) => (token.startsWith("'") ? "'" : token)).join(" ");
  return pattern.test(shape) ? values.map(literal) : null;
}

/** The metric and its property, null when it is no aggregate. */
function metricOf(tokens: readonly string[]): { metric: string; property: string } | null {
  if (match(tokens, /^count \( (\*|1)? ?\)$/)) return { metric: "count", property: "" };
  if (match(tokens, /^count \( distinct user_id \)$/)) return { metric: "count_unique", property: "" };
  if (match(tokens, /^approx_distinct \( user_id \)$/)) return { metric: "count_unique_approx", property: "" };
  const number = match(tokens, /^(sum|avg|min|max) \( numeric_props \[ ' \] \)$/);
  if (number) return { metric: tokens[0] ?? "", property: notEmpty(number[0]) };
  const percentile = match(
    tokens,
    /^percentile_cont \( 0\.\d+ \) within group \( order by numeric_props \[ ' \]( asc)? \)$/,
  );
  if (percentile) {
    const metric = `p${(tokens[2] ?? "").slice(2).padEnd(2, "0")}`;
    return METRICS.some((one) => one === metric)
      ? { metric, property: notEmpty(percentile[0]) }
      : fail(text.percentile);
  }
  return null;
}

/** Names and values that the explorer's address cannot hold are refused. */
const notEmpty = (value: string | undefined) => value || fail(text.empty);

const DAYS: Record<string, number> = { hour: 1 / 24, day: 1, week: 7 };

/** `now() - interval '30 days'` as a period. */
function periodOf(interval: string): string {
  const [, count, unit = ""] = /^(\d+)\s*(hour|day|week)s?$/i.exec(interval.trim()) ?? fail(text.period);
  const days = Number(count) * (DAYS[unit.toLowerCase()] ?? 0);
  const period = days === 1 / 24 ? "1h" : days === 1 ? "24h" : `${days}d`;
  return PERIODS.find((one) => one === period) ?? fail(text.period);
}

function conditionsOf(where: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  const set = (name: string, value: string) => (name in found ? fail(text.twice) : (found[name] = value));
  for (const condition of where.length ? split(where, "and") : []) {
    const event = match(condition, /^event_name = '$/);
    const property = match(condition, /^string_props \[ ' \] = '$/);
    const since = match(condition, /^timestamp >=? now \( \) - interval '$/);
    if (event) set("event", notEmpty(event[0]));
    else if (condition[0] === "tenant_id") fail(text.tenant);
    else if (property) set(`f_${notEmpty(property[0])}`, notEmpty(property[1]));
    else if (since) set("period", periodOf(since[0] ?? ""));
    else fail(text.condition(condition.join(" ").replaceAll(" ( )", "()")));
  }
  if (!found.event) fail(text.event);
  if (!found.period) fail(text.period);
  return found;
}

/** Columns as parameters, with the expressions that rows are grouped by. */
function columnsOf(select: readonly string[]): { parameters: Record<string, string>; grouped: string[][] } {
  const parameters: Record<string, string> = { granularity: "" };
  const grouped: string[][] = [];
  split(select, ",").forEach((column, at) => {
    const named = column.lastIndexOf("as");
    const expression = named > 0 ? column.slice(0, named) : column;
    const metric = metricOf(expression);
    const unit = match(expression, /^date_trunc \( ' , timestamp \)$/)?.[0]?.toLowerCase();
    const property = match(expression, /^string_props \[ ' \]$/)?.[0];
    const isTaken = metric ? parameters.metric : unit !== undefined ? parameters.granularity : parameters.group;
    if (isTaken) fail(text.columns);
    if (metric) Object.assign(parameters, metric);
    else {
      if (unit !== undefined)
        parameters.granularity = /^(hour|day|week|month)$/.test(unit) ? unit : fail(text.granularity);
      else parameters.group = property === undefined ? fail(text.columns) : notEmpty(property);
      const alias = named > 0 ? column.slice(named + 1).join(" ") : "";
      const plain = alias.replace(/^"(.*)"$/, "$1");
      // Where an alias is also the name of a column, the rows are grouped by the column.
      const names = COLUMNS.has(plain) ? [] : [alias, plain];
      grouped.push([String(at + 1), expression.join(" "), ...names]);
    }
  });
  if (!parameters.metric) fail(text.metric);
  return { parameters, grouped };
}

export function widgetQueryOf(sql: string): WidgetQuery {
  try {
    const { select, from, where = [], group, order: _, ...others } = clausesOf(tokensOf(sql));
    if (!select || from?.join(" ") !== "events" || Object.keys(others).length) return { reason: text.shape };
    const conditions = conditionsOf(where);
    const { parameters, grouped } = columnsOf(select);
    const groups = group ? split(group, ",").map((part) => part.join(" ")) : [];
    // A group column that is not selected splits one visible row into several.
    const isShown = groups.every((one) => grouped.some((names) => names.includes(one)));
    return isShown ? { parameters: { ...parameters, ...conditions } } : { reason: text.groups };
  } catch (cause) {
    if (cause instanceof NotExpressible) return { reason: cause.message };
    throw cause;
  }
}
