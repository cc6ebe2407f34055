// A dashboard in the list: a small real drawing of its first chart, its state with the number of unpublished changes,
// and when it was last edited.

import { useEffect, useRef, useState } from "preact/hooks";
import { isTimed } from "../../charts/kinds.js";
import { answer, api, type Schemas } from "../api/client";
import { useData } from "../api/cache";
import { address } from "../state/environment";
import { texts } from "../texts/en";
import { Menu, type MenuItem } from "../ui/menu";
import { Badge } from "../ui/page";
import { Ago } from "../ui/time";
import { useWidgetData, WidgetBody, type Widget } from "../ui/widget";
import { changesOf } from "./editor/changes";

const text = texts.dashboards;
type Dashboard = Schemas["Dashboard"];

export function DashboardCard({ dashboard, actions }: { dashboard: Dashboard; actions: MenuItem[] }) {
  const { id, name, widgets, updated_at, version } = dashboard;
  const [ref, isSeen] = useSeen();
  const widget = widgets.find(({ kind }) => isTimed(kind)) ?? widgets.find(({ kind }) => kind !== "text");
  return (
    <li class="box dashboard-card" ref={ref}>
      <div class="card-preview" aria-hidden="true" inert>
        {widget && isSeen && <Preview widget={widget} dashboard={id} version={version} />}
        {!widget && <p class="chart-empty">{text.empty}</p>}
      </div>
      <div class="card-foot">
        <h2>
          <a class="row-link" href={address(`dashboards/${id}`)}>
            {name}
          </a>
        </h2>
        <Menu label={texts.actions.of(name)} items={actions} />
        <p>
          <State dashboard={dashboard} />
          <span class="muted">
            {text.count(widgets.length)} · {text.edited} <Ago at={updated_at} />
          </span>
        </p>
      </div>
    </li>
  );
}

function Preview({ widget, dashboard, version }: { widget: Widget; dashboard: string; version: number }) {
  const data = useWidgetData(widget, { tenant: "", saved: { dashboard, version } });
  return <WidgetBody widget={widget} data={data} />;
}

/** Whether an element has been in view: cards outside of it request no data. */
function useSeen() {
  const ref = useRef<HTMLLIElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!ref.current) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some(({ isIntersecting }) => isIntersecting) && setSeen(true),
      { rootMargin: "200px" },
    );
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, isSeen] as const;
}

/** "Published, 3 changes". */
export function State({ dashboard }: { dashboard: Dashboard }) {
  const { id, status, has_unpublished_changes, published_at } = dashboard;
  const isChanged = status === "published" && has_unpublished_changes === true;
  const published = useData(
    ["published", id, published_at],
    (signal) => answer(api.GET("/v1/dashboards/{id}/published", { signal, params: { path: { id } } })),
    { enabled: isChanged },
  );
  return (
    <>
      <Badge tone={status === "published" ? "good" : "plain"}>{text.states[status]}</Badge>
      {isChanged && (
        <span class="muted">
          {published.value ? text.changes(changesOf(published.value, dashboard).length) : text.changed}
        </span>
      )}
    </>
  );
}
