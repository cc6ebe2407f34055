// Explore: one question about one event, as a chart and a table, with how it was answered.
//
// The whole question stands in the address, so that it can be shared; the answer can be copied as a request,
// put on a dashboard, or opened as SQL. `?save=1` opens the dialog that puts it there.

import { useLocation } from "preact-iso";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { curlOf } from "../api/requests";
import { address } from "../state/environment";
import { may } from "../state/session";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, Copy, LinkButton } from "../ui/button";
import { Chart } from "../ui/chart";
import { Dialog } from "../ui/dialog";
import { Field, Select, Submit, useForm } from "../ui/form";
import { Card, Empty, Failed, Loading, Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { number } from "../ui/time";
import { sqlOf } from "./explore_sql";
import { METRICS, OF_NUMBER, PERIODS } from "./query_names";

const text = texts.explore;
const GRANULARITIES = ["", "hour", "day", "week", "month"] as const;

/** A question as the address has it. */
export interface Question {
  event: string;
  metric: string;
  property: string;
  group: string;
  granularity: string;
  period: string;
  tenant: string;
  zone: string;
  filters: Record<string, string>;
}

function questionOf(query: Record<string, string>): Question {
  const filters = Object.entries(query)
    .filter(([name]) => name.startsWith("f_"))
    .map(([name, value]) => [name.slice(2), value]);
  return {
    event: query.event ?? "",
    metric: query.metric ?? "count",
    property: query.property ?? "",
    group: query.group ?? "",
    granularity: query.granularity ?? "day",
    period: query.period ?? "30d",
    tenant: query.tenant ?? "",
    zone: query.zone ?? "",
    filters: Object.fromEntries(filters),
  };
}

/** Parameters of `GET /v1/query`. */
function parametersOf({ event, metric, property, group, granularity, period, tenant, zone, filters }: Question) {
  return {
    event_name: event,
    metric,
    period,
    ...(tenant ? { tenant_id: tenant } : {}),
    ...(OF_NUMBER.has(metric) ? { numeric_prop: property } : {}),
    ...(group ? { group_by: group } : {}),
    ...(granularity ? { granularity } : {}),
    ...(zone ? { timezone: zone } : {}),
    ...Object.fromEntries(Object.entries(filters).map(([name, value]) => [`f_${name}`, value])),
  };
}

export default function Explore() {
  const { query, path, route } = useLocation();
  const question = questionOf(query);
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const events = discovered.value?.events ?? [];
  const change = (part: Record<string, string>) => {
    const parameters = new URLSearchParams(query);
    for (const [name, value] of Object.entries(part))
      if (value || name === "granularity") parameters.set(name, value);
      else parameters.delete(name);
    // Another event is another page to come back from; the rest is the same question, refined.
    route(`${path}?${parameters}`, part.event === undefined);
  };
  return (
    <Page title={texts.menu.pages.explore} lead={text.lead}>
      {discovered.isLoading && (
        <Card label={text.question}>
          <Loading />
        </Card>
      )}
      {discovered.error && (
        <Card label={text.question}>
          <Failed error={discovered.error} onRetry={discovered.reload} />
        </Card>
      )}
      {discovered.value && events.length === 0 && (
        <Card label={text.question}>
          <Empty title={texts.data.none} text={texts.data.noneText}>
            <LinkButton kind="primary" href={address("start")}>
              {texts.data.send}
            </LinkButton>
          </Empty>
        </Card>
      )}
      {events.length > 0 && !question.event && (
        <Card title={text.choose}>
          <div class="choices">
            {events.map((event) => (
              <button
                key={event.event_name}
                type="button"
                class="button plain"
                onClick={() => change({ event: event.event_name })}
              >
                {event.event_name}
              </button>
            ))}
          </div>
        </Card>
      )}
      {question.event && <Ask question={question} events={events} onChange={change} />}
      {question.event && (
        <Answered
          question={question}
          events={events}
          view={query.view === "table" ? "table" : "chart"}
          onView={(view) => change({ view: view === "table" ? view : "" })}
          isSaving={query.save === "1"}
          onSaving={(isSaving) => change({ save: isSaving ? "1" : "" })}
        />
      )}
    </Page>
  );
}

interface AskProps {
  question: Question;
  events: Schemas["DiscoveredEvent"][];
  onChange: (part: Record<string, string>) => void;
}

function Ask({ question, events, onChange }: AskProps) {
  const event = events.find(({ event_name }) => event_name === question.event);
  const strings = event?.string_props ?? [];
  const numbers = event?.numeric_props ?? [];
  const names = [...new Set([question.event, ...events.map(({ event_name }) => event_name)])];
  const chooseMetric = (metric: string) =>
    onChange({ metric, property: OF_NUMBER.has(metric) ? question.property || (numbers[0]?.name ?? "") : "" });
  const free = strings.filter(({ name }) => !(name in question.filters));
  return (
    <Card label={text.question}>
      <form class="question" onSubmit={(event) => event.preventDefault()}>
        <Select
          name="event"
          label={text.event}
          value={question.event}
          options={names.map((name) => [name, name] as const)}
          onChange={(e) => onChange({ event: e.currentTarget.value, group: "", property: "" })}
        />
        <Select
          name="metric"
          label={text.metric}
          value={question.metric}
          options={METRICS.filter((metric) => numbers.length || !OF_NUMBER.has(metric)).map(
            (metric) => [metric, text.metrics[metric]] as const,
          )}
          onChange={(e) => chooseMetric(e.currentTarget.value)}
        />
        {OF_NUMBER.has(question.metric) && (
          <Select
            name="property"
            label={text.of}
            value={question.property}
            options={numbers.map(({ name }) => [name, name] as const)}
            onChange={(e) => onChange({ property: e.currentTarget.value })}
          />
        )}
        <Select
          name="group"
          label={text.group}
          value={question.group}
          options={[["", text.noGroup], ...strings.map(({ name }) => [name, name] as const)]}
          onChange={(e) => onChange({ group: e.currentTarget.value })}
        />
        <Select
          name="granularity"
          label={text.granularity}
          value={question.granularity}
          options={GRANULARITIES.map((one) => [one, text.granularities[one]] as const)}
          onChange={(e) => onChange({ granularity: e.currentTarget.value })}
        />
        <Field
          name="tenant"
          label={text.tenant}
          placeholder={text.allTenants}
          defaultValue={question.tenant}
          onChange={(e) => onChange({ tenant: e.currentTarget.value.trim() })}
          autocomplete="off"
        />
        <Field
          name="zone"
          label={text.zone}
          placeholder="UTC"
          defaultValue={question.zone}
          list="zones"
          onChange={(e) => onChange({ zone: e.currentTarget.value.trim() })}
          autocomplete="off"
        />
        <datalist id="zones">
          {Intl.supportedValuesOf("timeZone").map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </form>
      <div class="question-foot">
        <Tabs
          label={text.period}
          names={PERIODS}
          chosen={PERIODS.find((one) => one === question.period) ?? "30d"}
          onChoose={(period) => onChange({ period })}
        />
        <ul class="filters">
          {Object.entries(question.filters).map(([name, value]) => (
            <li key={name}>
              <label>
                {name} ={" "}
                <FilterValue
                  property={strings.find((property) => property.name === name)}
                  value={value}
                  onChange={(next) => onChange({ [`f_${name}`]: next })}
                  label={name}
                />
              </label>
              <button
                type="button"
                aria-label={text.removeFilter(name)}
                onClick={() => onChange({ [`f_${name}`]: "" })}
              >
                ×
              </button>
            </li>
          ))}
          {free.length > 0 && (
            <li>
              <select
                class="input small"
                aria-label={text.addFilter}
                value=""
                onChange={(e) =>
                  onChange({
                    [`f_${e.currentTarget.value}`]:
                      free.find(({ name }) => name === e.currentTarget.value)?.samples[0] ?? "?",
                  })
                }
              >
                <option value="">{text.addFilter}</option>
                {free.map(({ name }) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </li>
          )}
        </ul>
      </div>
    </Card>
  );
}

function FilterValue({
  property,
  value,
  onChange,
  label,
}: {
  property: Schemas["DiscoveredText"] | undefined;
  value: string;
  onChange: (value: string) => void;
  label: string;
}) {
  const values = [...new Set([value, ...(property?.samples ?? [])])];
  return (
    <select
      class="input small"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {values.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

/** How a question is drawn: over time as lines or bars, else as bars or a number. */
function kindOf({ group, granularity, metric }: Question): string {
  if (granularity) return group ? (metric === "count" || metric === "sum" ? "stacked_bar" : "line") : "area";
  return group ? "bar_list" : "number";
}

/** Whether rows of one question can be drawn as those of the other. */
const sameShape = (a: Record<string, unknown>, b: Record<string, unknown>) =>
  a.group_by === b.group_by && a.granularity === b.granularity;

interface AnsweredProps {
  question: Question;
  events: Schemas["DiscoveredEvent"][];
  view: "chart" | "table";
  onView: (view: "chart" | "table") => void;
  isSaving: boolean;
  onSaving: (isSaving: boolean) => void;
}

function Answered({ question, events, view, onView, isSaving, onSaving }: AnsweredProps) {
  const parameters = parametersOf(question);
  const isAskable = !OF_NUMBER.has(question.metric) || question.property !== "";
  const result = useData(
    ["query", parameters],
    (signal) => answer(api.GET("/v1/query", { signal, params: { query: parameters } })),
    { keeps: ([, before]) => sameShape(before as typeof parameters, parameters), enabled: isAskable },
  );
  const title = titleOf(question);
  if (!isAskable)
    return (
      <Card label={title}>
        <Empty title={text.chooseNumber} />
      </Card>
    );
  if (result.isLoading)
    return (
      <Card label={title}>
        <Loading />
      </Card>
    );
  if (!result.value)
    return <Card label={title}>{result.error && <Failed error={result.error} onRetry={result.reload} />}</Card>;
  const { data, meta } = result.value;
  const kind = view === "table" ? "table" : kindOf(question);
  const request = { method: "GET", path: `/v1/query?${new URLSearchParams(parameters)}`, body: null };
  return (
    <Card
      title={title}
      actions={
        <div class="box-actions">
          <Tabs
            label={text.view}
            names={["chart", "table"]}
            chosen={view}
            onChoose={onView}
            text={(name) => text.views[name]}
          />
          <Copy text={curlOf(request)} label={text.curl} />
          {may("admin") && <LinkButton href={address("sql", { sql: sqlOf(question) })}>{text.sql}</LinkButton>}
          {may("admin") && (
            <Button kind="primary" onClick={() => onSaving(true)}>
              {text.save}
            </Button>
          )}
        </div>
      }
    >
      {result.error && (
        <p class="fault" role="alert">
          {result.error.message}
        </p>
      )}
      <div aria-busy={result.isRefreshing || undefined}>
        <Chart
          key={kind}
          kind={kind}
          title={title}
          answer={result.value}
          query={{ metric: question.metric, group_by: question.group || undefined }}
          height={kind === "number" ? 90 : 320}
        />
      </div>
      <p class="note" role="status">
        {howAnswered(meta)}
      </p>
      {isSaving && may("admin") && (
        <SaveWidget question={question} kind={kindOf(question)} title={title} onClose={() => onSaving(false)} />
      )}
      <p class="vh">{text.rowsShown(number(data.length), number(events.length))}</p>
    </Card>
  );
}

/** "Requests by model per day" in a few words. */
export function titleOf({ event, metric, property, group, granularity }: Question): string {
  const name = event.replaceAll("_", " ");
  const what =
    metric === "count"
      ? name
      : text.metricOf(text.metrics[metric as (typeof METRICS)[number]] ?? metric, property || name);
  return [
    what.charAt(0).toUpperCase() + what.slice(1),
    group && text.byGroup(group.replaceAll("_", " ")),
    granularity && text.per(text.granularities[granularity as "day"] ?? granularity),
  ]
    .filter(Boolean)
    .join(" ");
}

/** One sentence about how the server came to its answer. */
export function howAnswered(meta: Schemas["Meta"]): string {
  const { query_time_ms: ms, rows_scanned: rows, source_table: table, rollup_granularity: grain, approximate } = meta;
  const source = table ? text.fromRollup(grain ?? "hour") : text.fromRows;
  return [text.answered(source, number(rows), number(ms)), approximate ? text.approximate : ""]
    .filter(Boolean)
    .join(" ");
}

function SaveWidget({
  question,
  kind,
  title,
  onClose,
}: {
  question: Question;
  kind: string;
  title: string;
  onClose: () => void;
}) {
  const { route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const list = dashboards.value?.data ?? [];
  const form = useForm(async (value) => {
    const chosen = list.find(({ id }) => id === value("dashboard"));
    const y = Math.max(0, ...(chosen?.widgets ?? []).map(({ layout }) => layout.y + layout.h));
    const { event, metric, property, group, granularity, period, zone, filters } = question;
    const query = {
      event_name: event,
      metric,
      period,
      ...(OF_NUMBER.has(metric) ? { numeric_prop: property } : {}),
      ...(group ? { group_by: group } : {}),
      ...(granularity ? { granularity } : {}),
      ...(zone ? { timezone: zone } : {}),
      ...(Object.keys(filters).length ? { filters } : {}),
    };
    const widget = {
      id: `w_${Date.now().toString(36)}`,
      kind,
      title: value("title"),
      query,
      viz: {},
      layout: { x: 0, y, w: kind === "number" ? 3 : 6, h: kind === "number" ? 3 : 6 },
    };
    const made = chosen ?? (await answer(api.POST("/v1/dashboards", { body: { name: value("title"), widgets: [] } })));
    await answer(api.POST("/v1/dashboards/{id}/widgets", { params: { path: { id: made.id } }, body: widget }));
    await refresh("dashboards", "dashboard");
    say(text.saved(made.name));
    // Without the dialog in the address that "Back" leads to.
    onClose();
    route(address(`dashboards/${made.id}`));
  });
  return (
    <Dialog title={text.save} onClose={onClose}>
      <form {...form.props}>
        <Field in={form} name="title" label={text.title} defaultValue={title} required maxLength={200} autofocus />
        <Select
          in={form}
          name="dashboard"
          label={text.dashboard}
          options={[...list.map(({ id, name }) => [id, name] as const), ["", text.newDashboard]]}
        />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.save}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
