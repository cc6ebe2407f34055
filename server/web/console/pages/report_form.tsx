// A scheduled report as a form, for a new one and for one that is changed.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { addressesOf, Check, Field, Select, Submit, TextArea, useForm } from "../ui/form";
import { SecretOnce } from "../ui/secret";
import { LONG_PERIODS } from "./query_names";
import { scheduleOf, timesOf, type Times } from "./schedule";
import { ScheduleFields } from "./schedule_fields";

const text = texts.reports;

export function ReportForm({ report, onDone }: { report?: Schemas["Report"]; onDone: () => void }) {
  const { query, route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const [times, setTimes] = useState(() => timesOf(report?.schedule, Intl.DateTimeFormat().resolvedOptions().timeZone));
  // An untouched schedule is not sent: the fields may express it in another form.
  const [isRescheduled, setRescheduled] = useState(!report);
  const changeTimes = (part: Partial<Times>) => {
    setTimes((before) => ({ ...before, ...part }));
    setRescheduled(true);
  };
  const [url, setUrl] = useState(report?.webhook_url ?? "");
  const [saved, setSaved] = useState<Schemas["Report"] | null>(null);
  const done = ({ id }: Schemas["Report"]) => {
    onDone();
    if (!report) route(address(`reports/${id}`));
  };
  const form = useForm(async (value) => {
    const common = {
      name: value("name"),
      format: value("format") as Schemas["ReportFormat"],
      recipients: addressesOf(value("recipients")),
      webhook_url: url || null,
      ...(url ? { webhook_signed: value("webhook_signed") === "on" } : {}),
      period: value("period") || null,
      tenant_id: value("tenant_id") || null,
      locale: value("locale") as Schemas["Locale"],
    };
    const schedule = scheduleOf(times);
    const saved = report
      ? await answer(
          api.PATCH("/v1/reports/{report_id}", {
            params: { path: { report_id: report.id } },
            body: {
              ...common,
              ...(isRescheduled ? { schedule } : {}),
              rotate_webhook_secret: value("rotate_webhook_secret") === "on",
            },
          }),
        )
      : await answer(api.POST("/v1/reports", { body: { ...common, schedule, dashboard_id: value("dashboard_id") } }));
    say(report ? text.saved(saved.name) : text.made(saved.name));
    await refresh("reports");
    if (saved.webhook_secret) setSaved(saved);
    else done(saved);
  });
  if (saved?.webhook_secret) {
    const { title, text, copy } = texts.secrets;
    return (
      <SecretOnce title={title} text={text} secret={saved.webhook_secret} copy={copy} onClose={() => done(saved)} />
    );
  }
  const periods = [...new Set<string>(["", ...LONG_PERIODS, ...(report?.period ? [report.period] : [])])];
  const options = (dashboards.value?.data ?? []).map(({ id, name }) => [id, name] as const);
  return (
    <form {...form.props}>
      {!report && (
        <Select
          in={form}
          name="dashboard_id"
          label={text.dashboard}
          autofocus
          options={options}
          defaultValue={query.dashboard}
          key={String(options.length)}
        />
      )}
      <Field in={form} name="name" label={text.name} defaultValue={report?.name} required maxLength={200} autofocus />
      <ScheduleFields in={form} times={times} change={changeTimes} />
      <div class="sentence-fields">
        <Select
          in={form}
          name="format"
          label={text.format}
          defaultValue={report?.format ?? "pdf"}
          options={[
            ["pdf", "PDF"],
            ["png", "PNG"],
            ["csv", "CSV"],
          ]}
        />
        <Select
          in={form}
          name="period"
          label={text.period}
          defaultValue={report?.period ?? ""}
          options={periods.map((period) => [period, period || text.ownPeriod] as const)}
        />
        <Field
          in={form}
          name="tenant_id"
          label={text.tenant}
          placeholder={text.allTenants}
          defaultValue={report?.tenant_id ?? ""}
          autocomplete="off"
        />
        <Select
          in={form}
          name="locale"
          label={texts.language}
          defaultValue={report?.locale ?? "en"}
          options={Object.entries(texts.languages)}
        />
      </div>
      <TextArea
        in={form}
        name="recipients"
        label={text.recipients}
        hint={text.recipientsHint}
        defaultValue={report?.recipients.join("\n")}
      />
      <Field
        in={form}
        name="webhook_url"
        label={text.webhook}
        type="url"
        placeholder="https://"
        value={url}
        onInput={(event) => setUrl(event.currentTarget.value)}
      />
      {url && (
        <Check name="webhook_signed" label={texts.alerts.signed} defaultChecked={report?.webhook_signed ?? false} />
      )}
      {url && report?.webhook_signed && (
        <Check name="rotate_webhook_secret" label={texts.alerts.rotateSecret} hint={texts.alerts.rotateSecretHint} />
      )}
      <div class="foot">
        <button type="button" class="button plain" onClick={onDone}>
          {texts.actions.cancel}
        </button>
        <Submit form={form}>{report ? texts.actions.save : text.make}</Submit>
      </div>
    </form>
  );
}
