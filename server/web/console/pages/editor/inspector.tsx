// The settings of one widget: query, drawing options and layout. Every change is seen at once.

import type { ComponentChildren } from "preact";
import { isTimed } from "../../../charts/kinds.js";
import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Button } from "../../ui/button";
import { Field, Select, TextArea } from "../../ui/form";
import type { Widget } from "../../ui/widget";
import { METRICS, OF_NUMBER, PERIODS } from "../query_names";
import { clean, fitted, KINDS, needsOf, queryOf, type Query } from "./kinds";
import { listed, Thresholds } from "./thresholds";

const text = texts.editor;
const GRANULARITIES = ["", "auto", "hour", "day", "week", "month"] as const;

/** Places of the palette, which the theme fills. */
const COLORS = [1, 2, 3, 4, 5, 6, 7, 8] as const;
const COLORED = new Set(["number", "line", "area", "bar", "stacked_bar", "donut"]);

interface InspectorProps {
  widget: Widget;
  events: Schemas["DiscoveredEvent"][];
  /** `merged` names the field that is typed in. */
  onChange: (widget: Widget, merged?: string) => void;
  onPlace: (layout: Widget["layout"]) => void;
  /** Absent where the widget stands alone. */
  onRemove?: () => void;
  onDuplicate?: () => void;
}

export function Inspector({ widget, events, onChange, onPlace, onRemove, onDuplicate }: InspectorProps) {
  const query = queryOf(widget);
  const viz = widget.viz as Record<string, unknown>;
  // A text has no query; another kind begins with the first event.
  const event =
    events.find(({ event_name }) => event_name === query.event_name) ?? (query.event_name ? undefined : events[0]);
  const ask = (part: Partial<Query>) => onChange(fitted({ ...widget, query: clean({ ...query, ...part }) }, event));
  const draw = (part: Record<string, unknown>, merged?: string) =>
    onChange(
      {
        ...widget,
        viz: Object.fromEntries(
          Object.entries({ ...viz, ...part }).filter(([, value]) => value !== undefined && value !== ""),
        ),
      },
      merged,
    );
  return (
    <aside class="inspector" aria-label={text.inspector(widget.title)}>
      <Group title={text.widget}>
        <Field
          name="title"
          label={text.title}
          value={widget.title}
          maxLength={200}
          onInput={(e) => onChange({ ...widget, title: e.currentTarget.value }, `${widget.id} title`)}
        />
        <Select
          name="kind"
          label={text.kind}
          value={widget.kind}
          options={KINDS.map((kind) => [kind, text.kinds[kind]] as const)}
          onChange={(e) => onChange(fitted({ ...widget, kind: e.currentTarget.value }, event))}
        />
        <Field
          name="subtitle"
          label={text.subtitle}
          value={String(viz.subtitle ?? "")}
          maxLength={200}
          onInput={(e) => draw({ subtitle: e.currentTarget.value }, `${widget.id} subtitle`)}
        />
        {widget.kind === "text" && (
          <TextArea
            name="text"
            label={text.prose}
            rows={5}
            value={String(viz.text ?? "")}
            onInput={(e) => draw({ text: e.currentTarget.value }, `${widget.id} text`)}
          />
        )}
      </Group>
      {widget.kind !== "text" && (
        <Ask key={widget.id} widget={widget} query={query} event={event} events={events} ask={ask} />
      )}
      {widget.kind !== "text" && <Look widget={widget} viz={viz} query={query} ask={ask} draw={draw} />}
      {isTimed(widget.kind) && !(widget.kind === "bar" && !query.granularity) && (
        <Thresholds
          widget={widget}
          list={listed(viz.thresholds)}
          onChange={(thresholds, m) => draw({ thresholds }, m)}
        />
      )}
      <Place layout={widget.layout} onPlace={onPlace} />
      {onRemove && (
        <div class="inspector-actions">
          <Button onClick={onDuplicate}>{text.duplicate}</Button>
          <Button kind="danger" onClick={onRemove}>
            {text.remove}
          </Button>
        </div>
      )}
    </aside>
  );
}

const Group = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <fieldset class="group">
    <legend>{title}</legend>
    {children}
  </fieldset>
);

interface AskProps {
  widget: Widget;
  query: Query;
  event: Schemas["DiscoveredEvent"] | undefined;
  events: Schemas["DiscoveredEvent"][];
  ask: (part: Partial<Query>) => void;
}

