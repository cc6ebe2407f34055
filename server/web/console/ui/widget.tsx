// A widget of a dashboard with its data: head, drawing, and the states between them.
//
// The data of a saved widget is its own, that of one being edited a preview; both are the data that the embed would show.

import type { ComponentChildren } from "preact";
import { answer, api, type Schemas } from "../api/client";
import { useData, type Data } from "../api/cache";
import { texts } from "../texts/en";
import { Chart } from "./chart";
import { Button } from "./button";

export type Widget = Schemas["Widget"];

/** Whose events are shown, and over which time. */
export interface Looking {
  tenant: string;
  period?: string;
  /** The dashboard that the widgets are saved in: a user who may see it may see their data. */
  saved?: { dashboard: string; version: number };
}

/** Key of a result's shape: while the next result loads, rows of another shape cannot be drawn. */
function shapeOf(question: unknown): string {
  const [kind, query] = question as [unknown, { group_by?: string; granularity?: string } | string];
  return JSON.stringify(
    typeof query === "string" ? [kind, query] : [kind, query.group_by ?? "", query.granularity ?? ""],
  );
}

/** The data of a widget; a text has none. */
export function useWidgetData(widget: Widget, { tenant, period, saved }: Looking): Data<Schemas["WidgetData"]> {
  const body = {
    widget: { ...widget, title: widget.title || "–" },
    ...(tenant ? { tenant_id: tenant } : {}),
    ...(period ? { overrides: { period } } : {}),
  };
  const query = { ...(tenant ? { tenant_id: tenant } : {}), ...(period ? { period } : {}) };
  const load = (signal: AbortSignal) =>
    saved
      ? answer(
          api.GET("/v1/dashboards/{id}/widgets/{widget_id}/data", {
            signal,
            params: { path: { id: saved.dashboard, widget_id: widget.id }, query },
          }),
        )
      : answer(api.POST("/v1/widgets/preview/data", { signal, body }));
  return useData(["widget-data", saved ? [saved, widget.id] : [widget.kind, widget.query], tenant, period], load, {
    enabled: widget.kind !== "text",
    keeps: ([, before]) => shapeOf(before) === shapeOf(saved ? [saved, widget.id] : [widget.kind, widget.query]),
  });
}

export function WidgetBody({ widget, data }: { widget: Widget; data: Data<Schemas["WidgetData"]> }) {
  if (widget.kind === "text") return <p class="prose">{String((widget.viz as { text?: unknown }).text ?? "")}</p>;
  if (data.error && !data.value) {
    return (
      <div class="state">
        <h3>{texts.charts.failed}</h3>
        <p>{data.error.message}</p>
        {data.error.status !== 400 && <Button onClick={data.reload}>{texts.actions.tryAgain}</Button>}
      </div>
    );
  }
  if (!data.value)
    return (
      <div class={`skeleton is-${widget.kind}`} aria-hidden="true">
        <i />
        <i />
      </div>
    );
  return (
    <Chart
      kind={widget.kind}
      title={widget.title}
      answer={data.value}
      query={widget.query as Record<string, unknown>}
      viz={widget.viz as Record<string, unknown>}
    />
  );
}

/** A card of the grid, as the embed has it; `tools` stand in its head. */
export function WidgetCard({
  widget,
  looking,
  tools,
  children,
}: {
  widget: Widget;
  looking: Looking;
  tools?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const data = useWidgetData(widget, looking);
  const subtitle = (widget.viz as { subtitle?: unknown }).subtitle;
  return (
    <>
      <header>
        <h2 title={widget.title}>{widget.title}</h2>
        {typeof subtitle === "string" && subtitle && <p>{subtitle}</p>}
        {tools}
      </header>
      <div class="body" aria-busy={data.isRefreshing || undefined}>
        <WidgetBody widget={widget} data={data} />
      </div>
      {children}
    </>
  );
}
