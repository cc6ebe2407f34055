// One report: its schedule, and every run with its deliveries.

import { useRoute } from "preact-iso";
import { useState } from "preact/hooks";
import { fileName, save } from "../../shared/file.js";
import { answer, api } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { Badge, Card, Empty, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Ago, bytes, fullTime } from "../ui/time";
import { RunStatus } from "./reports";
import { ReportForm } from "./report_form";
import { scheduleInWords } from "./schedule";

const text = texts.reports;

export default function ReportPage() {
  const { params } = useRoute();
  const id = Number(params.id);
  const [isEditing, setEditing] = useState(false);
  const report = useData(["reports", id], (signal) =>
    answer(api.GET("/v1/reports/{report_id}", { signal, params: { path: { report_id: id } } })),
  );
  const runs = useData(
    ["report-runs", id],
    (signal) => answer(api.GET("/v1/reports/{report_id}/runs", { signal, params: { path: { report_id: id } } })),
    { every: 5_000 },
  );
  const back = { label: texts.menu.pages.reports, href: address("reports") };
  const value = report.value;
  if (!value)
    return (
      <Page title={texts.menu.pages.reports} back={back}>
        <Card label={text.rule}>
          {report.error ? <Failed error={report.error} onRetry={report.reload} /> : <Loading />}
        </Card>
      </Page>
    );
  const isAdmin = may("admin");
  const run = async () => {
    await answer(api.POST("/v1/reports/{report_id}/run", { params: { path: { report_id: id } } }));
    say(text.started(value.name));
    await refresh("report-runs", "reports");
  };
  const download = async (tenant_id?: string) => {
    const params = { path: { report_id: id }, query: tenant_id ? { tenant_id } : {} };
    const file = await answer(api.GET("/v1/reports/{report_id}/file", { params, parseAs: "blob" }));
    save(file as Blob, fileName([value.name, tenant_id].filter(Boolean).join(" "), value.format));
  };
  return (
    <Page
      title={value.name}
      back={back}
      lead={scheduleInWords(value.schedule)}
      actions={
        isAdmin && (
          <>
            {value.burst.length > 0 ? (
              <Menu
                label={text.download}
                icon="down"
                items={value.burst.map(({ tenant_id }) => ({
                  label: text.fileOf(tenant_id),
                  act: () => attempt(() => download(tenant_id)),
                }))}
              />
            ) : (
              <Button onClick={() => attempt(() => download())}>{text.download}</Button>
            )}
            <Button onClick={() => attempt(run)}>{text.run}</Button>
            <Button kind="primary" onClick={() => setEditing(true)}>
              {texts.actions.edit}
            </Button>
          </>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      <Card title={text.rule}>
        <dl class="facts">
          <dt>{text.next}</dt>
          <dd>
            {!value.enabled
              ? text.off
              : value.next_runs.map((at) => (
                  <span key={at} class="under">
                    {fullTime(at)} (<Ago at={at} />)
                  </span>
                ))}
          </dd>
          <dt>{text.dashboard}</dt>
          <dd>
            <a href={address(`dashboards/${value.dashboard_id}`)}>{texts.alerts.openDashboard}</a>
          </dd>
          <dt>{text.format}</dt>
          <dd>{value.format.toUpperCase()}</dd>
          <dt>{texts.language}</dt>
          <dd>{texts.languages[value.locale]}</dd>
          <dt>{text.tenant}</dt>
          <dd>{value.tenant_id ?? text.allTenants}</dd>
          <dt>{text.recipients}</dt>
          <dd>{value.recipients.join(", ") || texts.alerts.noMail}</dd>
          {value.burst.map((share) => (
            <>
              <dt key={share.tenant_id}>{text.shareOf(share.tenant_id)}</dt>
              <dd>{share.recipients?.join(", ")}</dd>
            </>
          ))}
          <dt>{text.webhook}</dt>
          <dd>
            {value.webhook_url ? <code>{value.webhook_url}</code> : texts.alerts.noWebhook}
            {value.webhook_signed && <Badge>{texts.alerts.signedYes}</Badge>}
          </dd>
        </dl>
      </Card>
      <h2 class="section">{text.runs}</h2>
      <List
        data={runs}
        label={text.runs}
        rowKey={(one) => one.id}
        searched={(one) =>
          `${text.statuses[one.status]} ${one.error ?? ""} ${one.deliveries.map(({ to }) => to).join(" ")}`
        }
        empty={<Empty title={text.noRuns} text={text.noRunsText} />}
        columns={[
          { title: text.status, cell: (one) => <RunStatus run={one} /> },
          { title: text.when, cell: (one) => <Ago at={one.started_at ?? one.scheduled_for} /> },
          { title: text.trigger, cell: (one) => text.triggers[one.trigger] ?? one.trigger },
          { title: text.size, end: true, cell: (one) => (one.bytes == null ? "" : bytes(one.bytes)) },
          {
            title: text.deliveries,
            cell: (one) =>
              one.deliveries.map((delivery, at) => (
                <span key={at} class="under">
                  <Badge tone={delivery.status === "failed" ? "bad" : delivery.status === "sent" ? "good" : "plain"}>
                    {delivery.kind}
                  </Badge>{" "}
                  {delivery.to}
                  {delivery.error && <span class="bad"> {delivery.error}</span>}
                </span>
              )),
          },
          { title: text.error, cell: (one) => one.error ?? "" },
        ]}
      />
      {isEditing && (
        <Dialog title={value.name} onClose={() => setEditing(false)}>
          <ReportForm report={value} onDone={() => setEditing(false)} />
        </Dialog>
      )}
    </Page>
  );
}
