// Deliveries of the last 24 hours: webhook attempts of alerts and reports, with their responses.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt as tryTo, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Code } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { List } from "../ui/list";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { Ago, fullTime, number } from "../ui/time";

const text = texts.deliveries;

type Attempt = Schemas["WebhookAttempt"] & { rule: Schemas["WebhookRule"] };

const FILTERS = ["all", "failed", "delivered"] as const;

export default function Deliveries() {
  const { query, path, route } = useLocation();
  const [opened, setOpened] = useState<Attempt | null>(null);
  const [isSending, setSending] = useState(false);
  const isAdmin = may("admin");
  const webhooks = useData(["webhooks"], (signal) => answer(api.GET("/v1/webhooks", { signal })), {
    enabled: isAdmin,
    every: 15_000,
  });
  const rules = webhooks.value?.rules ?? [];
  const attempts = rules
    .flatMap((rule) => rule.attempts.map((attempt): Attempt => ({ ...attempt, rule })))
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  const chosen = FILTERS.find((one) => one === query.status) ?? "all";
  const sendAgain = async (attempt: Attempt) => {
    setSending(true);
    try {
      await answer(api.POST("/v1/webhooks/{id}/retry", { params: { path: { id: attempt.id } } }));
    } finally {
      setSending(false);
    }
    setOpened(null);
    say(text.sentAgain(attempt.rule.name));
    await refresh("webhooks");
  };
  const total = (part: "success_24h" | "failure_24h") => rules.reduce((sum, rule) => sum + rule[part], 0);
  return (
    <Page title={texts.menu.pages.deliveries} lead={text.lead}>
      <WhoMay least="admin" what={text.what} />
      {isAdmin && rules.length > 0 && (
        <div class="figures two">
          <div class="box figure">
            <p>{text.delivered}</p>
            <b>{number(total("success_24h"))}</b>
          </div>
          <div class="box figure">
            <p>{text.failed}</p>
            <b class={total("failure_24h") ? "bad" : undefined}>{number(total("failure_24h"))}</b>
          </div>
        </div>
      )}
      {isAdmin && (
        <List
          data={{ ...webhooks, value: webhooks.value && { data: attempts } }}
          label={texts.menu.pages.deliveries}
          rowKey={(attempt) => attempt.id}
          searched={(attempt) =>
            `${attempt.rule.name} ${attempt.webhook_url} ${attempt.status_code} ${attempt.error ?? ""}`
          }
          only={(attempt) => chosen === "all" || isDelivered(attempt) === (chosen === "delivered")}
          filters={
            <Tabs
              label={text.status}
              names={FILTERS}
              chosen={chosen}
              onChoose={(status) => route(`${path}?${new URLSearchParams({ ...query, status })}`, true)}
              text={(name) => text.filters[name]}
            />
          }
          empty={<Empty title={text.none} text={text.noneText} />}
          columns={[
            { title: text.status, cell: (attempt) => <Status attempt={attempt} /> },
            {
              title: text.rule,
              cell: (attempt) => (
                <a href={address(`${attempt.rule.source}s/${attempt.rule.source_id}`)}>{attempt.rule.name}</a>
              ),
            },
            {
              title: text.url,
              cell: (attempt) => (
                <span class="clip" title={attempt.webhook_url}>
                  {attempt.webhook_url}
                </span>
              ),
            },
            {
              title: text.attempt,
              end: true,
              cell: numberOf,
            },
            { title: text.duration, end: true, cell: (attempt) => text.ms(number(attempt.duration_ms)) },
            { title: text.time, cell: (attempt) => <Ago at={attempt.created_at} /> },
            {
              title: texts.actions.more,
              silent: true,
              end: true,
              cell: (attempt) => (
                <button type="button" class="link" onClick={() => setOpened(attempt)}>
                  {text.details}
                </button>
              ),
            },
          ]}
        />
      )}
      {opened && (
        <Dialog title={opened.rule.name} onClose={() => setOpened(null)} wide>
          <dl class="facts">
            <dt>{text.status}</dt>
            <dd>
              <Status attempt={opened} />
            </dd>
            <dt>{text.url}</dt>
            <dd>
              <code>{opened.webhook_url}</code>
            </dd>
            <dt>{text.time}</dt>
            <dd>{fullTime(opened.created_at)}</dd>
            <dt>{text.attempt}</dt>
            <dd>
              {numberOf(opened)}
              {!isDelivered(opened) && opened.rule.source === "alert" && opened.retry === 0 && (
                <span class="muted"> {text.retries}</span>
              )}
            </dd>
            {opened.error && (
              <>
                <dt>{text.error}</dt>
                <dd>{opened.error}</dd>
              </>
            )}
          </dl>
          <Code text={opened.response_excerpt || text.noResponse} label={text.response} />
          <div class="foot">
            <p class="note">{text.sendAgainHint}</p>
            <Button busy={isSending} onClick={() => tryTo(() => sendAgain(opened))}>
              {text.sendAgain}
            </Button>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

const isDelivered = ({ status_code }: Schemas["WebhookAttempt"]) => status_code >= 200 && status_code < 300;

/** Which attempt it was: the server's own by number, or one that was asked for here. */
function numberOf({ attempt, retry }: Attempt): string {
  return retry > 0 ? text.retry(retry) : String(attempt);
}

function Status({ attempt }: { attempt: Attempt }) {
  return (
    <Badge tone={isDelivered(attempt) ? "good" : "bad"}>
      {attempt.status_code === 0 ? text.noConnection : attempt.status_code}
    </Badge>
  );
}
