// A new alert rule: which number of which dashboard, when it is too much, and who is to know; and, as the rule is
// written, when it would have fired in the last thirty days.

import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, LinkButton } from "../ui/button";
import { Chart } from "../ui/chart";
import { Dialog } from "../ui/dialog";
import { addressesOf, Check, Field, Select, Submit, TextArea, useForm } from "../ui/form";
import { Empty, Loading } from "../ui/page";
import { sentenceOf } from "./alerts";

const text = texts.alerts;
const OPERATORS = ["gt", "gte", "lt", "lte", "eq", "neq"] as const;
const PREVIEW_AFTER_MS = 400;

type Condition = Pick<Schemas["CreateAlert"], "condition_type"> & {
  operator: Schemas["Operator"];
  threshold: string;
  lookback: string;
  pause: string;
  tenant: string;
};

export function AlertForm({ onClose }: { onClose: () => void }) {
  const { query, route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const choices = (dashboards.value?.data ?? []).flatMap((dashboard) =>
    dashboard.widgets.filter(isWatchable).map((widget) => ({ dashboard, widget, id: `${dashboard.id}/${widget.id}` })),
  );
  const [chosen, choose] = useState(query.widget ?? "");
  const at = choices.find(({ id }) => id === chosen) ?? choices[0];
  const [condition, setCondition] = useState<Condition>({
    condition_type: "threshold",
    operator: "gt",
    threshold: "100",
    lookback: "60",
    pause: "0",
    tenant: "",
  });
  const set = (part: Partial<Condition>) => setCondition((before) => ({ ...before, ...part }));
  const form = useForm(async (value) => {
    if (!at) return;
    const made = await answer(
      api.POST("/v1/alerts", {
        body: {
          ...bodyOf(at.dashboard.id, at.widget.id, condition),
          name: value("name"),
          email_to: addressesOf(value("email_to")),
          per_tenant: value("per_tenant") === "on",
          ...(value("webhook_url")
            ? { webhook_url: value("webhook_url"), webhook_signed: value("webhook_signed") === "on" }
            : {}),
        },
      }),
    );
    await refresh("alerts");
    say(text.made(made.name));
    onClose();
    route(address(`alerts/${made.id}`));
  });
  return (
    <Dialog title={text.make} onClose={onClose} wide>
      {dashboards.isLoading && <Loading />}
      {dashboards.value && !at && (
        <Empty title={text.noWidget} text={text.noWidgetText}>
          <LinkButton kind="primary" href={address("dashboards")}>
            {texts.menu.pages.dashboards}
          </LinkButton>
        </Empty>
      )}
      {at && (
        <form {...form.props}>
          <Select
            in={form}
            name="widget_id"
            label={text.widget}
            autofocus
            value={at.id}
            options={choices.map(({ id, dashboard, widget }) => [id, `${dashboard.name} · ${widget.title}`] as const)}
            onChange={(event) => choose(event.currentTarget.value)}
          />
          <div class="sentence-fields">
            <Select
              in={form}
              name="condition_type"
              label={text.condition}
              value={condition.condition_type}
              options={[
                ["threshold", text.types.threshold],
                ["delta", text.types.delta],
                ["no_data", text.types.no_data],
              ]}
              onChange={(event) => set({ condition_type: event.currentTarget.value as Condition["condition_type"] })}
            />
            {condition.condition_type !== "no_data" && (
              <>
                <Select
                  in={form}
                  name="operator"
                  label={text.operator}
                  value={condition.operator}
                  options={OPERATORS.map((one) => [one, text.operators[one]] as const)}
                  onChange={(event) => set({ operator: event.currentTarget.value as Schemas["Operator"] })}
                />
                <Field
                  in={form}
                  name="threshold_value"
                  label={condition.condition_type === "delta" ? text.percent : text.thresholdValue}
                  type="number"
                  step="any"
                  required
                  value={condition.threshold}
                  onInput={(event) => set({ threshold: event.currentTarget.value })}
                />
              </>
            )}
            <Field
              in={form}
              name="lookback_minutes"
              label={text.minutes}
              type="number"
              min={1}
              max={129600}
              required
              value={condition.lookback}
              onInput={(event) => set({ lookback: event.currentTarget.value })}
            />
            <Field
              in={form}
              name="for_minutes"
              label={text.forMinutes}
              type="number"
              min={0}
              value={condition.pause}
              onInput={(event) => set({ pause: event.currentTarget.value })}
            />
            <Field
              in={form}
              name="tenant_id"
              label={text.tenant}
              placeholder={text.allTenants}
              value={condition.tenant}
              onInput={(event) => set({ tenant: event.currentTarget.value })}
              autocomplete="off"
            />
          </div>
          <Preview dashboard={at.dashboard.id} widget={at.widget.id} condition={condition} />
          <Field
            in={form}
            name="name"
            label={text.name}
            required
            maxLength={200}
            key={at.id}
            defaultValue={at.widget.title}
          />
          <TextArea in={form} name="email_to" label={text.mails} hint={text.mailsHint} rows={2} />
          <Field in={form} name="webhook_url" label={text.webhook} type="url" placeholder="https://" />
          <Check name="webhook_signed" label={text.signed} />
          {!condition.tenant && <Check name="per_tenant" label={text.perTenant} hint={text.perTenantHint} />}
          <div class="foot">
            <Button onClick={onClose}>{texts.actions.cancel}</Button>
            <Submit form={form}>{text.make}</Submit>
          </div>
        </form>
      )}
    </Dialog>
  );
}

/** A rule needs one number, so text, tables and funnels cannot be watched. */
const isWatchable = ({ kind }: Schemas["Widget"]) => !["text", "table", "funnel"].includes(kind);

function bodyOf(
  dashboard_id: string,
  widget_id: string,
  { condition_type, operator, threshold, lookback, pause, tenant }: Condition,
) {
  return {
    dashboard_id,
    widget_id,
    condition_type,
    lookback_minutes: Number(lookback),
    for_minutes: Number(pause),
    ...(condition_type === "no_data" ? {} : { operator, threshold_value: Number(threshold) }),
    ...(tenant ? { tenant_id: tenant } : {}),
  };
}

function Preview({ dashboard, widget, condition }: { dashboard: string; widget: string; condition: Condition }) {
  const body = bodyOf(dashboard, widget, condition);
  const key = JSON.stringify(body);
  const [asked, setAsked] = useState(key);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(key), PREVIEW_AFTER_MS);
    return () => clearTimeout(timer);
  }, [key]);
  const preview = useData(
    ["alert-preview", asked],
    (signal) => answer(api.POST("/v1/alerts/preview", { signal, body: JSON.parse(asked) })),
    { keeps: true },
  );
  const sentence = sentenceOf({
    condition_type: condition.condition_type,
    operator: condition.operator,
    threshold_value: Number(condition.threshold),
    lookback_minutes: Number(condition.lookback),
    for_minutes: Number(condition.pause),
  });
  return (
    <div class="preview">
      <p>
        <b>{text.fires}</b> {sentence}.
      </p>
      {preview.error && (
        <p class="fault" role="alert">
          {preview.error.message}
        </p>
      )}
      {preview.value && (
        <>
          <PreviewChart
            preview={preview.value}
            threshold={condition.condition_type === "threshold" ? Number(condition.threshold) : null}
          />
          <p class="note" role="status">
            {text.wouldHave(preview.value.fired)}
          </p>
        </>
      )}
    </div>
  );
}

/** The course of the value, and beside it the threshold as a second line. */
export function PreviewChart({ preview, threshold }: { preview: Schemas["AlertPreview"]; threshold: number | null }) {
  const rows = preview.points.flatMap(({ at, value }) => [
    { bucket: at, group: text.valueLine, value: value ?? null },
    ...(threshold === null ? [] : [{ bucket: at, group: text.thresholdLine, value: threshold }]),
  ]);
  return (
    <Chart
      kind="line"
      title={text.course}
      height={180}
      query={{ metric: "avg", group_by: "line", granularity: "hour", limit: 2 }}
      answer={{ data: rows, meta: { metric: "avg", granularity: "hour", group_by: "line" } }}
    />
  );
}
