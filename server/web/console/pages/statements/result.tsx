// The rows of a statement: a virtualised table, and a chart where the columns allow one.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Chart } from "../../ui/chart";
import { Dialog } from "../../ui/dialog";
import { Code } from "../../ui/code";
import { Copy } from "../../ui/button";
import { number } from "../../ui/time";

const text = texts.sql;
const ROW_PX = 34;
const NUMERIC = /^(BIGINT|INTEGER|INT|SMALLINT|TINYINT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC|HUGEINT|U\w*INT\w*)/;

export type Result = Schemas["SqlAnswer"];
type Cell = string | number | boolean | null | object;

export const isNumeric = (type: string) => NUMERIC.test(type);

/** A value as text, unrounded. */
export const textOf = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

/** Rows in the order of a column; nulls last. */
function sorted(rows: readonly unknown[][], at: number, isDown: boolean): unknown[][] {
  const sign = isDown ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a[at] as Cell, b[at] as Cell];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * textOf(x).localeCompare(textOf(y), undefined, { numeric: true });
  });
}

/** The rows of an answer, as a table or drawn. */
export default function Rows({ result, view }: { result: Result; view: "table" | "chart" }) {
  return view === "table" ? <Grid result={result} /> : <ResultChart result={result} />;
}

function Grid({ result }: { result: Result }) {
  const box = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useState<{ at: number; isDown: boolean } | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0);
  const rows = (order ? sorted(result.rows as unknown[][], order.at, order.isDown) : result.rows) as Cell[][];
  const options = {
    count: rows.length,
    estimateSize: () => ROW_PX,
    getScrollElement: () => box.current,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 8,
    onChange: () => redraw(),
  };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLTableRowElement>(options));
  virtual.setOptions(options);
  useEffect(() => virtual._didMount(), [virtual]);
  useEffect(() => virtual._willUpdate());
  const items = virtual.getVirtualItems();
  const [before, after] = [items[0]?.start ?? 0, virtual.getTotalSize() - (items.at(-1)?.end ?? 0)];
  const sort = (at: number) =>
    setOrder((now) =>
      now?.at !== at
        ? { at, isDown: isNumeric(result.columns[at]?.type ?? "") }
        : now.isDown === isNumeric(result.columns[at]?.type ?? "")
          ? { at, isDown: !now.isDown }
          : null,
    );
  return (
    <div ref={box} class="result-grid" tabIndex={0} role="region" aria-label={text.rows}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {result.columns.map((column, at) => (
              <th
                key={at}
                scope="col"
                class={isNumeric(column.type) ? "at-end" : undefined}
                aria-sort={order?.at === at ? (order.isDown ? "descending" : "ascending") : undefined}
              >
                <button type="button" onClick={() => sort(at)}>
                  {column.name} <small>{column.type.toLowerCase()}</small>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden="true" style={{ height: `${before}px` }} />}
          {items.map((item) => (
            <tr key={item.index} aria-rowindex={item.index + 2}>
              {rows[item.index]?.map((value, at) => (
                <td key={at} class={isNumeric(result.columns[at]?.type ?? "") ? "at-end" : undefined}>
                  {value === null ? (
                    <span class="null">null</span>
                  ) : (
                    <button
                      type="button"
                      class="cell"
                      onClick={() =>
                        setOpened(typeof value === "object" ? JSON.stringify(value, null, 2) : String(value))
                      }
                    >
                      {shown(value)}
                    </button>
                  )}
                </td>
              ))}
            </tr>
          ))}
          {after > 0 && <tr aria-hidden="true" style={{ height: `${after}px` }} />}
        </tbody>
      </table>
      {opened !== null && (
        <Dialog title={text.cell} onClose={() => setOpened(null)} wide>
          <Code text={opened} label={text.cell} />
          <div class="foot">
            <Copy text={opened} />
          </div>
        </Dialog>
      )}
    </div>
  );
}

const shown = (value: Cell) =>
  typeof value === "number" ? (Number.isInteger(value) ? number(value) : String(value)) : textOf(value).slice(0, 200);

/** How rows are drawn: a time or a name first, and a number; null when they make no chart. */
export function chartOf({ columns, rows }: Result): {
  kind: string;
  answer: { data: { bucket?: string; group?: string | null; value: number | null }[]; meta: Record<string, unknown> };
} | null {
  const time = columns.findIndex(({ type }) => /^(TIMESTAMP|DATE)/.test(type));
  const value = columns.findLastIndex(({ type }) => isNumeric(type));
  const group = columns.findIndex(({ type }) => /^(VARCHAR|TEXT|BOOLEAN)/.test(type));
  if (value < 0 || (time < 0 && group < 0) || rows.length < 2) return null;
  const data = (rows as Cell[][]).map((row) => ({
    ...(time >= 0
      ? { bucket: new Date(`${String(row[time]).replace(" ", "T").replace(/Z?$/, "")}Z`).toISOString() }
      : {}),
    ...(group >= 0 ? { group: row[group] === null ? null : textOf(row[group]) } : {}),
    value: row[value] === null ? null : Number(row[value]),
  }));
  const granularity =
    time >= 0 ? (data.every(({ bucket }) => bucket?.endsWith("T00:00:00.000Z")) ? "day" : "hour") : undefined;
  const meta = {
    metric: "sum",
    ...(granularity ? { granularity } : {}),
    ...(group >= 0 ? { group_by: columns[group]?.name } : {}),
  };
  return {
    kind: time >= 0 ? "line" : "bar_list",
    answer: { data: time >= 0 ? data.sort((a, b) => (a.bucket ?? "").localeCompare(b.bucket ?? "")) : data, meta },
  };
}

function ResultChart({ result }: { result: Result }) {
  let drawing: ReturnType<typeof chartOf> = null;
  try {
    drawing = chartOf(result);
  } catch {
    // A time that the browser cannot read.
  }
  if (!drawing) return <p class="chart-empty">{text.noChart}</p>;
  return (
    <Chart kind={drawing.kind} title={text.chart} answer={drawing.answer} query={drawing.answer.meta} height={320} />
  );
}
