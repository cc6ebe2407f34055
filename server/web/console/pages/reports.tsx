// Scheduled reports: recipients, next run and last run.

import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Ago } from "../ui/time";
import { ReportForm } from "./report_form";
import { switchRule } from "./rule_switch";
import { scheduleInWords } from "./schedule";

const text = texts.reports;
type Report = Schemas["Report"];

export default function Reports() {
  const [isMaking, setMaking] = useOpened("new", "admin");
  const [deleted, setDeleted] = useState<Report | null>(null);
  const reports = useData(["reports"], (signal) => answer(api.GET("/v1/reports", { signal })));
  const isAdmin = may("admin");
  const run = async (report: Report) => {
    await answer(api.POST("/v1/reports/{report_id}/run", { params: { path: { report_id: report.id } } }));
    say(text.started(report.name));
    await refresh("reports", "report-runs");
  };
  const toggle = (report: Report) =>
    switchRule(report, text, async (enabled) => {
      const params = { path: { report_id: report.id } };
      await answer(api.PATCH("/v1/reports/{report_id}", { params, body: { enabled } }));
      await refresh("reports");
    });
  return (
    <Page
      title={texts.menu.pages.reports}
      lead={text.lead}
      actions={
        isAdmin && (
          <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
            {text.make}
          </Button>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      <List
        data={reports}
        label={texts.menu.pages.reports}
        rowKey={(report) => report.id}
        searched={(report) => `${report.name} ${report.recipients.join(" ")} ${report.tenant_id ?? ""}`}
        empty={
          <Empty title={text.none} text={text.noneText}>
            {isAdmin && (
              <Button kind="primary" onClick={() => setMaking(true)}>
                {text.make}
              </Button>
            )}
          </Empty>
        }
        columns={[
          {
            title: text.name,
            cell: (report) => (
              <>
                <a class="row-link" href={address(`reports/${report.id}`)}>
                  {report.name}
                </a>
                <span class="under">{scheduleInWords(report.schedule)}</span>
              </>
            ),
          },
          { title: text.format, cell: (report) => <Badge>{report.format.toUpperCase()}</Badge> },
          {
            title: text.to,
            cell: (report) =>
              text.receivers(
                report.recipients.length +
                  report.burst.reduce((sum, share) => sum + (share.recipients?.length ?? 0), 0),
                report.webhook_url != null,
              ),
          },
          {
            title: text.next,
            cell: (report) =>
              !report.enabled ? <Badge>{text.off}</Badge> : report.next_run_at ? <Ago at={report.next_run_at} /> : "",
          },
          {
            title: text.last,
            cell: (report) =>
              report.last_run ? <RunStatus run={report.last_run} /> : <span class="muted">{text.notYet}</span>,
          },
          {
            title: texts.actions.more,
            silent: true,
            end: true,
            cell: (report) =>
              isAdmin && (
                <Menu
                  label={texts.actions.of(report.name)}
                  items={[
                    { label: text.run, act: () => attempt(() => run(report)) },
                    { label: report.enabled ? text.pause : text.resume, act: () => attempt(() => toggle(report)) },
                    { label: text.delete, danger: true, act: () => setDeleted(report) },
                  ]}
                />
              ),
          },
        ]}
      />
      {isMaking && (
        <Dialog title={text.make} onClose={() => setMaking(false)}>
          <ReportForm onDone={() => setMaking(false)} />
        </Dialog>
      )}
      {deleted && (
        <Confirm
          title={text.deleteTitle(deleted.name)}
          text={text.deleteText}
          action={text.delete}
          onClose={() => setDeleted(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/reports/{report_id}", { params: { path: { report_id: deleted.id } } }));
            say(text.deleted(deleted.name));
            await refresh("reports");
          }}
        />
      )}
    </Page>
  );
}

export function RunStatus({ run }: { run: Schemas["ReportRun"] }) {
  const tone = { running: "plain", succeeded: "good", partial: "warn", failed: "bad", skipped: "plain" } as const;
  return (
    <span title={run.error ?? undefined}>
      <Badge tone={tone[run.status]}>{text.statuses[run.status]}</Badge>
    </span>
  );
}
