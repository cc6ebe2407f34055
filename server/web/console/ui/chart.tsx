// Drawings of the product's own charts in the console: `<Chart kind="bar" title="Events by day" answer={answer} />`.
//
// The charts are those of the embed; here they only get their box, their format and their states.

import { Component, type AnyComponent, type ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { drawingOf } from "../../charts/kinds.js";
import { useBox } from "../../charts/plot.js";
import { isEmpty } from "../../charts/series.js";
import { createFormat, pickLocale } from "../../shared/format.js";
import { texts } from "../texts/en";

export type Viz = Record<string, unknown>;

export interface Answer {
  data: { bucket?: string | null; group?: string | null; value?: number | string | null; previous?: number | null }[];
  meta: Record<string, unknown>;
  spark?: unknown[] | null;
}

interface ChartProps {
  kind: string;
  title: string;
  answer: Answer;
  /** As a widget's query has it; the charts read `metric`, `group_by` and `limit`. */
  query?: Record<string, unknown>;
  viz?: Viz;
  /** Pixels; the box gives it where there is none. */
  height?: number;
}

/** Error boundary: a result that cannot be drawn breaks this chart only, until the next result. */
class Drawable extends Component<{ answer: Answer; children: ComponentChildren }, { isBroken: boolean }> {
  override state = { isBroken: false };

  static override getDerivedStateFromError() {
    return { isBroken: true };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
  }

  override componentDidUpdate(before: { answer: Answer }) {
    if (before.answer !== this.props.answer && this.state.isBroken) this.setState({ isBroken: false });
  }

  override render() {
    return this.state.isBroken ? <p class="chart-empty">{texts.charts.failed}</p> : this.props.children;
  }
}

export function Chart({ kind, title, answer, query, viz = {}, height }: ChartProps) {
  const [ref, box] = useBox();
  const zone = typeof answer.meta.timezone === "string" ? answer.meta.timezone : "UTC";
  const format = useMemo(() => createFormat(pickLocale(navigator.language), zone), [zone]);
  const metric = String(query?.metric ?? answer.meta.metric ?? "count");
  const widget = {
    id: title,
    kind,
    title,
    query: { ...answer.meta, ...query, metric },
    viz,
    layout: { x: 0, y: 0, w: 12, h: 6 },
  };
  const Drawing = drawingOf(kind) as AnyComponent<Record<string, unknown>>;
  if (kind !== "number" && isEmpty(answer, metric)) return <p class="chart-empty">{texts.charts.nothing}</p>;
  return (
    <div class={`chart-box is-${kind}`} style={height ? { height: `${height}px` } : undefined}>
      <div class="drawing" ref={ref}>
        {box.width > 0 && (
          <Drawable answer={answer}>
            <Drawing
              widget={widget}
              answer={answer}
              format={format}
              period={answer.meta.period ?? null}
              width={box.width}
              drill={null}
            />
          </Drawable>
        )}
      </div>
    </div>
  );
}
