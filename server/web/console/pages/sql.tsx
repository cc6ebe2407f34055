// The SQL editor: read-only statements over the organisation's events, in tabs that survive a reload.
//
// `?sql=…` opens a statement that another page has written, `?query=ID` a saved one.

import { useLocation } from "preact-iso";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { saveCsv } from "../../shared/file.js";
import { lazy } from "../../shared/ui.js";
import { answer, api, ApiError, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { readTabs, writeTabs, type Tab } from "../state/drafts";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field, Submit, useForm } from "../ui/form";
import { Badge, Page, WhoMay } from "../ui/page";
import { Splitter } from "../ui/splitter";
import { Tabs } from "../ui/tabs";
import { number } from "../ui/time";
import { SqlEditor, type EditorHandle } from "./statements/editor";
import type { Result } from "./statements/result";
import { SqlSide } from "./statements/side";
import { templatesOf, type Template } from "./statements/templates";

const text = texts.sql;

/** Table and chart are loaded with the first rows. */
const Rows = lazy(() => import("./statements/result"));
const Definition = lazy(() => import("./definition"));
const ToWidget = lazy(() => import("./statements/to_widget"));

const EDITOR_PX = 240;
const EDITOR_MIN_PX = 120;
const EXAMPLES = 3;

type Outcome =
  | { state: "running" }
  | { state: "done"; sql: string; result: Result }
  | { state: "failed"; error: ApiError }
  | { state: "cancelled" };

const newTab = (sql = "", title = text.untitled): Tab => ({ id: crypto.randomUUID(), title, sql });

