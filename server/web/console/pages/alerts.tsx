// Alert rules, each as a sentence, with its state.

import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, LinkButton } from "../ui/button";
import { Confirm } from "../ui/dialog";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Ago, number } from "../ui/time";
import { AlertForm } from "./alert_form";
import { switchRule } from "./rule_switch";

const text = texts.alerts;
type Alert = Schemas["Alert"];

export default function Alerts() {
  const [isMaking, setMaking] = useOpened("new", "admin");
  const [deleted, setDeleted] = useState<Alert | null>(null);
  const alerts = useData(["alerts"], (signal) => answer(api.GET("/v1/alerts", { signal })), { every: 15_000 });
  const isAdmin = may("admin");
  const toggle = (alert: Alert) =>
    switchRule(alert, text, async (enabled) => {
      const params = { path: { alert_id: alert.id } };
      await answer(api.PATCH("/v1/alerts/{alert_id}", { params, body: { enabled } }));
      await refresh("alerts");
    });
  return (
    <Page
      title={texts.menu.pages.alerts}
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
        data={alerts}
        label={texts.menu.pages.alerts}
        rowKey={(alert) => alert.id}
        searched={(alert) => `${alert.name} ${sentenceOf(alert)} ${alert.tenant_id ?? ""}`}
        empty={
          <Empty title={text.none} text={text.noneText}>
            {isAdmin ? (
              <Button kind="primary" onClick={() => setMaking(true)}>
                {text.make}
              </Button>
            ) : (
              <LinkButton href={address("dashboards")}>{texts.menu.pages.dashboards}</LinkButton>
            )}
          </Empty>
        }
        columns={[
          { title: text.state, cell: (alert) => <State alert={alert} /> },
          {
            title: text.name,
            cell: (alert) => (
              <>
                <a class="row-link" href={address(`alerts/${alert.id}`)}>
                  {alert.name}
                </a>
                <span class="under">{sentenceOf(alert)}</span>
              </>
            ),
          },
          {
            title: text.tenant,
            cell: (alert) =>
              alert.tenant_id ?? <span class="muted">{alert.per_tenant ? text.eachTenant : text.allTenants}</span>,
          },
          { title: text.value, end: true, cell: (alert) => (alert.last_value == null ? "" : number(alert.last_value)) },
          {
            title: text.looked,
            cell: (alert) =>
              alert.last_evaluated_at ? <Ago at={alert.last_evaluated_at} /> : <span class="muted">{text.notYet}</span>,
          },
          {
            title: texts.actions.more,
            silent: true,
            end: true,
            cell: (alert) =>
              isAdmin && (
                <Menu
                  label={texts.actions.of(alert.name)}
                  items={[
                    { label: alert.enabled ? text.pause : text.resume, act: () => attempt(() => toggle(alert)) },
                    { label: text.delete, danger: true, act: () => setDeleted(alert) },
                  ]}
                />
              ),
          },
        ]}
      />
      {isMaking && <AlertForm onClose={() => setMaking(false)} />}
      {deleted && (
        <Confirm
          title={text.deleteTitle(deleted.name)}
          text={text.deleteText}
          action={text.delete}
          onClose={() => setDeleted(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/alerts/{alert_id}", { params: { path: { alert_id: deleted.id } } }));
            say(text.deleted(deleted.name));
            await refresh("alerts");
          }}
        />
      )}
    </Page>
  );
}

export function State({ alert }: { alert: Alert }) {
  if (!alert.enabled) return <Badge>{text.states.paused}</Badge>;
  if (alert.last_error)
    return (
      <span title={alert.last_error}>
        <Badge tone="warn">{text.states.error}</Badge>
      </span>
    );
  return <Badge tone={alert.state === "firing" ? "bad" : "good"}>{text.states[alert.state]}</Badge>;
}

type Condition = Pick<Alert, "condition_type" | "lookback_minutes" | "for_minutes"> & {
  operator?: Alert["operator"];
  threshold_value?: Alert["threshold_value"];
};

/** A rule as people say it: "above 50 in the last 60 minutes". */
export function sentenceOf({
  condition_type: type,
  operator,
  threshold_value: threshold,
  lookback_minutes: minutes,
  for_minutes: pause,
}: Condition): string {
  const window = text.window(minutes);
  const held = pause ? text.held(pause) : "";
  if (type === "no_data") return text.noData(window) + held;
  const value = number(threshold ?? 0);
  const compared = text.operators[operator ?? "gt"];
  return (type === "delta" ? text.delta(compared, value, window) : text.threshold(compared, value, window)) + held;
}
