// @ts-check
// One card of the dashboard: its head and menu, its drawing, and every state that it can be in.
//
// The old picture stays while a new one loads; the thin bar and the dimming come from the style
// sheet with a delay, so a fast answer shows neither.

import { h, html, useEffect, useErrorBoundary, useRef, useSignal, useState } from "../shared/ui.js";
import { words } from "../shared/words.js";
import { drawingOf, hasTableView } from "../charts/kinds.js";
import { useBox } from "../charts/plot.js";
import { isEmpty } from "../charts/series.js";
import { Table } from "../charts/table.js";
import { fitHeight, isSmall } from "./boot.js";
import { activeFilters, hasDates } from "./filters.js";
import { Menu } from "./menu.js";

/** @typedef {{ widget: import("./boot.js").Widget, index: number, lone: boolean, context: any }} CardProps */

/** @param {CardProps} props */
export function Card({ widget, index, lone, context }) {
  const { state, format } = context;
  const { busy, stale, answer, failure } = useSignal(state.cards.get(widget.id));
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const [asTable, setAsTable] = useState(false);
  const { x, y, w, h: rows } = widget.layout;
  const { kind, title, viz, query } = widget;
  const empty = answer && kind !== "number" && isEmpty(answer, query.metric);
  const drawn = answer && !failure && !empty;
  // A card that began without an answer keeps its height: nothing below it moves when one comes.
  const [follows] = useState(!!answer);
  const fit = follows && answer ? fitHeight(asTable ? "table" : kind, query, answer) : undefined;
  const entries = () => [
    ...(hasTableView(kind)
      ? [{ label: asTable ? words.viewChart : words.viewTable, act: () => setAsTable(!asTable) }]
      : []),
    { label: words.saveCsv, act: () => context.saveCsv(widget, answer) },
    { label: words.savePng, act: () => context.savePng(widget, ref.current) },
  ];
  return html`<section ref=${ref} class=${`card is-${kind}${isSmall(widget) ? " small" : ""}${lone ? " lone" : ""}`} aria-labelledby=${`t${index}`}
    aria-busy=${String(busy)} data-refreshing=${busy && answer ? "" : undefined} data-stale=${stale ? "" : undefined}
    style=${{ "--x": x + 1, "--y": y + 1, "--w": w, "--h": rows, "--f": fit }}>
    <i class="progress"></i>
    <header>
      <h2 id=${`t${index}`} title=${title}>${title}</h2>
      ${viz.subtitle && html`<p>${viz.subtitle}</p>`}
      ${drawn && h(Extent, { answer, format, kind })}
      ${drawn && kind !== "text" && h(Menu, { label: words.menu(title), entries: entries(), dots: true })}
    </header>
    <div class="body">
      ${
        kind === "text"
          ? h(drawingOf(kind), { widget })
          : failure
            ? h(Failed, { widget, failure, onRetry: () => context.retry(widget.id) })
            : !answer
              ? h(Skeleton, { kind })
              : empty
                ? h(Empty, { context })
                : h(Drawing, { key: String(asTable), widget, answer, context, asTable })
      }
    </div>
  </section>`;
}

/** @param {{ widget: any, answer: any, context: any, asTable: boolean, key?: string }} props */
function Drawing({ widget, answer, context, asTable }) {
  const [ref, box] = useBox();
  // What cannot be drawn is this card's trouble alone; another answer may be better.
  const [fault, reset] = useErrorBoundary();
  useEffect(() => reset(), [answer]);
  if (fault)
    return h(Failed, {
      widget,
      failure: { code: "drawing_failed", message: words.cannotDraw, retryable: false },
      onRetry: reset,
    });
  const filters = useSignal(context.state.filters);
  const period = hasDates(filters) ? null : (answer.meta.period ?? filters.period);
  /** @type {(props: any) => any} */ const Content = asTable ? Table : drawingOf(widget.kind);
  return html`<div class="drawing" ref=${ref}>
    ${
      box.width > 0 &&
      h(Content, {
        widget,
        answer,
        format: context.formatFor(answer),
        period,
        width: box.width,
        drill: context.drillOf(widget),
      })
    }
  </div>`;
}

/** How much of the groups is there, when it is not all. @param {{ answer: any, format: any, kind: string }} props */
function Extent({ answer, format, kind }) {
  const { groups_total: total, groups_returned: returned } = answer.meta;
  if (kind === "number" || kind === "funnel" || !(total > returned)) return null;
  return html`<p>${words.topOf(format.full(returned), format.full(total))}</p>`;
}

/** The shape of the drawing before there is one. The server draws the same markup. @param {{ kind: string }} props */
function Skeleton({ kind }) {
  return html`<div class=${`skeleton is-${kind}`} aria-hidden="true"><i></i><i></i></div>`;
}

/** @param {{ context: any }} props */
function Empty({ context }) {
  const { state, format } = context;
  const filters = useSignal(state.filters);
  const active = activeFilters(filters, format);
  const inWords = active.map((filter) => `${filter.name}: ${filter.value}`).join(", ");
  return html`<div class="state">
    <svg width="30" height="26" aria-hidden="true"><path d="M1 24h28M6 19v-3M12 19v-7M18 19v-8M25 19V4" stroke-dasharray="3 3" /></svg>
    <h3>${words.nothing}</h3>
    <p>${hasDates(filters) ? words.noMatchDates(inWords) : words.noMatch(format.period(filters.period), inWords)}</p>
    ${active.length > 0 && html`<button type="button" class="button" onClick=${context.clearFilters}>${words.clearFilters}</button>`}
  </div>`;
}

/** @param {{ widget: any, failure: import("./store.js").Failure, onRetry: () => void }} props */
function Failed({ widget, failure, onRetry }) {
  if (widget.kind === "number") {
    return html`<div class="state small" title=${failure.message}>
      <p>${words.numberFailed}</p>
      ${failure.retryable && html`<button type="button" class="link" onClick=${onRetry}>${words.retry}</button>`}
    </div>`;
  }
  return html`<div class="state">
    <svg width="28" height="28" aria-hidden="true"><circle cx="14" cy="14" r="12" /><path d="M14 8v7M14 19v.5" /></svg>
    <h3>${words.chartFailed}</h3>
    <p>${failure.message}</p>
    ${failure.retryable && html`<button type="button" class="button" onClick=${onRetry}>${words.tryAgain}</button>`}
  </div>`;
}