export default function SqlPage() {
  const { query, path, route } = useLocation();
  const isAdmin = may("admin");
  const [tabs, setTabs] = useState(() => readTabs() ?? { tabs: [newTab()], chosen: "" });
  const tab = tabs.tabs.find(({ id }) => id === tabs.chosen) ?? tabs.tabs[0] ?? newTab();
  const [outcomes, setOutcomes] = useState<Record<string, Outcome>>({});
  const [view, setView] = useState<"table" | "chart">("table");
  const [isSaving, setSaving] = useState(false);
  const [deleted, setDeleted] = useState<Schemas["SavedQuery"] | null>(null);
  const [defined, setDefined] = useState<string | null>(null);
  const [height, setHeight] = useState(EDITOR_PX);
  const handle = useRef<EditorHandle | null>(null);
  const aborts = useRef(new Map<string, AbortController>());
  const datasets = useData(["datasets"], (signal) => answer(api.GET("/v1/datasets", { signal })), { enabled: isAdmin });
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const queries = useData(["saved-queries"], (signal) => answer(api.GET("/v1/saved-queries", { signal })));
  const saved = queries.value?.data ?? [];
  const events = discovered.value?.events ?? [];
  const templates = templatesOf(events);
  const names = useMemo(() => events.map(({ event_name }) => event_name), [discovered.value]);

  // With what is shown: a reload right after it loses nothing.
  useLayoutEffect(() => writeTabs(tabs), [tabs]);
  const change = (part: Partial<Tab>) =>
    setTabs((now) => ({ ...now, tabs: now.tabs.map((one) => (one.id === tab.id ? { ...one, ...part } : one)) }));
  const open = (made: Tab) =>
    setTabs((now) => ({ tabs: [...now.tabs.filter(({ sql, saved: from }) => sql || from), made], chosen: made.id }));
  const openSaved = (one: Schemas["SavedQuery"]) => {
    const there = tabs.tabs.find((other) => other.saved?.id === one.id);
    if (there) setTabs((now) => ({ ...now, chosen: there.id }));
    else open({ ...newTab(one.sql, one.name), saved: { id: one.id, sql: one.sql } });
  };
  const close = (one: Tab) => {
    drop(one.id);
    if (one.sql) say(text.closed(one.title), () => open(one));
  };
  const drop = (id: string) =>
    setTabs((now) => {
      const rest = now.tabs.filter((one) => one.id !== id);
      const left = rest.length ? rest : [newTab()];
      return { tabs: left, chosen: now.chosen === id ? (left.at(-1)?.id ?? "") : now.chosen };
    });

  // A statement in the address is opened once; then the parameter is removed.
  useEffect(() => {
    if (query.sql) open(newTab(query.sql, text.fromPage));
    const one = query.query ? saved.find(({ id }) => id === query.query) : undefined;
    if (one) openSaved(one);
    if (query.sql || one) {
      const { sql: _, query: __, ...rest } = query;
      route(path + (Object.keys(rest).length ? `?${new URLSearchParams(rest)}` : ""), true);
    }
  }, [query.sql, query.query, queries.value]);

  const outcome = outcomes[tab.id];
  const run = async () => {
    const chosen = handle.current?.chosen();
    if (!chosen?.sql.trim() || outcomes[tab.id]?.state === "running") return;
    const { id } = tab;
    const set = (next: Outcome) => setOutcomes((now) => ({ ...now, [id]: next }));
    const abort = new AbortController();
    aborts.current.set(id, abort);
    handle.current?.mark(null);
    set({ state: "running" });
    try {
      set({
        state: "done",
        sql: chosen.sql,
        result: (await answer(
          api.POST("/v1/query/adhoc", { signal: abort.signal, body: { sql: chosen.sql } }),
        )) as Result,
      });
    } catch (cause) {
      if (abort.signal.aborted) return set({ state: "cancelled" });
      const error = cause instanceof ApiError ? cause : new ApiError(0, {});
      set({ state: "failed", error });
      const { line, column } = error.body;
      if (line != null && column != null) handle.current?.mark({ from: chosen.from, line, column });
    }
  };
  const save = async () => {
    if (!tab.saved) return setSaving(true);
    await answer(
      api.PATCH("/v1/saved-queries/{id}", { params: { path: { id: tab.saved.id } }, body: { sql: tab.sql } }),
    );
    change({ saved: { id: tab.saved.id, sql: tab.sql } });
    say(text.savedAs(tab.title));
    await refresh("saved-queries");
  };
  const star = async ({ id, starred }: Schemas["SavedQuery"]) => {
    await answer(api.PATCH("/v1/saved-queries/{id}", { params: { path: { id } }, body: { starred: !starred } }));
    await refresh("saved-queries");
  };

  if (!isAdmin)
    return (
      <Page title={texts.menu.pages.sql}>
        <WhoMay least="admin" what={text.what} />
      </Page>
    );
  return (
    <Page
      title={texts.menu.pages.sql}
      actions={
        <>
          <span title={text.limits}>
            <Badge>{text.readOnly}</Badge>
          </span>
          <Button onClick={() => attempt(save)}>{texts.actions.save}</Button>
          {outcome?.state === "running" ? (
            <Button kind="danger" onClick={() => aborts.current.get(tab.id)?.abort()}>
              {text.cancel}
            </Button>
          ) : (
            <Button kind="primary" onClick={() => void run()}>
              {text.run} <kbd>{text.runKeys}</kbd>
            </Button>
          )}
        </>
      }
    >
      <div class="box sql">
        <SqlSide
          datasets={datasets.value?.data ?? []}
          queries={saved}
          templates={templates}
          onInsert={(sql) => handle.current?.insert(sql)}
          onOpen={openSaved}
          onTemplate={({ title, sql }) => open(newTab(sql, title))}
          onStar={(one) => attempt(() => star(one))}
          onDelete={setDeleted}
          onDefinition={setDefined}
        />
        <div class="sql-main">
          <div class="sql-tabs" role="group" aria-label={text.tabs}>
            {tabs.tabs.map((one) => (
              <span key={one.id} class={one.id === tab.id ? "sql-tab chosen" : "sql-tab"}>
                <button
                  type="button"
                  aria-pressed={one.id === tab.id}
                  onClick={() => setTabs((now) => ({ ...now, chosen: one.id }))}
                >
                  {one.title}
                  {(one.saved ? one.saved.sql !== one.sql : one.sql !== "") && (
                    <i class="unsaved" title={text.unsaved} />
                  )}
                </button>
                <button type="button" class="close" aria-label={text.closeTab(one.title)} onClick={() => close(one)}>
                  ×
                </button>
              </span>
            ))}
            <button type="button" class="icon-button" aria-label={text.newTab} onClick={() => open(newTab())}>
              +
            </button>
          </div>
          <SqlEditor
            key={tab.id}
            height={height}
            value={tab.sql}
            datasets={datasets.value?.data ?? EMPTY}
            events={names}
            onChange={(sql) => change({ sql })}
            onRun={() => void run()}
            onSave={() => attempt(save)}
            handle={handle}
          />
          <Splitter
            label={text.height}
            value={height}
            min={EDITOR_MIN_PX}
            max={Math.max(EDITOR_PX, Math.round(innerHeight * 0.6))}
            onChange={setHeight}
          />
          {outcome || tab.sql ? (
            <OutcomeView outcome={outcome} view={view} onView={setView} title={tab.title} />
          ) : (
            <Examples templates={templates} onOpen={({ title, sql }) => open(newTab(sql, title))} />
          )}
        </div>
      </div>
      {isSaving && (
        <Save
          tab={tab}
          onClose={() => setSaving(false)}
          onSaved={(made) => change({ title: made.name, saved: { id: made.id, sql: made.sql } })}
        />
      )}
      {defined && <Definition name={defined} onClose={() => setDefined(null)} />}
      {deleted && (
        <Confirm
          title={text.deleteTitle(deleted.name)}
          text={text.deleteText}
          action={text.delete}
          onClose={() => setDeleted(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/saved-queries/{id}", { params: { path: { id: deleted.id } } }));
            await refresh("saved-queries");
          }}
        />
      )}
    </Page>
  );
}

