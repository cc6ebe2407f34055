// One dashboard: looked at as a customer would see it, edited on its grid, published, and embedded.
//
// `/console/dashboards/ID?edit=1&tenant=acme` opens the editor with the events of one customer.

import { useLocation, useRoute } from "preact-iso";
import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field } from "../ui/form";
import { Menu, type MenuItem } from "../ui/menu";
import { Card, Empty, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { fullTime } from "../ui/time";
import type { Looking, Widget } from "../ui/widget";
import { State } from "./dashboard_card";
import { Board, Canvas } from "./editor/canvas";
import { changesOf } from "./editor/changes";
import { useDraft, type Editing } from "./editor/draft";
import { EmbedPanel } from "./editor/embed_panel";
import { Inspector } from "./editor/inspector";
import { KINDS, newWidget } from "./editor/kinds";
import { added, placed, removed } from "./editor/layout";
import { LONG_PERIODS } from "./query_names";
import { themeIn } from "./theme_fields";
import { ChangeList, Publish } from "./editor/publish";
import { DashboardSettings } from "./editor/settings";

const text = texts.editor;
type Dashboard = Schemas["Dashboard"];
const PERIODS = ["", ...LONG_PERIODS] as const;

export default function DashboardPage() {
  const { params } = useRoute();
  const { query } = useLocation();
  const id = params.id ?? "";
  const dashboard = useData(["dashboard", id], (signal) =>
    answer(api.GET("/v1/dashboards/{id}", { signal, params: { path: { id } } })),
  );
  const back = { label: texts.menu.pages.dashboards, href: address("dashboards") };
  const value = dashboard.value;
  if (!value)
    return (
      <Page title={texts.menu.pages.dashboards} back={back}>
        <Card label={texts.menu.pages.dashboards}>
          {dashboard.error ? <Failed error={dashboard.error} onRetry={dashboard.reload} /> : <Loading />}
        </Card>
      </Page>
    );
  return query.edit && may("editor") ? <Editor key={id} dashboard={value} /> : <View dashboard={value} />;
}

/** Period and tenant that the page shows, from its address. */
function useLooking(): { looking: Looking; look: (part: Record<string, string>) => void } {
  const { query, path, route } = useLocation();
  const look = (part: Record<string, string>) => {
    const parameters = new URLSearchParams(query);
    for (const [name, value] of Object.entries(part))
      if (value) parameters.set(name, value);
      else parameters.delete(name);
    route(path + (parameters.size ? `?${parameters}` : ""), true);
  };
  return { looking: { tenant: query.tenant ?? "", ...(query.period ? { period: query.period } : {}) }, look };
}

function LookTools({ looking, look }: ReturnType<typeof useLooking>) {
  const usage = useData(["usage", "30d"], (signal) =>
    answer(api.GET("/v1/usage", { signal, params: { query: { period: "30d" } } })),
  );
  return (
    <div class="list-tools">
      <Tabs
        label={texts.usage.period}
        names={PERIODS}
        chosen={PERIODS.find((one) => one === (looking.period ?? "")) ?? ""}
        onChoose={(period) => look({ period })}
        text={(period) => period || text.ownPeriod}
      />
      <label class="search tenant">
        <span class="vh">{text.asTenant}</span>
        <input
          type="search"
          list="tenants"
          placeholder={text.asTenant}
          value={looking.tenant}
          onChange={(event) => look({ tenant: event.currentTarget.value.trim() })}
        />
      </label>
      <datalist id="tenants">
        {usage.value?.top_tenants.map(({ tenant_id }) => (
          <option key={tenant_id} value={tenant_id} />
        ))}
      </datalist>
    </div>
  );
}

function View({ dashboard }: { dashboard: Dashboard }) {
  const { id, name, widgets, status } = dashboard;
  const looks = useLooking();
  const [shown, show] = useState<"embed" | "publish" | null>(null);
  const isEditor = may("editor");
  const { look } = looks;
  return (
    <Page
      title={name}
      back={{ label: texts.menu.pages.dashboards, href: address("dashboards") }}
      lead={<State dashboard={dashboard} />}
      actions={
        <>
          {may("admin") && status === "published" && (
            <Button icon="embed" onClick={() => show("embed")}>
              {text.embed}
            </Button>
          )}
          {isEditor && <Button onClick={() => show("publish")}>{text.publish}</Button>}
          {isEditor && (
            <Button kind="primary" onClick={() => look({ edit: "1" })}>
              {texts.actions.edit}
            </Button>
          )}
          <More dashboard={dashboard} />
        </>
      }
    >
      <WhoMay least="editor" what={texts.dashboards.what} />
      {widgets.length > 0 && <LookTools {...looks} />}
      {widgets.length === 0 ? (
        <Card label={name}>
          <Empty title={text.empty} text={text.emptyText}>
            {isEditor && (
              <Button kind="primary" onClick={() => look({ edit: "1" })}>
                {texts.actions.edit}
              </Button>
            )}
          </Empty>
        </Card>
      ) : (
        <Board widgets={widgets} looking={{ ...looks.looking, saved: { dashboard: id, version: dashboard.version } }} />
      )}
      {shown === "embed" && (
        <Dialog title={text.embedTitle(name)} onClose={() => show(null)} wide>
          <EmbedPanel
            dashboard={id}
            widgets={widgets}
            theme={themeIn(dashboard.settings)}
            tenant={looks.looking.tenant}
          />
        </Dialog>
      )}
      {shown === "publish" && (
        <Publish dashboard={dashboard} draft={dashboard} flush={async () => true} onClose={() => show(null)} />
      )}
    </Page>
  );
}

/** Rare actions: unpublish, restore the published version, delete. */
function More({ dashboard }: { dashboard: Dashboard }) {
  const { route } = useLocation();
  const { id, name, status, published_at } = dashboard;
  const [asked, ask] = useState<"unpublish" | "restore" | "delete" | null>(null);
  const done = async (said: string) => {
    say(said);
    await refresh("dashboard", "dashboards");
  };
  const path = { params: { path: { id } } };
  const items: MenuItem[] = [
    ...(may("editor") && status === "published" ? [{ label: text.unpublish, act: () => ask("unpublish") }] : []),
    ...(may("admin") && published_at && dashboard.has_unpublished_changes
      ? [{ label: text.restore, act: () => ask("restore") }]
      : []),
    ...(may("editor") ? [{ label: texts.dashboards.delete, danger: true, act: () => ask("delete") }] : []),
  ];
  const close = () => ask(null);
  return (
    <>
      <Menu label={texts.actions.of(name)} items={items} />
      {asked === "unpublish" && (
        <Confirm
          title={text.unpublishTitle(name)}
          text={text.unpublishText}
          action={text.unpublish}
          onClose={close}
          onConfirm={async () => {
            await answer(api.POST("/v1/dashboards/{id}/unpublish", path));
            await done(text.unpublished(name));
          }}
        />
      )}
      {asked === "restore" && (
        <Confirm
          title={text.restoreTitle(name)}
          text={text.restoreText}
          action={text.restore}
          onClose={close}
          onConfirm={async () => {
            await answer(api.POST("/v1/dashboards/{id}/restore-published", path));
            await done(text.restored(name));
          }}
        />
      )}
      {asked === "delete" && (
        <Confirm
          title={texts.dashboards.deleteTitle(name)}
          text={status === "published" ? texts.dashboards.deletePublished : texts.dashboards.deleteText}
          action={texts.dashboards.delete}
          onClose={close}
          {...(status === "published" ? { name } : {})}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/dashboards/{id}", path));
            await refresh("dashboards");
            route(address("dashboards"));
          }}
        />
      )}
    </>
  );
}

