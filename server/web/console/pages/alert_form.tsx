// An alert rule as a form, for a new one and for one that is changed: widget, condition and
// recipients; and, while it is edited, a preview of when it would have fired in the last thirty days.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, LinkButton } from "../ui/button";
import { Chart } from "../ui/chart";
import { Dialog } from "../ui/dialog";
import { addressesOf, Check, Field, Select, Submit, TextArea, useForm } from "../ui/form";
import { Empty, Failed, Loading } from "../ui/page";
import { SecretOnce } from "../ui/secret";
import { useDebounced } from "../state/debounced";
import { sentenceOf } from "./alerts";

const text = texts.alerts;
type Alert = Schemas["Alert"];

const OPERATORS = ["gt", "gte", "lt", "lte", "eq", "neq"] as const;

/** The fields that decide when a rule fires, as they are typed. */
interface Condition {
  condition_type: Alert["condition_type"];
  operator: Schemas["Operator"];
  threshold: string;
  recovery: string;
  lookback: string;
  pause: string;
  tenant: string;
}

const conditionOf = (alert: Omit<Alert, keyof Watched> | undefined): Condition => ({
  condition_type: alert?.condition_type ?? "threshold",
  operator: alert?.operator ?? "gt",
  threshold: String(alert?.threshold_value ?? 100),
  recovery: String(alert?.recovery_threshold ?? ""),
  lookback: String(alert?.lookback_minutes ?? 60),
  pause: String(alert?.for_minutes ?? 0),
  tenant: alert?.tenant_id ?? "",
});

/** The fields of a rule that can be changed after its creation. */
const changesOf = ({ condition_type, operator, threshold, recovery, lookback, pause }: Condition) => ({
  lookback_minutes: Number(lookback),
  for_minutes: Number(pause),
  ...(condition_type === "no_data"
    ? {}
    : {
        operator,
        threshold_value: Number(threshold),
        recovery_threshold: recovery === "" ? null : Number(recovery),
      }),
});

interface Watched {
  dashboard_id: string;
  widget_id: string;
}

const bodyOf = (watched: Watched, condition: Condition) => ({
  ...watched,
  condition_type: condition.condition_type,
  ...changesOf(condition),
  ...(condition.tenant ? { tenant_id: condition.tenant } : {}),
});

/** The preview request of a stored rule. */
export const previewOf = ({ dashboard_id, widget_id, ...alert }: Alert) => ({
  ...bodyOf({ dashboard_id, widget_id }, conditionOf(alert)),
  per_tenant: alert.per_tenant,
});

/** `alert` is the rule that is changed; its widget and its tenants cannot be. */
export function AlertForm({ alert, onClose }: { alert?: Alert; onClose: () => void }) {
  const { query, route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })), {
    enabled: !alert,
  });
  const choices = (dashboards.value?.data ?? []).flatMap((dashboard) =>
    dashboard.widgets.filter(isWatchable).map((widget) => ({ dashboard, widget, id: `${dashboard.id}/${widget.id}` })),
  );
  const [chosenId, setChosenId] = useState(query.widget ?? "");
  const chosen = choices.find(({ id }) => id === chosenId) ?? choices[0];
  const watched: Watched | undefined =
    alert ?? (chosen && { dashboard_id: chosen.dashboard.id, widget_id: chosen.widget.id });
  const [condition, setCondition] = useState(() => conditionOf(alert));
  const [receivers, setReceivers] = useState({ mail: alert?.email_to.join("\n") ?? "", url: alert?.webhook_url ?? "" });
  const [saved, setSaved] = useState<Alert | null>(null);
  const change = (part: Partial<Condition>) => setCondition((before) => ({ ...before, ...part }));
  const close = (rule: Alert) => {
    onClose();
    if (!alert) route(address(`alerts/${rule.id}`));
  };
  const form = useForm(async (value) => {
    if (!watched) return;
    const recipients = {
      name: value("name"),
      email_to: addressesOf(receivers.mail),
      webhook_url: receivers.url || null,
      ...(receivers.mail.trim() ? { locale: value("locale") as Schemas["Locale"] } : {}),
      // Without an address a secret stays as it is.
      ...(receivers.url ? { webhook_signed: value("webhook_signed") === "on" } : {}),
    };
    const rule = alert
      ? await answer(
          api.PATCH("/v1/alerts/{alert_id}", {
            params: { path: { alert_id: alert.id } },
            body: {
              ...changesOf(condition),
              ...recipients,
              rotate_webhook_secret: value("rotate_webhook_secret") === "on",
            },
          }),
        )
      : await answer(
          api.POST("/v1/alerts", {
            body: { ...bodyOf(watched, condition), ...recipients, per_tenant: value("per_tenant") === "on" },
          }),
        );
    await refresh("alerts", "alert-events");
    say(alert ? text.savedRule : text.made(rule.name));
    if (rule.webhook_secret) setSaved(rule);
    else close(rule);
  });
  if (saved?.webhook_secret) {
    const { title, text, copy } = texts.secrets;
    return (
      <SecretOnce title={title} text={text} secret={saved.webhook_secret} copy={copy} onClose={() => close(saved)} />
    );
  }
  return (
    <Dialog title={alert?.name ?? text.make} onClose={onClose} wide>
      {dashboards.isLoading && <Loading />}
      {dashboards.error && <Failed error={dashboards.error} onRetry={dashboards.reload} />}
      {!watched && dashboards.value && (
        <Empty title={text.noWidget} text={text.noWidgetText}>
          <LinkButton kind="primary" href={address("dashboards")}>
            {texts.menu.pages.dashboards}
          </LinkButton>
        </Empty>
      )}
      {watched && (
        <form {...form.props}>
          {chosen && (
            <Select
              in={form}
              name="widget_id"
              label={text.widget}
              autofocus
              value={chosen.id}
              options={choices.map(({ id, dashboard, widget }) => [id, `${dashboard.name} · ${widget.title}`] as const)}
              onChange={(event) => setChosenId(event.currentTarget.value)}
            />
          )}
          <ConditionFields in={form} condition={condition} isNew={!alert} change={change} />
          <Preview watched={watched} condition={condition} />
          <Field
            in={form}
            name="name"
            label={text.name}
            required
            maxLength={200}
            key={watched.widget_id}
            defaultValue={alert?.name ?? chosen?.widget.title}
          />
          <TextArea
            in={form}
            name="email_to"
            label={text.mails}
            hint={text.mailsHint}
            rows={2}
            value={receivers.mail}
            onInput={(event) => setReceivers({ ...receivers, mail: event.currentTarget.value })}
          />
          {receivers.mail.trim() && (
            <Select
              in={form}
              name="locale"
              label={texts.language}
              defaultValue={alert?.locale ?? "en"}
              options={Object.entries(texts.languages)}
            />
          )}
          <Field
            in={form}
            name="webhook_url"
            label={text.webhook}
            type="url"
            placeholder="https://"
            value={receivers.url}
            onInput={(event) => setReceivers({ ...receivers, url: event.currentTarget.value })}
          />
          {receivers.url && (
            <Check name="webhook_signed" label={text.signed} defaultChecked={alert?.webhook_signed ?? false} />
          )}
          {receivers.url && alert?.webhook_signed && (
            <Check name="rotate_webhook_secret" label={text.rotateSecret} hint={text.rotateSecretHint} />
          )}
          {!alert && !condition.tenant && <Check name="per_tenant" label={text.perTenant} hint={text.perTenantHint} />}
          {!receivers.mail.trim() && !receivers.url && (
            <p class="note" role="status">
              {text.silent}
            </p>
          )}
          <div class="foot">
            <Button onClick={onClose}>{texts.actions.cancel}</Button>
            <Submit form={form}>{alert ? texts.actions.save : text.make}</Submit>
          </div>
        </form>
      )}
    </Dialog>
  );
}

