// The constraints of each kind of widget on its query: `fitted` makes a query that fits when the kind is changed.
//
//     fitted({ kind: "donut", query: { event_name: "api_call", metric: "p95", … } })   // asks for a count by a property

import type { Schemas } from "../../api/client";
import type { Widget } from "../../ui/widget";
import { OF_NUMBER } from "../query_names";

export const KINDS = [
  "number",
  "line",
  "area",
  "bar",
  "stacked_bar",
  "bar_list",
  "donut",
  "table",
  "funnel",
  "text",
] as const;
const ADDITIVE = new Set(["count", "sum"]);

export interface Query {
  event_name?: string;
  metric?: string;
  numeric_prop?: string;
  group_by?: string;
  granularity?: string;
  period?: string;
  timezone?: string;
  limit?: number;
  compare?: string;
  filters?: Record<string, string | string[]>;
  measures?: { metric: string; numeric_prop?: string; label?: string }[];
  steps?: { event_name: string; label?: string }[];
}

interface Needs {
  time: "always" | "never" | "either";
  group: "always" | "never" | "either";
  isAdditive?: boolean;
}

const NEEDS: Record<string, Needs> = {
  number: { time: "never", group: "never" },
  line: { time: "always", group: "either" },
  area: { time: "always", group: "never" },
  bar: { time: "either", group: "either" },
  stacked_bar: { time: "always", group: "always", isAdditive: true },
  bar_list: { time: "never", group: "always" },
  donut: { time: "never", group: "always", isAdditive: true },
  table: { time: "never", group: "always" },
};

export const needsOf = (kind: string): Needs => NEEDS[kind] ?? { time: "never", group: "never" };

export const queryOf = (widget: Widget): Query => widget.query as Query;

/** The same widget with a query that its kind can draw. `event` has the properties of its event. */
export function fitted(widget: Widget, event: Schemas["DiscoveredEvent"] | undefined): Widget {
  const { kind } = widget;
  if (kind === "text") return { ...widget, query: {} };
  const query = { ...queryOf(widget) };
  query.event_name ??= event?.event_name ?? "";
  if (kind === "funnel") {
    const { event_name, filters, period } = query;
    const steps = query.steps ?? [{ event_name }, { event_name }];
    return { ...widget, query: clean({ event_name, metric: "count_unique", steps, filters, period }) };
  }
  const { measures: [measure] = [], steps: _, ...rest } = query;
  const asked: Query = { metric: "count", ...(kind === "table" ? query : { ...measure, ...rest }) };
  const needs = needsOf(kind);
  if (needs.isAdditive && !ADDITIVE.has(asked.metric ?? "")) asked.metric = "count";
  if (OF_NUMBER.has(asked.metric ?? "")) asked.numeric_prop ??= event?.numeric_props[0]?.name ?? "";
  else delete asked.numeric_prop;
  if (needs.group === "never") delete asked.group_by;
  if (needs.group === "always") asked.group_by ??= event?.string_props[0]?.name ?? "";
  if (needs.time === "never") delete asked.granularity;
  if (needs.time === "always") asked.granularity ??= "day";
  if (needs.time === "either" && !asked.group_by) asked.granularity ??= "day";
  if (kind === "bar" && asked.group_by) delete asked.granularity;
  if (asked.group_by || (kind !== "number" && kind !== "area" && kind !== "line")) delete asked.compare;
  return { ...widget, query: clean(asked) };
}

/** Without empty fields. */
export function clean(query: Query): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).filter(
      ([name, value]) =>
        value !== undefined && value !== "" && !(name === "filters" && Object.keys(value as object).length === 0),
    ),
  );
}

/** A new widget of a kind about an event. */
export function newWidget(kind: string, event: Schemas["DiscoveredEvent"] | undefined, title: string): Widget {
  const sizes: Record<string, readonly [number, number]> = {
    number: [3, 3],
    text: [12, 1],
    bar_list: [4, 6],
    donut: [4, 6],
    table: [6, 6],
    funnel: [4, 6],
  };
  const [w, h] = sizes[kind] ?? [6, 6];
  const widget = {
    id: `w_${crypto.randomUUID().slice(0, 8)}`,
    kind,
    title,
    query: { event_name: event?.event_name ?? "", metric: "count", period: "30d" },
    viz: kind === "text" ? { text: "" } : {},
    layout: { x: 0, y: 0, w, h },
  };
  return fitted(widget, event);
}
