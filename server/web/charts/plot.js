// @ts-check
// The frame of every chart over time: axes, crosshair, data cursor, tooltip.
//
// A chart hands over its axis and draws marks; the frame measures the box, places ticks and labels,
// and follows the pointer. The drawing is hidden from assistive technology. What it means is carried
// by a sentence and by a native range input, invisible but focusable: arrows, Page keys, Home, End
// and announcements come from the browser, without `role="application"`.

import { h, html, useEffect, useId, useLayoutEffect, useRef, useState } from "../shared/ui.js";
import { domain, labelStride, linear, textWidth, ticks } from "../shared/scale.js";
import { words } from "../shared/words.js";
import { Hatches, dashOf, hatchOf, usePatterns } from "./pattern.js";

const TOP = 8;
const BOTTOM = 24;
/** Half of a typical x label: the last one may stand this far past its point. */
const RIGHT = 12;

/**
 * Where things are, in pixels: the plot's edges, buckets by index, values by size.
 * @typedef {{ x: (i: number) => number, y: (value: number) => number, left: number, right: number,
 *   top: number, bottom: number, step: number, width: number, height: number }} Geometry
 */
/** @typedef {{ label: string, value: string, color?: string, dashed?: boolean, strong?: boolean }} TipRow */
/** @typedef {{ title: string, note?: string, rows: TipRow[] }} Tip */

