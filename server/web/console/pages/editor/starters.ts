// Layouts to begin a dashboard with, filled with the properties of an event:
//
//     startedWith("overview", discovered)   // four numbers, a line, a list

import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import type { Widget } from "../../ui/widget";
import { newWidget } from "./kinds";

export const STARTERS = ["empty", "overview", "comparison", "report"] as const;
export type Starter = (typeof STARTERS)[number];

type Event = Schemas["DiscoveredEvent"];
/** Cells of the grid. */
type Cells = readonly [x: number, y: number, w: number, h: number];

const text = texts.dashboards.starters;

/** The widgets of a starter; none without an event to ask about. */
export function startedWith(starter: Starter, event: Event | undefined): Widget[] {
  if (!event) return [];
  const [property] = event.string_props;
  const [amount] = event.numeric_props;
  const widget = (kind: string, title: string, [x, y, w, h]: Cells, query: Record<string, unknown> = {}): Widget => {
    const made = newWidget(kind, event, title);
    return { ...made, query: { ...made.query, ...query }, layout: { x, y, w, h } };
  };
  const count = (place: Cells) => widget("number", text.count, place, { compare: "previous" });
  const users = (place: Cells) => widget("number", text.users, place, { metric: "count_unique", compare: "previous" });
  const sum = (place: Cells) =>
    amount ? [widget("number", text.sum(amount.name), place, { metric: "sum", numeric_prop: amount.name })] : [];
  const by = (kind: string, place: Cells) =>
    property ? [widget(kind, text.by(property.name), place, { group_by: property.name })] : [];
  return {
    empty: [],
    overview: [
      count([0, 0, 4, 3]),
      users([4, 0, 4, 3]),
      ...sum([8, 0, 4, 3]),
      widget("area", text.perDay, [0, 3, 8, 6]),
      ...by("bar_list", [8, 3, 4, 6]),
    ],
    comparison: [...by("stacked_bar", [0, 0, 12, 6]), ...by("donut", [0, 6, 5, 6]), ...by("table", [5, 6, 7, 6])],
    report: [
      widget("text", text.about, [0, 0, 12, 1]),
      count([0, 1, 6, 3]),
      users([6, 1, 6, 3]),
      widget("bar", text.perDay, [0, 4, 12, 6]),
    ],
  }[starter];
}