/** Where nothing is written yet: statements about one's own events, to be run as they are. */
function Examples({ templates, onOpen }: { templates: Template[]; onOpen: (template: Template) => void }) {
  return (
    <div class="examples">
      <p>{text.examples}</p>
      {templates.slice(1, 1 + EXAMPLES).map((template) => (
        <Button key={template.title} onClick={() => onOpen(template)}>
          {template.title}
        </Button>
      ))}
    </div>
  );
}

const EMPTY: readonly Schemas["Dataset"][] = [];

function OutcomeView({
  outcome,
  view,
  onView,
  title,
}: {
  outcome: Outcome | undefined;
  view: "table" | "chart";
  onView: (view: "table" | "chart") => void;
  title: string;
}) {
  if (!outcome) return <p class="chart-empty">{text.hint}</p>;
  if (outcome.state === "running")
    return (
      <p class="chart-empty" role="status">
        {text.running}
      </p>
    );
  if (outcome.state === "cancelled")
    return (
      <p class="chart-empty" role="status">
        {text.cancelled}
      </p>
    );
  if (outcome.state === "failed") {
    const { line, column, hint } = outcome.error.body;
    return (
      <div class="sql-failed" role="alert">
        <p>
          {line != null && <b>{text.at(line, column ?? 1)} </b>}
          {outcome.error.message}
        </p>
        {hint && !outcome.error.message.toLowerCase().includes(hint.toLowerCase().slice(0, 20)) && (
          <p class="muted">{hint}</p>
        )}
      </div>
    );
  }
  const { sql, result } = outcome;
  const { columns, rows, stats } = result;
  const table = () => [
    columns.map(({ name }) => name),
    ...(rows as unknown[][]).map((row) =>
      row.map((value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : value)),
    ),
  ];
  return (
    <>
      <div class="sql-bar">
        <Tabs
          label={text.view}
          names={["table", "chart"]}
          chosen={view}
          onChoose={onView}
          text={(name) => texts.explore.views[name]}
        />
        <p role="status">{text.done(number(stats.rows_returned), number(stats.wall_ms))}</p>
        <ToWidget sql={sql} />
        <Button onClick={() => saveCsv(table(), title)}>{text.csv}</Button>
      </div>
      {stats.truncated && <p class="banner">{text.truncated(number(stats.rows_returned))}</p>}
      <Rows key={title} result={result} view={view} />
    </>
  );
}

function Save({
  tab,
  onClose,
  onSaved,
}: {
  tab: Tab;
  onClose: () => void;
  onSaved: (made: Schemas["SavedQuery"]) => void;
}) {
  const form = useForm(async (value) => {
    const made = await answer(
      api.POST("/v1/saved-queries", { body: { name: value("name"), sql: tab.sql, dataset: value("dataset") || null } }),
    );
    onSaved(made);
    say(text.savedAs(made.name));
    onClose();
    await refresh("saved-queries");
  });
  return (
    <Dialog title={text.saveTitle} onClose={onClose}>
      <form {...form.props}>
        <Field
          in={form}
          name="name"
          label={text.name}
          defaultValue={tab.title === text.untitled ? "" : tab.title}
          required
          maxLength={200}
          autofocus
        />
        <Field in={form} name="dataset" label={text.dataset} defaultValue="events" maxLength={200} />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{texts.actions.save}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
