// Usage and billing: usage against the limits of the plan, the plans side by side, and the billing portal.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, ApiError, type Schemas } from "../api/client";
import { useData } from "../api/cache";
import { boot } from "../boot";
import { may } from "../state/session";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Chart } from "../ui/chart";
import { Badge, Card, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { number, shortNumber, day } from "../ui/time";
import { LONG_PERIODS } from "./query_names";

const text = texts.usage;
type Period = (typeof LONG_PERIODS)[number];

export default function Usage() {
  const { query, path, route } = useLocation();
  const period = LONG_PERIODS.find((one) => one === query.period) ?? "30d";
  const choose = (next: Period) => route(`${path}?${new URLSearchParams({ ...query, period: next })}`, true);
  const usage = useData(
    ["usage", period],
    (signal) => answer(api.GET("/v1/usage", { signal, params: { query: { period } } })),
    { keeps: true },
  );
  const value = usage.value;
  return (
    <Page
      title={texts.menu.pages.usage}
      actions={<Tabs label={text.period} names={LONG_PERIODS} chosen={period} onChoose={choose} />}
    >
      {usage.isLoading && (
        <Card label={texts.menu.pages.usage}>
          <Loading />
        </Card>
      )}
      {usage.error && !value && (
        <Card label={texts.menu.pages.usage}>
          <Failed error={usage.error} onRetry={usage.reload} />
        </Card>
      )}
      {value && (
        <>
          <div class="figures">
            <Figure label={text.events} value={value.events.used} limit={value.events.limit} />
            <Figure label={text.queries} value={value.queries} />
            <Figure label={text.views} value={value.embed_views} />
            <Figure label={text.sessions} value={value.embed_sessions} />
          </div>
          <div class="split">
            <Card title={text.byDay}>
              <Chart
                kind="bar"
                title={text.byDay}
                height={220}
                query={{ metric: "count", granularity: "day" }}
                answer={{
                  data: value.by_day.map(({ date, events }) => ({ bucket: `${date}T00:00:00.000Z`, value: events })),
                  meta: { metric: "count", granularity: "day" },
                }}
              />
            </Card>
            <Card title={text.tenants}>
              <Chart
                kind="bar_list"
                title={text.tenants}
                height={220}
                query={{ metric: "count", group_by: "tenant_id", limit: 8 }}
                answer={{
                  data: value.top_tenants.map(({ tenant_id, events }) => ({ group: tenant_id, value: events })),
                  meta: { metric: "count", group_by: "tenant_id" },
                }}
              />
            </Card>
          </div>
        </>
      )}
      <Plans />
    </Page>
  );
}

function Figure({ label, value, limit }: { label: string; value: number; limit?: number | null | undefined }) {
  const share = limit ? value / limit : 0;
  return (
    <div class="box figure">
      <p>{label}</p>
      <b title={number(value)}>{shortNumber(value)}</b>
      {limit != null && (
        <meter
          class="meter"
          min={0}
          max={limit}
          high={limit * 0.9}
          value={Math.min(value, limit)}
          aria-label={text.ofLimit(number(value), number(limit))}
        />
      )}
      {limit !== undefined && (
        <p class={share >= 0.9 ? "warn" : "muted"}>
          {limit == null ? text.unlimited : text.ofLimit(number(value), number(limit))}
        </p>
      )}
    </div>
  );
}

function Plans() {
  const isAdmin = may("admin");
  const billing = useData(["billing"], (signal) => answer(api.GET("/v1/billing", { signal })), { enabled: isAdmin });
  const checkout = useData(["checkout"], (signal) => answer(api.GET("/v1/billing/checkout-config", { signal })), {
    enabled: isAdmin && boot.billing,
  });
  const value = billing.value;
  return (
    <>
      <h2 class="section">{text.plan}</h2>
      <WhoMay least="admin" what={text.what} />
      {isAdmin && billing.isLoading && (
        <Card label={text.plan}>
          <Loading lines={3} />
        </Card>
      )}
      {value && (
        <>
          {!boot.billing && <p class="note">{text.notConfigured}</p>}
          <div class="plans">
            {value.plans.map((plan) => (
              <PlanCard key={plan.id} plan={plan} billing={value} />
            ))}
          </div>
          {value.current_period_end && <p class="note">{text.renews(day(value.current_period_end))}</p>}
          {checkout.value && <Portal />}
        </>
      )}
    </>
  );
}

function PlanCard({ plan, billing }: { plan: Schemas["Plan"]; billing: Schemas["Billing"] }) {
  const isCurrent = plan.id === billing.plan;
  const line = (limit: number | null | undefined, what: string) => (
    <li>{limit == null ? text.noLimit(what) : `${number(limit)} ${what}`}</li>
  );
  return (
    <section class={isCurrent ? "box plan current" : "box plan"} aria-label={plan.name}>
      <h3>
        {plan.name} {isCurrent && <Badge tone="good">{text.current}</Badge>}
      </h3>
      <ul>
        {line(plan.limits.monthly_events, text.eventsMonthly)}
        {line(plan.limits.published_dashboards, text.published)}
        {line(plan.limits.api_keys, text.keys)}
        <li>{plan.features.advanced_embed_permissions ? text.advanced : text.notAdvanced}</li>
      </ul>
      {isCurrent && billing.status !== "none" && <p class="muted">{text.statuses[billing.status]}</p>}
    </section>
  );
}

function Portal() {
  const [message, setMessage] = useState("");
  const open = async () => {
    try {
      location.assign((await answer(api.GET("/v1/billing/portal"))).url);
    } catch (error) {
      setMessage(
        error instanceof ApiError && error.status === 404
          ? text.noCustomer
          : error instanceof Error
            ? error.message
            : texts.errors.unknown,
      );
    }
  };
  return (
    <p>
      <Button onClick={() => void open()}>{text.portal}</Button>{" "}
      {message && (
        <span class="fault" role="alert">
          {message}
        </span>
      )}
    </p>
  );
}