function Editor({ dashboard }: { dashboard: Dashboard }) {
  const looks = useLooking();
  const editing = useDraft(dashboard);
  const { draft, change, undo, redo } = editing;
  const [selected, select] = useState<string | null>(null);
  const [isAdding, setAdding] = useState(false);
  const [isPublishing, setPublishing] = useState(false);
  const [areSettingsOpen, setSettings] = useState(false);
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const events = discovered.value?.events ?? [];
  const widget = draft.widgets.find(({ id }) => id === selected);
  useKeys(editing);
  // Of the newest draft: others may have been made since.
  const bringBack = useRef<(widget: Widget) => void>(() => undefined);
  bringBack.current = (widget) => change({ widgets: placed([...draft.widgets, widget], widget.id, widget.layout) });
  const add = (kind: string) => {
    const made = newWidget(kind, events[0], text.newTitle(text.kinds[kind as "line"]));
    change({ widgets: added(draft.widgets, made) });
    select(made.id);
    setAdding(false);
  };
  return (
    <Page
      title={draft.name}
      back={{ label: texts.menu.pages.dashboards, href: address("dashboards") }}
      lead={<Saved editing={editing} />}
      actions={
        <>
          <Button onClick={undo ?? undefined} disabled={!undo} title="⌘Z">
            {texts.actions.undo}
          </Button>
          <Button onClick={redo ?? undefined} disabled={!redo} title="⇧⌘Z">
            {texts.actions.redo}
          </Button>
          <Button icon="plus" onClick={() => setAdding(true)}>
            {text.add}
          </Button>
          <Button onClick={() => setSettings(true)}>{texts.dashboardSettings.open}</Button>
          <Button onClick={() => setPublishing(true)}>{text.publish}</Button>
          <Button
            kind="primary"
            onClick={() => void editing.flush().then((isSaved) => isSaved && looks.look({ edit: "" }))}
          >
            {texts.actions.done}
          </Button>
        </>
      }
    >
      <div class="editor">
        <div class="editor-main">
          <div class="editor-tools">
            <div class="editor-name">
              <Field
                name="name"
                label={texts.dashboards.name}
                value={draft.name}
                maxLength={200}
                required
                onInput={(event) =>
                  event.currentTarget.value.trim() && change({ name: event.currentTarget.value }, "name")
                }
              />
            </div>
            <LookTools {...looks} />
          </div>
          {draft.widgets.length === 0 ? (
            <Card label={draft.name}>
              <Empty title={text.empty} text={text.emptyEdit}>
                <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
                  {text.add}
                </Button>
              </Empty>
            </Card>
          ) : (
            <Canvas
              widgets={draft.widgets}
              looking={looks.looking}
              selected={selected}
              onSelect={select}
              onChange={(widgets) => change({ widgets })}
            />
          )}
        </div>
        {widget ? (
          <Inspector
            key={widget.id}
            widget={widget}
            events={events}
            onPlace={(layout) => change({ widgets: placed(draft.widgets, widget.id, layout) })}
            onChange={(next, merged) =>
              change(
                {
                  widgets: placed(
                    draft.widgets.map((one) => (one.id === next.id ? next : one)),
                    next.id,
                    next.layout,
                  ),
                },
                merged,
              )
            }
            onRemove={() => {
              change({ widgets: removed(draft.widgets, widget.id) });
              select(null);
              say(text.removed(widget.title), () => bringBack.current(widget));
            }}
            onDuplicate={() => {
              const copy = { ...widget, id: `w_${crypto.randomUUID().slice(0, 8)}` };
              change({ widgets: added(draft.widgets, copy) });
              select(copy.id);
            }}
          />
        ) : (
          <aside class="inspector hint">
            <p>{text.selectHint}</p>
          </aside>
        )}
      </div>
      {isAdding && (
        <Dialog title={text.add} onClose={() => setAdding(false)}>
          <div class="choices">
            {KINDS.map((kind) => (
              <button key={kind} type="button" class="button plain" onClick={() => add(kind)}>
                {text.kinds[kind]}
              </button>
            ))}
          </div>
        </Dialog>
      )}
      {areSettingsOpen && (
        <DashboardSettings
          settings={draft.settings}
          onClose={() => setSettings(false)}
          onChange={async (settings) => change({ settings })}
        />
      )}
      {isPublishing && (
        <Publish dashboard={dashboard} draft={draft} flush={editing.flush} onClose={() => setPublishing(false)} />
      )}
      {editing.theirs && <Conflict editing={editing} theirs={editing.theirs} />}
    </Page>
  );
}