function Ask({ widget, query, event, events, ask }: AskProps) {
  const needs = needsOf(widget.kind);
  const names = [...new Set([query.event_name ?? "", ...events.map(({ event_name }) => event_name)])];
  const strings = [
    ...new Set([...(query.group_by ? [query.group_by] : []), ...(event?.string_props ?? []).map(({ name }) => name)]),
  ];
  const numbers = [
    ...new Set([
      ...(query.numeric_prop ? [query.numeric_prop] : []),
      ...(event?.numeric_props ?? []).map(({ name }) => name),
    ]),
  ];
  const metrics = METRICS.filter(
    (metric) =>
      (!needs.isAdditive || metric === "count" || metric === "sum") && (numbers.length > 0 || !OF_NUMBER.has(metric)),
  );
  if (widget.kind === "funnel") return <Steps query={query} names={names} ask={ask} />;
  return (
    <Group title={text.data}>
      <Select
        name="event_name"
        label={text.event}
        value={query.event_name}
        options={names.map((name) => [name, name] as const)}
        onChange={(e) => ask({ event_name: e.currentTarget.value })}
      />
      {!query.measures && (
        <Select
          name="metric"
          label={text.metric}
          value={query.metric}
          options={metrics.map((metric) => [metric, texts.explore.metrics[metric]] as const)}
          onChange={(e) => ask({ metric: e.currentTarget.value })}
        />
      )}
      {!query.measures && OF_NUMBER.has(query.metric ?? "") && (
        <Select
          name="numeric_prop"
          label={text.of}
          value={query.numeric_prop}
          options={numbers.map((name) => [name, name] as const)}
          onChange={(e) => ask({ numeric_prop: e.currentTarget.value })}
        />
      )}
      {needs.group !== "never" && (
        <Select
          name="group_by"
          label={text.group}
          value={query.group_by ?? ""}
          options={[
            ...(needs.group === "either" ? [["", text.noGroup] as const] : []),
            ...strings.map((name) => [name, name] as const),
          ]}
          onChange={(e) => ask({ group_by: e.currentTarget.value })}
        />
      )}
      {needs.time !== "never" && (
        <Select
          name="granularity"
          label={text.granularity}
          value={query.granularity ?? (needs.time === "always" ? "auto" : "")}
          options={GRANULARITIES.filter((one) => one || needs.time === "either").map(
            (one) => [one, texts.explore.granularities[one]] as const,
          )}
          onChange={(e) => ask({ granularity: e.currentTarget.value })}
        />
      )}
      <Select
        name="period"
        label={text.period}
        value={query.period ?? "30d"}
        options={PERIODS.map((one) => [one, one] as const)}
        onChange={(e) => ask({ period: e.currentTarget.value })}
      />
      {query.group_by && (
        <Field
          name="limit"
          label={text.limit}
          type="number"
          min={1}
          max={1000}
          value={query.limit ?? ""}
          onChange={(e) => ask({ limit: e.currentTarget.value ? Number(e.currentTarget.value) : undefined })}
        />
      )}
      {(widget.kind === "number" || widget.kind === "area" || (widget.kind === "line" && !query.group_by)) && (
        <Select
          name="compare"
          label={text.compare}
          value={query.compare ?? ""}
          options={[
            ["", text.noCompare],
            ["previous", text.comparePrevious],
          ]}
          onChange={(e) => ask({ compare: e.currentTarget.value })}
        />
      )}
      <Filters query={query} event={event} ask={ask} />
    </Group>
  );
}

