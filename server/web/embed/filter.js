// @ts-check
// The filter dialog: one property, then its values, its range, or dates.
//
// Loaded when it is first opened. What it offers comes from the session: dimensions and numbers that
// may be filtered by, and dates where any are allowed. Values are asked of the server under all other
// filters, so that none leads to nothing.

import { h, html, useEffect, useRef, useState, humanize, words, chosenOf } from "./kit.js";
import { Dialog } from "./dialog.js";

const DAY_MS = 86_400_000;
const SEARCH_WAIT_MS = 200;
const DATES = "\u0000dates";

/** @typedef {{ context: any, at: DOMRect, dates: boolean, onClose: () => void }} Props */

/** @param {Props} props */
export default function FilterDialog({ context, at, dates, onClose }) {
  const { offered, allows_dates } = context.state.boot;
  const [property, setProperty] = useState(dates ? DATES : (offered.dimensions[0] ?? offered.numbers[0] ?? DATES));
  const Part = property === DATES ? Dates : offered.numbers.includes(property) ? Range : Values;
  return h(Dialog, {
    label: words.filter,
    at,
    onClose,
    inside: (close) => html`
    <label class="field"><span>${words.property}</span>
      <select value=${property} onChange=${(/** @type {any} */ e) => setProperty(e.currentTarget.value)}>
        ${[...offered.dimensions, ...offered.numbers].map((name) => html`<option key=${name} value=${name}>${humanize(name)}</option>`)}
        ${allows_dates && html`<option value=${DATES}>${words.dates}</option>`}
      </select>
    </label>
    ${h(Part, {
      key: property,
      name: property,
      context,
      onClose: close,
      apply: (change) => {
        context.changeFilters(change);
        close();
      },
    })}`,
  });
}

/** The end of every form here. @param {{ fault: string, onClose: () => void }} props */
function Foot({ fault, onClose }) {
  return html`${fault && html`<p class="fault" role="alert">${fault}</p>`}
    <div class="foot">
      <button type="button" class="button" onClick=${onClose}>${words.cancel}</button>
      <button type="submit" class="button strong">${words.apply}</button>
    </div>`;
}

/** @typedef {{ name: string, context: any, apply: (change: any) => void, onClose: () => void, key?: string }} PartProps */

/** Values to choose from, most frequent first. @param {PartProps} props */
function Values({ name, context, apply, onClose }) {
  const filters = context.state.filters.value;
  const [chosen, setChosen] = useState(/** @type {string[]} */ (chosenOf(filters, name)));
  const [search, setSearch] = useState("");
  const [found, setFound] = useState(
    /** @type {{ values: { value: string, count: number }[], has_more: boolean } | null} */ (null),
  );
  const [fault, setFault] = useState("");
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(
      () => {
        context.ask("values", { dimension: name, search, filters }, controller.signal).then(
          (/** @type {any} */ answer) => (setFault(""), setFound(answer)),
          (/** @type {Error} */ error) => controller.signal.aborted || setFault(error.message),
        );
      },
      search ? SEARCH_WAIT_MS : 0,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [search]);
  const toggle = (/** @type {string} */ value) =>
    setChosen((old) => (old.includes(value) ? old.filter((v) => v !== value) : [...old, value]));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const { [name]: _, ...rest } = filters.dimensions;
    apply({ dimensions: chosen.length ? { ...rest, [name]: chosen.length === 1 ? chosen[0] : chosen } : rest });
  };
  const values = found?.values ?? [];
  // What is chosen stays in sight, also where a search or another filter leaves it out.
  const missing = search
    ? []
    : chosen.filter((value) => !values.some((one) => one.value === value)).map((value) => ({ value, count: null }));
  return html`<form onSubmit=${submit}>
    <input type="search" class="input" aria-label=${words.search} placeholder=${words.search} value=${search}
      onInput=${(/** @type {any} */ e) => setSearch(e.currentTarget.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Enter" && e.preventDefault()} />
    <ul class="values" aria-busy=${String(!found && !fault)}>
      ${[...missing, ...values].map(
        ({ value, count }) => html`<li key=${value}><label>
        <input type="checkbox" checked=${chosen.includes(value)} onChange=${() => toggle(value)} />
        <span class="name" title=${value}><bdi>${value || "“”"}</bdi></span>
        <small>${count == null ? "" : context.format.short(count)}</small>
      </label></li>`,
      )}
      ${found && !values.length && !missing.length && html`<li class="none">${words.noValues}</li>`}
    </ul>
    ${found?.has_more && html`<p class="more">${words.searchMore}</p>`}
    ${h(Foot, { fault, onClose })}
  </form>`;
}

/** The smallest and the largest. @param {PartProps} props */
function Range({ name, context, apply, onClose }) {
  const filters = context.state.filters.value;
  const now = Object.hasOwn(filters.numericRanges, name) ? filters.numericRanges[name] : {};
  const least = useRef(/** @type {HTMLInputElement | null} */ (null));
  const most = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [fault, setFault] = useState("");
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const [min, max] = [least, most].map((ref) => (ref.current?.value === "" ? undefined : ref.current?.valueAsNumber));
    if (min !== undefined && max !== undefined && min > max) return setFault(words.rangeWrong);
    const { [name]: _, ...rest } = filters.numericRanges;
    apply({ numericRanges: min === undefined && max === undefined ? rest : { ...rest, [name]: { min, max } } });
  };
  return html`<form onSubmit=${submit}>
    <div class="pair">
      <label class="field"><span>${words.least}</span><input type="number" step="any" class="input" ref=${least} defaultValue=${now.min ?? ""} /></label>
      <label class="field"><span>${words.most}</span><input type="number" step="any" class="input" ref=${most} defaultValue=${now.max ?? ""} /></label>
    </div>
    ${h(Foot, { fault, onClose })}
  </form>`;
}

const dayOf = (/** @type {number} */ at) => new Date(at).toISOString().slice(0, 10);

/** Whole days in UTC, first and last included. @param {PartProps} props */
function Dates({ context, apply, onClose }) {
  const { boot } = context.state;
  const { max_date_range_days: daysMax } = boot.permissions;
  const now = context.state.filters.value.dateRanges.timestamp;
  const today = Date.parse(boot.now);
  const from = useRef(/** @type {HTMLInputElement | null} */ (null));
  const to = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [fault, setFault] = useState("");
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const [first, last] = [from, to].map((ref) => ref.current?.valueAsNumber ?? NaN);
    if (!(first <= last)) return setFault(words.datesWrong);
    const days = Math.round((last - first) / DAY_MS) + 1;
    if (daysMax != null && days > daysMax) return setFault(words.daysMax(context.format.period(`${daysMax}d`)));
    apply({
      dateRanges: { timestamp: { from: new Date(first).toISOString(), to: new Date(last + DAY_MS).toISOString() } },
    });
  };
  const week = Math.min(daysMax ?? 7, 7);
  return html`<form onSubmit=${submit}>
    <div class="pair">
      <label class="field"><span>${words.from}</span><input type="date" class="input" required ref=${from}
        max=${dayOf(today)} defaultValue=${dayOf(now ? Date.parse(now.from) : today - (week - 1) * DAY_MS)} /></label>
      <label class="field"><span>${words.to}</span><input type="date" class="input" required ref=${to}
        max=${dayOf(today)} defaultValue=${dayOf(now ? Date.parse(now.to) - 1 : today)} /></label>
    </div>
    <p class="more">${words.timesIn("UTC")}</p>
    ${h(Foot, { fault, onClose })}
  </form>`;
}
