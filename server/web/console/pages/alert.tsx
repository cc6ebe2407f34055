// One alert rule: its sentence, its state for each customer, how often it would have fired, and its history.

import { useRoute } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { List } from "../ui/list";
import { Badge, Card, Empty, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Ago, number } from "../ui/time";
import { AlertForm, PreviewChart, previewOf } from "./alert_form";
import { sentenceOf, State } from "./alerts";

const text = texts.alerts;
type Alert = Schemas["Alert"];

export default function AlertPage() {
  const { params } = useRoute();
  const id = Number(params.id);
  const [isEditing, setEditing] = useState(false);
  const alert = useData(
    ["alerts", id],
    (signal) => answer(api.GET("/v1/alerts/{alert_id}", { signal, params: { path: { alert_id: id } } })),
    { every: 15_000 },
  );
  const back = { label: texts.menu.pages.alerts, href: address("alerts") };
  const value = alert.value;
  if (!value)
    return (
      <Page title={texts.menu.pages.alerts} back={back}>
        <Card label={text.rule}>
          {alert.error ? <Failed error={alert.error} onRetry={alert.reload} /> : <Loading />}
        </Card>
      </Page>
    );
  const isAdmin = may("admin");
  const test = async () => {
    const { deliveries } = await answer(api.POST("/v1/alerts/{alert_id}/test", { params: { path: { alert_id: id } } }));
    say(text.tested(deliveries.length, deliveries.filter(({ status }) => status === "failed").length));
  };
  return (
    <Page
      title={value.name}
      back={back}
      lead={
        <>
          <State alert={value} /> {text.fires} {sentenceOf(value)}.
        </>
      }
      actions={
        isAdmin && (
          <>
            <Button onClick={() => attempt(test)}>{text.test}</Button>
            <Button kind="primary" onClick={() => setEditing(true)}>
              {texts.actions.edit}
            </Button>
          </>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      {value.last_error && (
        <p class="fault" role="alert">
          {value.last_error}
        </p>
      )}
      <div class="split">
        <Card title={text.rule}>
          <Facts alert={value} />
        </Card>
        {isAdmin && (
          <Card title={text.course} lead={text.courseLead}>
            <Course alert={value} />
          </Card>
        )}
      </div>
      {value.tenants && value.tenants.length > 0 && (
        <Card title={text.tenants}>
          <ul class="rows">
            {value.tenants.map((tenant) => (
              <li key={tenant.tenant_id}>
                <b>{tenant.tenant_id}</b>
                <Badge tone={tenant.state === "firing" ? "bad" : "good"}>{text.states[tenant.state]}</Badge>
                <span>{tenant.last_value == null ? "" : number(tenant.last_value)}</span>
                <span class="muted">
                  <Ago at={tenant.state_since} />
                </span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <h2 class="section">{text.history}</h2>
      <History id={id} />
      {isEditing && <AlertForm alert={value} onClose={() => setEditing(false)} />}
    </Page>
  );
}

function Facts({ alert }: { alert: Alert }) {
  return (
    <dl class="facts">
      <dt>{text.since}</dt>
      <dd>
        <Ago at={alert.state_since} />
      </dd>
      <dt>{text.value}</dt>
      <dd>{alert.last_value == null ? text.notYet : number(alert.last_value)}</dd>
      <dt>{text.tenant}</dt>
      <dd>{alert.tenant_id ?? (alert.per_tenant ? text.eachTenant : text.allTenants)}</dd>
      <dt>{text.dashboard}</dt>
      <dd>
        <a href={address(`dashboards/${alert.dashboard_id}`)}>{text.openDashboard}</a>
      </dd>
      <dt>{text.mails}</dt>
      <dd>{alert.email_to.join(", ") || text.noMail}</dd>
      {alert.email_to.length > 0 && (
        <>
          <dt>{texts.language}</dt>
          <dd>{texts.languages[alert.locale]}</dd>
        </>
      )}
      <dt>{text.webhook}</dt>
      <dd>
        {alert.webhook_url ? <code>{alert.webhook_url}</code> : text.noWebhook}
        {alert.webhook_signed && <Badge>{text.signedYes}</Badge>}
      </dd>
    </dl>
  );
}

function Course({ alert }: { alert: Alert }) {
  const body = previewOf(alert);
  const preview = useData(["alert-preview", body], (signal) =>
    answer(api.POST("/v1/alerts/preview", { signal, body })),
  );
  if (preview.error) return <Failed error={preview.error} onRetry={preview.reload} />;
  if (!preview.value) return <Loading lines={4} />;
  return (
    <>
      <PreviewChart
        preview={preview.value}
        threshold={alert.condition_type === "threshold" && !alert.per_tenant ? (alert.threshold_value ?? null) : null}
      />
      <p class="note">{text.wouldHave(preview.value.fired)}</p>
    </>
  );
}

function History({ id }: { id: number }) {
  const events = useData(
    ["alert-events", id],
    (signal) => answer(api.GET("/v1/alerts/{alert_id}/events", { signal, params: { path: { alert_id: id } } })),
    { every: 15_000 },
  );
  return (
    <List
      data={events}
      label={text.history}
      rowKey={(event) => event.id}
      searched={(event) =>
        `${event.state} ${event.tenant_id ?? ""} ${event.reason ?? ""} ${event.deliveries.map(({ to }) => to).join(" ")}`
      }
      empty={<Empty title={text.noEvents} text={text.noEventsText} />}
      columns={[
        {
          title: text.state,
          cell: (event) => (
            <Badge tone={event.state === "firing" ? "bad" : "good"}>
              {text.eventStates[event.state] ?? event.state}
            </Badge>
          ),
        },
        { title: text.when, cell: (event) => <Ago at={event.created_at} /> },
        { title: text.tenant, cell: (event) => event.tenant_id ?? "" },
        { title: text.value, end: true, cell: (event) => (event.value == null ? "" : number(event.value)) },
        {
          title: text.thresholdValue,
          end: true,
          cell: (event) => (event.threshold_value == null ? "" : number(event.threshold_value)),
        },
        {
          title: text.deliveries,
          cell: (event) =>
            event.deliveries.map((delivery, at) => (
              <span key={at} title={delivery.error ?? delivery.to}>
                <Badge
                  tone={
                    delivery.status === "failed"
                      ? "bad"
                      : delivery.status === "succeeded" || delivery.status === "sent"
                        ? "good"
                        : "plain"
                  }
                >
                  {delivery.kind}
                </Badge>{" "}
              </span>
            )),
        },
        { title: text.reason, cell: (event) => event.reason ?? "" },
      ]}
    />
  );
}
