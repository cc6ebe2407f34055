// Standalone widgets: made once, published by themselves, and put on any dashboard.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Select, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Ago } from "../ui/time";
import { WidgetCard, type Widget } from "../ui/widget";
import { Inspector } from "./editor/inspector";
import { newWidget } from "./editor/kinds";

const text = texts.widgets;
type Standalone = Schemas["StandaloneWidget"];

export default function Widgets() {
  const { query } = useLocation();
  const [edited, edit] = useState<Standalone | "new" | null>(query.new === undefined ? null : "new");
  const [used, use] = useState<Standalone | null>(null);
  const [deleted, setDeleted] = useState<Standalone | null>(null);
  const widgets = useData(["widgets"], (signal) => answer(api.GET("/v1/widgets", { signal })));
  const isAdmin = may("admin");
  const publish = async ({ id, title }: Standalone) => {
    await answer(api.POST("/v1/widgets/{id}/publish", { params: { path: { id } } }));
    say(text.published(title));
    await refresh("widgets");
  };
  return (
    <Page
      title={texts.menu.pages.widgets}
      lead={text.lead}
      actions={
        isAdmin && (
          <Button kind="primary" icon="plus" onClick={() => edit("new")}>
            {text.make}
          </Button>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      <List
        data={widgets}
        label={texts.menu.pages.widgets}
        rowKey={(widget) => widget.id}
        searched={(widget) => `${widget.title} ${widget.kind}`}
        empty={
          <Empty title={text.none} text={text.noneText}>
            {isAdmin && (
              <Button kind="primary" onClick={() => edit("new")}>
                {text.make}
              </Button>
            )}
          </Empty>
        }
        columns={[
          {
            title: text.title,
            cell: (widget) =>
              isAdmin ? (
                <button type="button" class="link" onClick={() => edit(widget)}>
                  {widget.title}
                </button>
              ) : (
                <b>{widget.title}</b>
              ),
          },
          { title: text.kind, cell: (widget) => texts.editor.kinds[widget.kind as "line"] ?? widget.kind },
          {
            title: text.state,
            cell: (widget) => (
              <>
                <Badge tone={widget.status === "published" ? "good" : "plain"}>
                  {texts.dashboards.states[widget.status]}
                </Badge>
                {widget.status === "published" && widget.has_unpublished_changes && (
                  <span class="muted"> {texts.dashboards.changed}</span>
                )}
              </>
            ),
          },
          { title: text.edited, cell: (widget) => <Ago at={widget.updated_at} /> },
          {
            title: texts.actions.more,
            silent: true,
            end: true,
            cell: (widget) =>
              isAdmin && (
                <Menu
                  label={texts.actions.of(widget.title)}
                  items={[
                    { label: text.use, act: () => use(widget) },
                    { label: texts.editor.publish, act: () => attempt(() => publish(widget)) },
                    { label: text.delete, danger: true, act: () => setDeleted(widget) },
                  ]}
                />
              ),
          },
        ]}
      />
      {edited && <Edit widget={edited === "new" ? null : edited} onClose={() => edit(null)} />}
      {used && <Use widget={used} onClose={() => use(null)} />}
      {deleted && (
        <Confirm
          title={text.deleteTitle(deleted.title)}
          text={text.deleteText}
          action={text.delete}
          onClose={() => setDeleted(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/widgets/{id}", { params: { path: { id: deleted.id } } }));
            await refresh("widgets");
          }}
        />
      )}
    </Page>
  );
}

/** The settings of the dashboard editor, with the widget beside them. */
function Edit({ widget, onClose }: { widget: Standalone | null; onClose: () => void }) {
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const events = discovered.value?.events ?? [];
  const [draft, setDraft] = useState<Widget | null>(widget);
  const shown = draft ?? (discovered.value ? newWidget("line", events[0], text.newTitle) : null);
  const form = useForm(async () => {
    if (!shown) return;
    const { kind, title, query, viz, layout } = shown;
    const body = { kind, title, query, viz, layout };
    if (widget) await answer(api.PATCH("/v1/widgets/{id}", { params: { path: { id: widget.id } }, body }));
    else await answer(api.POST("/v1/widgets", { body }));
    say(text.saved(title));
    onClose();
    await refresh("widgets");
  });
  return (
    <Dialog title={widget?.title ?? text.make} onClose={onClose} wide>
      {shown && (
        <div class="editor">
          <div class="editor-main">
            <section class={`card single is-${shown.kind}`} aria-label={shown.title}>
              <WidgetCard widget={shown} looking={{ tenant: "" }} />
            </section>
          </div>
          <Inspector
            widget={shown}
            events={events}
            onChange={setDraft}
            onPlace={(layout) => setDraft({ ...shown, layout })}
          />
        </div>
      )}
      <form {...form.props}>
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{texts.actions.save}</Submit>
        </div>
      </form>
    </Dialog>
  );
}

function Use({ widget, onClose }: { widget: Standalone; onClose: () => void }) {
  const { route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const list = dashboards.value?.data ?? [];
  const form = useForm(async (value) => {
    const id = value("dashboard");
    const y = Math.max(
      0,
      ...(list.find((one) => one.id === id)?.widgets ?? []).map(({ layout }) => layout.y + layout.h),
    );
    const { kind, title, query, viz, layout } = widget;
    const body = {
      id: `w_${crypto.randomUUID().slice(0, 8)}`,
      kind,
      title,
      query,
      viz,
      layout: { ...layout, x: 0, y },
    };
    await answer(api.POST("/v1/dashboards/{id}/widgets", { params: { path: { id } }, body }));
    await refresh("dashboards", "dashboard");
    route(address(`dashboards/${id}`));
  });
  return (
    <Dialog title={text.use} onClose={onClose}>
      <form {...form.props}>
        <Select
          in={form}
          name="dashboard"
          label={texts.explore.dashboard}
          options={list.map(({ id, name }) => [id, name] as const)}
          required
        />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.use}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
