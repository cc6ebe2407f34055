// Where widgets stand on the twelve columns: moving and resizing one makes room among the others.
//
// All functions are pure and give a layout without overlaps and without empty rows; the widget that is moved wins its
// cells, the others go down and then up as far as they fit.

import type { Widget } from "../../ui/widget";

export const COLUMNS = 12;
const ROWS_MAX = 40;

/** The smallest width and height of a kind that can still be read. */
const SMALLEST: Record<string, readonly [w: number, h: number]> = {
  number: [2, 2],
  text: [2, 1],
  bar: [3, 4],
  bar_list: [3, 4],
  donut: [3, 4],
};

type Layout = Widget["layout"];

const overlaps = (a: Layout, b: Layout) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
const byPlace = (a: Widget, b: Widget) => a.layout.y - b.layout.y || a.layout.x - b.layout.x;
const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

/** A layout with its widget's smallest size, inside the columns. */
function bounded(kind: string, { x, y, w, h }: Layout): Layout {
  const [wMin, hMin] = SMALLEST[kind] ?? [4, 4];
  const width = clamp(w, wMin, COLUMNS);
  return { x: clamp(x, 0, COLUMNS - width), y: Math.max(0, y), w: width, h: clamp(h, hMin, ROWS_MAX) };
}

/** Puts `first` where it says, and the other widgets where there is room, then closes empty rows. */
export function settled(widgets: readonly Widget[], first?: string): Widget[] {
  const order = [...widgets].sort((a, b) => Number(b.id === first) - Number(a.id === first) || byPlace(a, b));
  const placed: Widget[] = [];
  for (const widget of order) {
    const layout = { ...widget.layout };
    while (placed.some((other) => overlaps(other.layout, layout))) layout.y += 1;
    placed.push({ ...widget, layout });
  }
  const packed: Widget[] = [];
  for (const widget of placed.sort(byPlace)) {
    const layout = { ...widget.layout };
    while (layout.y > 0 && !packed.some((other) => overlaps(other.layout, { ...layout, y: layout.y - 1 })))
      layout.y -= 1;
    packed.push({ ...widget, layout });
  }
  return packed.sort(byPlace);
}

/** One widget at another place or in another size. */
export function placed(widgets: readonly Widget[], id: string, layout: Layout): Widget[] {
  return settled(
    widgets.map((widget) => (widget.id === id ? { ...widget, layout: bounded(widget.kind, layout) } : widget)),
    id,
  );
}

/** The first free cells at the foot for a new widget. */
export function added(widgets: readonly Widget[], widget: Widget): Widget[] {
  const y = Math.max(0, ...widgets.map(({ layout }) => layout.y + layout.h));
  return settled([...widgets, { ...widget, layout: bounded(widget.kind, { ...widget.layout, y }) }]);
}

export const removed = (widgets: readonly Widget[], id: string): Widget[] =>
  settled(widgets.filter((widget) => widget.id !== id));