/** A rule needs one number, so text, tables and funnels cannot be watched. */
const isWatchable = ({ kind }: Schemas["Widget"]) => !["text", "table", "funnel"].includes(kind);

interface ConditionProps {
  in: ReturnType<typeof useForm>;
  condition: Condition;
  isNew: boolean;
  change: (part: Partial<Condition>) => void;
}

function ConditionFields({ in: form, condition, isNew, change }: ConditionProps) {
  const { condition_type } = condition;
  return (
    <div class="sentence-fields">
      {isNew && (
        <Select
          in={form}
          name="condition_type"
          label={text.condition}
          value={condition_type}
          options={[
            ["threshold", text.types.threshold],
            ["delta", text.types.delta],
            ["no_data", text.types.no_data],
          ]}
          onChange={(event) => change({ condition_type: event.currentTarget.value as Condition["condition_type"] })}
        />
      )}
      {condition_type !== "no_data" && (
        <>
          <Select
            in={form}
            name="operator"
            label={text.operator}
            value={condition.operator}
            options={OPERATORS.map((one) => [one, text.operators[one]] as const)}
            onChange={(event) => change({ operator: event.currentTarget.value as Schemas["Operator"] })}
          />
          <Field
            in={form}
            name="threshold_value"
            label={condition_type === "delta" ? text.percent : text.thresholdValue}
            type="number"
            step="any"
            required
            value={condition.threshold}
            onInput={(event) => change({ threshold: event.currentTarget.value })}
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
        onInput={(event) => change({ lookback: event.currentTarget.value })}
      />
      <Field
        in={form}
        name="for_minutes"
        label={text.forMinutes}
        type="number"
        min={0}
        max={1440}
        value={condition.pause}
        onInput={(event) => change({ pause: event.currentTarget.value })}
      />
      {condition_type !== "no_data" && (
        <Field
          in={form}
          name="recovery_threshold"
          label={text.recovery}
          type="number"
          step="any"
          value={condition.recovery}
          onInput={(event) => change({ recovery: event.currentTarget.value })}
        />
      )}
      {isNew && (
        <Field
          in={form}
          name="tenant_id"
          label={text.tenant}
          placeholder={text.allTenants}
          value={condition.tenant}
          onInput={(event) => change({ tenant: event.currentTarget.value })}
          autocomplete="off"
        />
      )}
    </div>
  );
}

function Preview({ watched, condition }: { watched: Watched; condition: Condition }) {
  const { dashboard_id, widget_id } = watched;
  const asked = useDebounced(JSON.stringify(bodyOf({ dashboard_id, widget_id }, condition)));
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

/** The course of the value, with the threshold as a line across it. */
export function PreviewChart({ preview, threshold }: { preview: Schemas["AlertPreview"]; threshold: number | null }) {
  const rows = preview.points.map(({ at, value }) => ({ bucket: at, value: value ?? null }));
  return (
    <Chart
      kind="line"
      title={text.valueLine}
      height={180}
      query={{ metric: "avg", granularity: "hour" }}
      viz={threshold === null ? {} : { thresholds: [{ value: threshold, label: text.thresholdLine, tone: "bad" }] }}
      answer={{ data: rows, meta: { metric: "avg", granularity: "hour" } }}
    />
  );
}
