// @ts-check
// The details of one value: its number, its course, and what it parts into.
//
// Loaded when it is first opened. The server answers with the shapes that widgets have, so the same
// drawings show them.

import {
  hasDates,
  h,
  html,
  useEffect,
  useState,
  humanize,
  words,
  BarList,
  NumberTile,
  isEmpty,
  LineChart,
} from "./kit.js";
import { Dialog } from "./dialog.js";

/** Width of the drawings; the sheet is narrower only on phones. */
const WIDTH_PX = 380;

/** @typedef {{ dimension: string, answer: import("../charts/series.js").Answer }} Breakdown */

/** @param {{ context: any, widget: any, dimension: string, value: string, at: DOMRect, onClose: () => void }} props */
export default function Sheet({ context, widget, dimension, value, at, onClose }) {
  const [detail, setDetail] = useState(
    /** @type {{ total: any, course: any, breakdowns: Breakdown[] } | null} */ (null),
  );
  const [fault, setFault] = useState("");
  useEffect(() => {
    const controller = new AbortController();
    const body = { widget: widget.id, dimension, value, filters: context.state.filters.value };
    context
      .ask("detail", body, controller.signal)
      .then(setDetail, (/** @type {Error} */ error) => controller.signal.aborted || setFault(error.message));
    return () => controller.abort();
  }, []);
  const measure = widget.query.measures?.[0];
  const viz = { ...widget.viz, format: measure?.format ?? widget.viz.format };
  const query = measure ? { ...widget.query, ...measure } : widget.query;
  /** @param {string} title @param {any} answer @param {any} [asked] */
  const part = (title, answer, asked) => ({
    widget: { kind: "area", title, viz, query: { ...query, limit: null, ...asked } },
    answer,
    format: context.formatFor(answer),
    width: WIDTH_PX,
  });
  return h(Dialog, {
    label: value,
    at,
    side: true,
    onClose,
    inside: () => html`
    <p class="lead">${humanize(dimension)} · ${widget.title}</p>
    ${
      fault
        ? html`<p class="fault" role="alert">${fault}</p>`
        : !detail
          ? html`<div class="skeleton is-bar_list wait" aria-hidden="true"><i></i></div>`
          : html`
      ${h(NumberTile, { ...part(widget.title, detail.total), period: hasDates(context.state.filters.value) ? null : context.state.filters.value.period })}
      ${!isEmpty(detail.course, query.metric) && html`<h3>${words.overTime}</h3><div class="fixed">${h(LineChart, part(words.overTime, detail.course))}</div>`}
      ${detail.breakdowns
        .filter(({ answer }) => answer.data.some((row) => row.group != null))
        .map(
          ({ dimension: name, answer }) => html`
        <h3 key=${name}>${words.by(humanize(name))}</h3>
        <div class="fixed" style=${{ height: `${answer.data.length * 35 + 4}px` }}>${h(BarList, part(name, answer))}</div>`,
        )}`
    }
  `,
  });
}