/** The size of an element in whole pixels, followed as it changes. @returns {[any, { width: number, height: number }]} */
export function useBox() {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const [box, setBox] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const [width, height] = [element.clientWidth, element.clientHeight];
      setBox((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, box];
}

/**
 * The y axis for some values: one unit, ticks, labels, and the map from value to tick space.
 * @param {(number | null)[]} values @param {any} format @param {any} spec
 * @param {{ whole?: boolean, cut?: boolean }} [options]
 */
export function yAxis(values, format, spec, { whole = false, cut = false } = {}) {
  const [min, max] = domain(values, cut);
  const { divisor, label } = format.axis(Math.max(Math.abs(min), Math.abs(max)), spec);
  const at = ticks(min / divisor, max / divisor, { whole: whole && divisor === 1 });
  return { at: at.map((t) => t * divisor), labels: at.map(label) };
}

/** Which buckets get a label, and what it says. @param {any} props @param {number} step */
function xLabels({ buckets, granularity, format }, step) {
  const clock = granularity === "hour" || granularity === "minute";
  const days = clock && buckets.length > 48;
  const candidates = buckets
    .map((/** @type {string} */ _, /** @type {number} */ i) => i)
    .filter((/** @type {number} */ i) => !days || format.startsDay(buckets[i]));
  if (!candidates.length) return [];
  const text = (/** @type {number} */ i) =>
    format.bucketShort(buckets[i], granularity, !clock || days || format.startsDay(buckets[i]));
  const widest = Math.max(...candidates.map((/** @type {number} */ i) => textWidth(text(i))));
  const apart = candidates.length > 1 ? (candidates[1] - candidates[0]) * step : Infinity;
  const stride = labelStride(candidates.length, apart, widest);
  return candidates
    .filter((/** @type {number} */ _, /** @type {number} */ n) => n % stride === 0)
    .map((/** @type {number} */ i) => ({ i, text: text(i) }));
}

/**
 * @param {{ title: string, sentence: string, buckets: string[], granularity: any, format: any,
 *   axis: { at: number[], labels: string[] }, band?: boolean, margin?: number,
 *   pick?: ((bucket: string, next: string | undefined, granularity: any) => void) | null,
 *   tip: (i: number) => Tip, draw: (g: Geometry, active: number | null) => any }} props
 */
export function Plot(props) {
  const { title, sentence, buckets, axis, band, margin = 0, tip, draw, granularity } = props;
  // An hour is the shortest that can be looked at.
  const pick = granularity === "hour" || granularity === "minute" ? null : props.pick;
  const [ref, box] = useBox();
  const id = useId();
  const [active, setActive] = useState(/** @type {number | null} */ (null));
  const [pinned, setPinned] = useState(false);
  const count = buckets.length;
  const shown = active != null && active < count ? active : null;

  const left = Math.ceil(Math.max(...axis.labels.map(textWidth))) + 10;
  const right = Math.max(left + 10, box.width - (band ? 2 : RIGHT) - margin);
  const bottom = Math.max(TOP + 10, box.height - BOTTOM);
  const step = band ? (right - left) / Math.max(count, 1) : (right - left) / Math.max(count - 1, 1);
  const height = linear(axis.at[0], axis.at[axis.at.length - 1], bottom, TOP);
  /** @type {Geometry} */
  const g = {
    left,
    right,
    bottom,
    step,
    top: TOP,
    width: box.width,
    height: box.height,
    x: (i) => (band ? left + step * (i + 0.5) : count === 1 ? (left + right) / 2 : left + step * i),
    // All that is drawn lies on the axis, but for numbers at the end of what there is.
    y: (value) => Math.min(Math.max(height(value), TOP), bottom),
  };
  const labels = xLabels(props, step);

  const follow = (/** @type {PointerEvent} */ event) => {
    const offset = event.clientX - /** @type {Element} */ (event.currentTarget).getBoundingClientRect().left - left;
    const i = band ? Math.floor(offset / step) : Math.round(offset / step);
    setActive(Math.min(Math.max(i, 0), count - 1));
    setPinned(event.pointerType !== "mouse");
  };
  const choose = (/** @type {number | null} */ i) => i != null && pick?.(buckets[i], buckets[i + 1], granularity);
  const leave = (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && setActive(null);

  useEffect(() => {
    if (!pinned) return;
    // A tap pins the tooltip; the next tap outside takes it away.
    const away = (/** @type {Event} */ event) => {
      if (!ref.current?.contains(event.target)) (setActive(null), setPinned(false));
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [pinned]);

  const current = shown == null ? null : tip(shown);
  const said = (/** @type {Tip} */ t) =>
    `${t.title}${t.note ? ` (${t.note})` : ""}: ${t.rows.map((row) => `${row.label} ${row.value}`).join(", ")}`;
  // A tap reads a value; only a click of a mouse, or Enter, also narrows to it.
  return html`<div class=${pick ? "plot pick" : "plot"} ref=${ref} onPointerMove=${follow} onPointerDown=${follow} onPointerLeave=${leave}
    onClick=${() => !pinned && choose(active)}>
    <p class="vh" id=${id}>${sentence}${pick && count ? ` ${words.narrowTo(tip(shown ?? count - 1).title)}.` : ""}</p>
    <input class="vh" type="range" min="0" max=${Math.max(count - 1, 0)} step="1" value=${shown ?? Math.max(count - 1, 0)}
      aria-label=${words.dataPoint(title)} aria-describedby=${id} aria-valuetext=${count ? said(tip(shown ?? count - 1)) : ""}
      onFocus=${() => setActive((a) => a ?? count - 1)} onBlur=${() => setActive(null)}
      onInput=${(/** @type {any} */ e) => setActive(Number(e.currentTarget.value))}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => (e.key === "Escape" ? setActive(null) : e.key === "Enter" && choose(shown))} />
    ${
      box.width > 0 &&
      html`<svg width=${box.width} height=${box.height} viewBox=${`0 0 ${box.width} ${box.height}`} aria-hidden="true">
      ${axis.at.map((value, i) => {
        const y = Math.round(g.y(value)) + 0.5;
        return html`<g key=${`y${value}`}>
          <line class=${value === 0 ? "zero" : "hair"} x1=${left} x2=${right} y1=${y} y2=${y} />
          <text class="tick" x=${left - 8} y=${y} dy="0.35em" text-anchor="end">${axis.labels[i]}</text>
        </g>`;
      })}
      ${labels.map((/** @type {any} */ { i, text }, /** @type {number} */ n) => {
        const half = textWidth(text) / 2;
        const x = Math.min(Math.max(g.x(i), half), box.width - half);
        // The last label was pushed in from the edge; it goes when it would touch its neighbour.
        if (n > 0 && x - g.x(labels[n - 1].i) < half * 2 + 8) return null;
        return html`<text key=${`x${i}`} class="tick" x=${x} y=${bottom + 18} text-anchor="middle">${text}</text>`;
      })}
      ${
        shown != null &&
        (band
          ? html`<rect class="band" x=${g.x(shown) - step / 2} y=${TOP} width=${step} height=${bottom - TOP} rx="4" />`
          : html`<line class="cross" x1=${g.x(shown)} x2=${g.x(shown)} y1=${TOP - 4} y2=${bottom} />`)
      }
      ${draw(g, shown)}
    </svg>`
    }
    ${current && h(Tooltip, { tip: current, x: g.x(/** @type {number} */ (shown)), width: box.width, height: box.height, gap: band ? step / 2 + 8 : 14, block: band })}
  </div>`;
}

/**
 * The box beside the crosshair. It stands on the side with more room and never leaves the card.
 * @param {{ tip: Tip, x: number, width: number, height: number, gap: number, block?: boolean }} props
 */
function Tooltip({ tip, x, width, height, gap, block }) {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const [w, hgt] = [element.offsetWidth, element.offsetHeight];
    const wanted = x + gap + w <= width ? x + gap : x - gap - w;
    const left = Math.min(Math.max(wanted, 0), Math.max(width - w, 0));
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.min(0, height - hgt))}px)`;
  });
  return html`<div class="tip" ref=${ref} aria-hidden="true">
    <p>${tip.title}${tip.note && html`<em> · ${tip.note}</em>`}</p>
    ${tip.rows.map(
      (row) => html`<div class=${row.strong ? "row strong" : "row"} key=${row.label}>
      ${
        row.color
          ? html`<svg width="12" height="8"><line x1="0" x2="12" y1="4" y2="4" stroke=${row.color}
            stroke-width=${block && !row.dashed ? 8 : 2} stroke-dasharray=${row.dashed ? "3 2" : undefined} /></svg>`
          : html`<span></span>`
      }
      <bdi>${row.label}</bdi><b>${row.value}</b>
    </div>`,
    )}
  </div>`;
}

/**
 * Which colour is which. Each entry is a button that takes its series out of the drawing and back.
 * @param {{ series: import("./series.js").Series[], hidden: string[], onToggle: (hidden: string[]) => void, line?: boolean }} props
 */
export function Legend({ series, hidden, onToggle, line = false }) {
  const toggle = (/** @type {string} */ label) => {
    const next = hidden.includes(label) ? hidden.filter((l) => l !== label) : [...hidden, label];
    // Taking out the last one brings all back: an empty chart helps nobody.
    onToggle(next.length === series.length ? [] : next);
  };
  const patterned = usePatterns();
  const id = useId();
  return html`<ul class="legend">
    ${series.map(
      (s, n) => html`<li key=${s.label}>
      <button type="button" aria-pressed=${String(!hidden.includes(s.label))} onClick=${() => toggle(s.label)}>
        <svg width="12" height="10" aria-hidden="true">
          ${
            line
              ? html`<line x1="0" x2="12" y1="5" y2="5" stroke=${s.color} stroke-width="2.5" stroke-dasharray=${patterned ? dashOf(n) : undefined} />`
              : html`<rect width="10" height="10" rx="3" fill=${s.color} />`
          }
          ${patterned && !line && hatchOf(id, n) && html`${h(Hatches, { id })}<rect width="10" height="10" rx="3" fill=${hatchOf(id, n)} />`}
        </svg>
        <bdi>${s.label}</bdi>
      </button>
    </li>`,
    )}
  </ul>`;
}