function Filters({
  query,
  event,
  ask,
}: {
  query: Query;
  event: Schemas["DiscoveredEvent"] | undefined;
  ask: (part: Partial<Query>) => void;
}) {
  const filters = query.filters ?? {};
  const properties = event?.string_props ?? [];
  const set = (name: string, value: string | null) => {
    const { [name]: _, ...rest } = filters;
    ask({ filters: value === null ? rest : { ...filters, [name]: value } });
  };
  const free = properties.filter(({ name }) => !(name in filters));
  return (
    <div class="field">
      <span class="label">{text.filters}</span>
      {Object.entries(filters).map(([name, value]) => (
        <div key={name} class="filter-row">
          <span>{name}</span>
          <input
            class="input small"
            aria-label={text.filterValue(name)}
            list={`values-${name}`}
            defaultValue={[value].flat().join(", ")}
            onChange={(e) => set(name, e.currentTarget.value)}
          />
          <datalist id={`values-${name}`}>
            {properties
              .find((property) => property.name === name)
              ?.samples.map((sample) => (
                <option key={sample} value={sample} />
              ))}
          </datalist>
          <button
            type="button"
            class="icon-button"
            aria-label={texts.explore.removeFilter(name)}
            onClick={() => set(name, null)}
          >
            ×
          </button>
        </div>
      ))}
      {free.length > 0 && (
        <select
          class="input small"
          aria-label={texts.explore.addFilter}
          value=""
          onChange={(e) =>
            set(e.currentTarget.value, free.find(({ name }) => name === e.currentTarget.value)?.samples[0] ?? "")
          }
        >
          <option value="">{texts.explore.addFilter}</option>
          {free.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

function Steps({ query, names, ask }: { query: Query; names: string[]; ask: (part: Partial<Query>) => void }) {
  const steps = query.steps ?? [];
  const set = (at: number, event_name: string) =>
    ask({ steps: steps.map((step, index) => (index === at ? { ...step, event_name } : step)) });
  return (
    <Group title={text.steps}>
      {steps.map((step, at) => (
        <div key={at} class="filter-row">
          <select
            class="input small"
            aria-label={text.step(at + 1)}
            value={step.event_name}
            onChange={(e) => set(at, e.currentTarget.value)}
          >
            {[...new Set([step.event_name, ...names])].map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          {steps.length > 2 && (
            <button
              type="button"
              class="icon-button"
              aria-label={text.removeStep(at + 1)}
              onClick={() => ask({ steps: steps.filter((_, index) => index !== at) })}
            >
              ×
            </button>
          )}
        </div>
      ))}
      <Button onClick={() => ask({ steps: [...steps, { event_name: names[0] ?? "" }] })}>{text.addStep}</Button>
    </Group>
  );
}

function Look({
  widget,
  viz,
  query,
  ask,
  draw,
}: {
  widget: Widget;
  viz: Record<string, unknown>;
  query: Query;
  ask: (part: Partial<Query>) => void;
  draw: (part: Record<string, unknown>, merged?: string) => void;
}) {
  const format = (viz.format ?? {}) as Record<string, unknown>;
  const drill = (viz.drill ?? {}) as Record<string, unknown>;
  const style = (part: Record<string, unknown>, merged?: string) =>
    draw(
      {
        format: Object.fromEntries(
          Object.entries({ ...format, ...part }).filter(([, value]) => value !== undefined && value !== ""),
        ),
      },
      merged,
    );
  return (
    <Group title={text.look}>
      <Select
        name="style"
        label={text.format}
        value={String(format.style ?? "number")}
        options={text.formats}
        onChange={(e) =>
          style({
            style: e.currentTarget.value,
            ...(e.currentTarget.value === "currency"
              ? { currency: format.currency ?? "USD" }
              : { currency: undefined }),
          })
        }
      />
      {format.style === "currency" && (
        <Field
          name="currency"
          label={text.currency}
          value={String(format.currency ?? "USD")}
          maxLength={3}
          onInput={(e) => style({ currency: e.currentTarget.value.toUpperCase() }, `${widget.id} currency`)}
        />
      )}
      <Field
        name="unit"
        label={text.unit}
        value={String(format.unit ?? "")}
        maxLength={20}
        onInput={(e) => style({ unit: e.currentTarget.value }, `${widget.id} unit`)}
      />
      {COLORED.has(widget.kind) && (
        <div class="field">
          <span class="label" id="color">
            {text.color}
          </span>
          <div class="swatches" role="radiogroup" aria-labelledby="color">
            {COLORS.map((color) => (
              <label key={color} title={text.colorOf(color)}>
                <input
                  type="radio"
                  name="color"
                  aria-label={text.colorOf(color)}
                  checked={color === (viz.color ?? 1)}
                  onChange={() => draw({ color: color === 1 ? undefined : color })}
                />
                <i style={{ background: `var(--c${color})` }} />
              </label>
            ))}
          </div>
        </div>
      )}
      {widget.kind === "number" && (
        <Select
          name="good_direction"
          label={text.good}
          value={String(viz.good_direction ?? "up")}
          options={text.directions}
          onChange={(e) => draw({ good_direction: e.currentTarget.value })}
        />
      )}
      {query.group_by && (
        <Select
          name="drill"
          label={text.drill}
          value={String(drill.action ?? "filter")}
          options={text.drills}
          onChange={(e) => draw({ drill: { action: e.currentTarget.value } })}
        />
      )}
      <Field
        name="timezone"
        label={texts.explore.zone}
        placeholder="UTC"
        defaultValue={query.timezone ?? ""}
        onChange={(e) => ask({ timezone: e.currentTarget.value })}
      />
    </Group>
  );
}

function Place({ layout, onPlace }: { layout: Widget["layout"]; onPlace: (layout: Widget["layout"]) => void }) {
  const field = (name: keyof Widget["layout"], label: string, least: number, most: number) => (
    <Field
      name={name}
      label={label}
      type="number"
      min={least}
      max={most}
      value={layout[name] + (name === "x" || name === "y" ? 1 : 0)}
      onChange={(e) =>
        onPlace({ ...layout, [name]: Number(e.currentTarget.value) - (name === "x" || name === "y" ? 1 : 0) })
      }
    />
  );
  return (
    <Group title={text.place}>
      <div class="four">
        {field("x", text.column, 1, 12)}
        {field("y", text.row, 1, 999)}
        {field("w", text.width, 1, 12)}
        {field("h", text.height, 1, 40)}
      </div>
    </Group>
  );
}
