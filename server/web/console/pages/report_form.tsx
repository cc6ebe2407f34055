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
import { cronOf, scheduleInWords, type Every } from "./schedule";

const text = texts.reports;
const times = texts.schedule;
const EVERY: readonly (Every | "cron")[] = ["day", "weekday", "week", "month", "hour", "cron"];
const PERIODS = ["", ...LONG_PERIODS] as const;

export function ReportForm({ report, onDone }: { report?: Schemas["Report"]; onDone: () => void }) {
  const { query, route } = useLocation();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const before = report && typeof report.schedule === "object" ? report.schedule : null;
  const [every, setEvery] = useState<Every | "cron">(before ? "cron" : "week");
  const [clock, setClock] = useState("08:00");
  const [weekday, setWeekday] = useState("1");
  const [monthday, setMonthday] = useState("1");
  const [cron, setCron] = useState(before?.cron ?? "0 8 * * 1");
  const [zone, setZone] = useState(before?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [hour = 8, minute = 0] = clock.split(":").map(Number);
  const schedule = {
    cron: every === "cron" ? cron : cronOf(every, hour, minute, Number(weekday), Number(monthday)),
    timezone: zone,
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
      schedule,
      recipients: addressesOf(value("recipients")),
      webhook_url: url || null,
      webhook_signed: url !== "" && value("webhook_signed") === "on",
      period: value("period") || null,
      tenant_id: value("tenant_id") || null,
    };
    const saved = report
      ? await answer(api.PATCH("/v1/reports/{report_id}", { params: { path: { report_id: report.id } }, body: common }))
      : await answer(api.POST("/v1/reports", { body: { ...common, dashboard_id: value("dashboard_id") } }));
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
      <div class="sentence-fields">
        <Select
          name="every"
          label={times.every}
          value={every}
          options={EVERY.map((one) => [one, times.everies[one]] as const)}
          onChange={(event) => setEvery(event.currentTarget.value as Every)}
        />
        {every === "week" && (
          <Select
            name="weekday"
            label={times.weekday}
            value={weekday}
            options={times.days.map((name, day) => [String(day), name] as const)}
            onChange={(event) => setWeekday(event.currentTarget.value)}
          />
        )}
        {every === "month" && (
          <Field
            name="monthday"
            label={times.monthday}
            type="number"
            min={1}
            max={28}
            value={monthday}
            onInput={(event) => setMonthday(event.currentTarget.value)}
          />
        )}
        {every !== "cron" && every !== "hour" && (
          <Field
            name="clock"
            label={times.clock}
            type="time"
            required
            value={clock}
            onInput={(event) => setClock(event.currentTarget.value)}
          />
        )}
        {every === "cron" && (
          <Field
            in={form}
            name="schedule"
            label={times.cronLabel}
            required
            value={cron}
            onInput={(event) => setCron(event.currentTarget.value)}
          />
        )}
        <Field
          name="zone"
          label={times.zone}
          required
          value={zone}
          list="report-zones"
          onInput={(event) => setZone(event.currentTarget.value)}
        />
        <datalist id="report-zones">
          {Intl.supportedValuesOf("timeZone").map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <p class="note" role="status">
        {scheduleInWords(schedule)}
      </p>
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
          options={PERIODS.map((period) => [period, period || text.ownPeriod] as const)}
        />
        <Field
          in={form}
          name="tenant_id"
          label={text.tenant}
          placeholder={text.allTenants}
          defaultValue={report?.tenant_id ?? ""}
          autocomplete="off"
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
      <div class="foot">
        <button type="button" class="button plain" onClick={onDone}>
          {texts.actions.cancel}
        </button>
        <Submit form={form}>{report ? texts.actions.save : text.make}</Submit>
      </div>
    </form>
  );
}