/** ⌘Z and ⇧⌘Z, but not within a field, which has its own. */
function useKeys({ undo, redo }: Editing): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (!(event.metaKey || event.ctrlKey) || event.key.toLowerCase() !== "z" || isTyping) return;
      event.preventDefault();
      (event.shiftKey ? redo : undo)?.();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [undo, redo]);
}

function Saved({ editing: { save, error, retry } }: { editing: Editing }) {
  return (
    <span role="status">
      {text.saves[save]}
      {save === "failed" && (
        <>
          {" "}
          <span class="bad">{error?.message}</span>{" "}
          <button type="button" class="link" onClick={retry}>
            {texts.actions.tryAgain}
          </button>
        </>
      )}
    </span>
  );
}

/** Another user has saved meanwhile: both versions are shown, and neither is lost. */
function Conflict({ editing, theirs }: { editing: Editing; theirs: Dashboard }) {
  const { draft, keepMine, takeTheirs } = editing;
  const copy = async () => {
    await answer(api.POST("/v1/dashboards", { body: { ...draft, name: texts.dashboards.copyOf(draft.name) } }));
    await refresh("dashboards");
    takeTheirs();
    say(text.copied);
  };
  return (
    <Dialog title={text.conflictTitle} onClose={() => undefined} closes={false}>
      <p class="lead">{text.conflictText(fullTime(theirs.updated_at))}</p>
      <ChangeList changes={changesOf(theirs, draft)} />
      <div class="foot">
        <Button onClick={() => attempt(copy)}>{text.mineAsCopy}</Button>
        <Button onClick={takeTheirs}>{text.takeTheirs}</Button>
        <Button kind="primary" onClick={keepMine}>
          {text.keepMine}
        </Button>
      </div>
    </Dialog>
  );
}
