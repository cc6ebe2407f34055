// @ts-check
// What the server says before anything is asked: the boot block of the page.
//
// It is read once and made safe to use: absent parts get their defaults here, so that no other
// module asks whether something is there.

/** @typedef {{ x: number, y: number, w: number, h: number }} Layout */
/** @typedef {{ id: string, kind: string, title: string, query: any, viz: any, layout: Layout }} Widget */
/**
 * @typedef {{
 *   dashboard_id: string, name: string, widgets: Widget[], periods: string[], allowed_periods: string[], default_period: string,
 *   permissions: { allow_drill_down: boolean, locked_filters: Record<string, string | string[]>,
 *     allowed_dimensions: string[] | null, max_date_range_days: number | null },
 *   allows_dates: boolean, offered: { dimensions: string[], numbers: string[] }, data: Record<string, any>,
 *   theme: Record<string, string>, origins: string[], now: string, expires_in_seconds: number | null,
 *   error: { code: string, message: string } | null,
 * }} Boot
 */

/** Columns of the grid. */
const COLUMNS = 12;

/** @param {any} value @param {number} min @param {number} max @param {number} fallback */
const whole = (value, min, max, fallback) =>
  Number.isFinite(value) ? Math.min(Math.max(Math.trunc(value), min), max) : fallback;

/** @param {any} raw @returns {Layout} */
function layoutOf(raw) {
  const x = whole(raw?.x, 0, COLUMNS - 1, 0);
  return {
    x,
    y: whole(raw?.y, 0, 10_000, 0),
    w: whole(raw?.w, 1, COLUMNS - x, Math.min(6, COLUMNS - x)),
    h: whole(raw?.h, 1, 40, 6),
  };
}

/** Reading order is top to bottom, then left to right. @param {Widget} a @param {Widget} b */
const byPlace = (a, b) => a.layout.y - b.layout.y || a.layout.x - b.layout.x;

/**
 * @param {string | null | undefined} text the text of the boot element
 * @returns {Boot}
 */
export function parseBoot(text) {
  const raw = JSON.parse(text || "{}");
  const permissions = raw.permissions ?? {};
  const periods = Array.isArray(raw.periods) ? raw.periods : [];
  return {
    dashboard_id: raw.dashboard_id ?? "",
    name: raw.name ?? "",
    widgets: (raw.widgets ?? [])
      .map((/** @type {any} */ w) => ({
        id: w.id,
        kind: w.kind,
        title: w.title ?? "",
        query: w.query ?? {},
        viz: w.viz ?? {},
        layout: layoutOf(w.layout),
      }))
      .sort(byPlace),
    periods,
    allowed_periods: raw.allowed_periods ?? periods,
    default_period: raw.default_period ?? periods[0] ?? "30d",
    permissions: {
      allow_drill_down: permissions.allow_drill_down === true,
      locked_filters: permissions.locked_filters ?? {},
      allowed_dimensions: permissions.allowed_dimensions ?? null,
      max_date_range_days: permissions.max_date_range_days ?? null,
    },
    allows_dates: raw.allows_dates === true,
    offered: { dimensions: raw.offered?.dimensions ?? [], numbers: raw.offered?.numbers ?? [] },
    data: raw.data ?? {},
    theme: raw.theme ?? {},
    origins: raw.origins ?? [],
    expires_in_seconds: raw.expires_in_seconds ?? null,
    now: raw.now ?? new Date().toISOString(),
    error: raw.error ?? null,
  };
}

/** Whether a chart has at most half of a wide page. @param {{ kind: string, layout: Layout }} widget */
export const isSmall = ({ kind, layout }) => kind !== "number" && kind !== "text" && layout.w <= COLUMNS / 2;

/**
 * Numbers stand two abreast on narrow pages, and small charts where these are not as narrow as a
 * phone; the last of an odd run has nobody beside it and takes the whole width. Returns the indexes
 * of those. The server's shell follows the same rule.
 * @param {{ kind: string, layout: Layout }[]} widgets in reading order
 * @returns {Set<number>}
 */
export function loneCards(widgets) {
  const lone = new Set();
  const runs = widgets.map((widget) => (widget.kind === "number" ? 1 : isSmall(widget) ? 2 : 0));
  let length = 0;
  runs.forEach((run, i) => {
    length = run === runs[i - 1] ? length + 1 : 1;
    if (run && length % 2 && run !== runs[i + 1]) lone.add(i);
  });
  return lone;
}

/** Pixels of a card beside its rows, and of a row. @type {Record<string, [number, number]>} */
const ROW_HEIGHTS = { bar_list: [72, 35], bar: [72, 40], table: [84, 36], funnel: [94, 45] };
/** Pixels that are enough to say that there is nothing. */
const FIT_MIN = 196;

/**
 * The height that an answer's rows need on a narrow page: a list of five is no taller for standing
 * beside a chart on a wide one. Undefined for drawings that fill any height. The server's shell
 * follows the same rule.
 * @param {string} kind how it is drawn @param {any} query @param {any} answer
 */
export function fitHeight(kind, query, { data }) {
  const heights = ROW_HEIGHTS[kind];
  if (!heights || (kind === "bar" && data[0]?.bucket !== undefined)) return undefined;
  let rows = data.length;
  if (kind === "bar" || kind === "bar_list") {
    // The first groups, and one bar for the others where these add up.
    const limit = query.limit || rows;
    const others = rows > limit && (query.metric === "count" || query.metric === "sum");
    rows = Math.min(rows, limit) + (others ? 1 : 0);
  }
  return `${Math.max(heights[0] + heights[1] * rows, FIT_MIN)}px`;
}
