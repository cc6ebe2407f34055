// Get started: from the key to the embed in five steps. Where one is, the server knows, so that one may leave and
// come back; the key alone lives in this page only.

import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { useOnboarding } from "../api/onboarding";
import { boot } from "../boot";
import { address } from "../state/environment";
import { firstKey, may } from "../state/session";
import { attempt } from "../state/toast";
import { texts } from "../texts/en";
import { Button, Copy, LinkButton } from "../ui/button";
import { Snippets } from "../ui/code";
import { Icon } from "../ui/icon";
import { Badge, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Ago } from "../ui/time";
import { EmbedPanel } from "./editor/embed_panel";
import { themeIn } from "./theme_fields";

const text = texts.start;
/** After this long without an event the usual mistakes are named. */
const HINTS_MS = 60_000;
/** The event that snippets send. */
const SAMPLE = {
  tenant_id: "acme",
  event_name: "api_request",
  user_id: "ada",
  string_props: { model: "gpt-large", status: "ok" },
  numeric_props: { latency_ms: 412 },
};
const NEWEST =
  "SELECT timestamp, event_name, tenant_id, string_props, numeric_props FROM events ORDER BY timestamp DESC LIMIT 5";

export default function Start() {
  const status = useOnboarding({ isWatched: true });
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const value = status.value;
  const [hasCopied, setCopied] = useState(false);
  if (!value)
    return (
      <Page title={texts.menu.pages.start}>
        <div class="box">{status.error ? <Failed error={status.error} onRetry={status.reload} /> : <Loading />}</div>
      </Page>
    );
  const { steps, real_events: events } = value;
  const hasKey = hasCopied || steps.sent_event;
  const done = [
    hasKey,
    steps.sent_event,
    steps.created_dashboard,
    steps.published_dashboard && steps.created_embed_session,
    steps.invited_member,
  ];
  const current = done.findIndex((one) => !one);
  const [dashboard] = dashboards.value?.data ?? [];
  const step = (at: number, title: string, children: ComponentChildren) => (
    <Step key={at} number={at + 1} title={title} isDone={done[at] ?? false} isCurrent={at === current}>
      {children}
    </Step>
  );
  return (
    <Page title={texts.menu.pages.start} lead={text.progress(done.filter(Boolean).length, done.length)}>
      <WhoMay least="admin" what={text.what} />
      {value.sample_only && <p class="note">{text.sample}</p>}
      <ol class="steps">
        {step(0, text.key, <KeyStep isDone={hasKey} onCopied={() => setCopied(true)} />)}
        {step(1, text.send, <EventStep events={events} isDone={steps.sent_event} />)}
        {step(2, text.generate, <DashboardStep dashboard={dashboard} isReady={steps.sent_event} />)}
        {step(3, text.publish, <PublishStep dashboard={dashboard} />)}
        {step(
          4,
          text.team,
          <>
            <p>{text.teamText}</p>
            {may("admin") && <LinkButton href={address("team", { invite: "1" })}>{texts.team.invite}</LinkButton>}
          </>,
        )}
      </ol>
    </Page>
  );
}

function Step({
  number,
  title,
  isDone,
  isCurrent,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  isCurrent: boolean;
  children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(isCurrent);
  useEffect(() => {
    if (isCurrent) setOpen(true);
  }, [isCurrent]);
  return (
    <li class="box step" data-done={isDone || undefined} data-current={isCurrent || undefined}>
      <span class="step-mark" aria-hidden="true">
        {isDone ? <Icon name="check" /> : number}
      </span>
      <div>
        <h2>
          <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {title}
            {isDone && <span class="vh"> ({text.done})</span>}
          </button>
        </h2>
        {isOpen && children}
      </div>
    </li>
  );
}

function KeyStep({ isDone, onCopied }: { isDone: boolean; onCopied: () => void }) {
  const key = firstKey.value;
  if (key)
    return (
      <>
        <p>{text.keyText}</p>
        <p class="secret">
          <code>{key}</code>
        </p>
        <Copy kind="primary" text={key} label={text.copyKey} onCopied={onCopied} />
      </>
    );
  return (
    <>
      <p>{isDone ? text.keyDone : text.keyGone}</p>
      {may("admin") && <LinkButton href={address("api-keys", { new: "1" })}>{texts.apiKeys.make}</LinkButton>}
    </>
  );
}

/** Complete programs that send one event. */
function eventSnippets(key: string): Record<string, string> {
  const url = `${boot.base_url}/v1/events`;
  const json = JSON.stringify({ events: [SAMPLE] });
  return {
    curl: `curl ${url} \\\n  -H "Authorization: Bearer ${key}" \\\n  -H "Content-Type: application/json" \\\n  -d '${json}'`,
    Node: `// node send.mjs\nconst response = await fetch("${url}", {\n  method: "POST",\n  headers: { authorization: "Bearer ${key}", "content-type": "application/json" },\n  body: JSON.stringify(${json}),\n});\nconsole.log(response.status, await response.json());`,
    Python: `# pip install requests; python send.py\nimport requests\n\nresponse = requests.post(\n    "${url}",\n    headers={"Authorization": "Bearer ${key}"},\n    json=${json},\n)\nprint(response.status_code, response.json())`,
    Rust: `// cargo add reqwest --features blocking,json; cargo add serde_json\nfn main() -> Result<(), Box<dyn std::error::Error>> {\n    let body: serde_json::Value = serde_json::from_str(r#"${json}"#)?;\n    let answer = reqwest::blocking::Client::new()\n        .post("${url}")\n        .bearer_auth("${key}")\n        .json(&body)\n        .send()?;\n    println!("{} {}", answer.status(), answer.text()?);\n    Ok(())\n}`,
  };
}

function EventStep({ events, isDone }: { events: number; isDone: boolean }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), HINTS_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      <p>
        {text.sendText} <code>tenant_id</code>.
      </p>
      <Snippets snippets={eventSnippets(firstKey.value ?? "$INLAY_KEY")} label={text.send} />
      <LiveLog events={events} />
      {isLate && !isDone && (
        <div class="note">
          <p>{text.hintsTitle}</p>
          <ul>
            {text.hints(boot.base_url).map((hint) => (
              <li key={hint}>{hint}</li>
            ))}
          </ul>
        </div>
      )}
      {firstKey.value && !isDone && <SendTest apiKey={firstKey.value} />}
    </>
  );
}

interface EventRow {
  at: string;
  name: string;
  tenant: string;
  properties: string;
}

/** The newest events, asked for again whenever their number has grown. */
function LiveLog({ events }: { events: number }) {
  const rows = useData(
    ["live", events],
    async (signal) => {
      const { rows } = (await answer(api.POST("/v1/query/adhoc", { signal, body: { sql: NEWEST } }))) as {
        rows: [string, string, string, object, object][];
      };
      return rows.map(([at, name, tenant, strings, numbers]): EventRow => ({
        at: /Z$/.test(at) ? at : `${at.replace(" ", "T")}Z`,
        name,
        tenant,
        properties: Object.entries({ ...strings, ...numbers })
          .map(([key, value]) => `${key}=${String(value)}`)
          .join("  "),
      }));
    },
    { enabled: events > 0 && may("admin"), keeps: true },
  );
  if (events === 0)
    return (
      <p class="live waiting" role="status">
        <i />
        {text.waiting}
      </p>
    );
  return (
    <ul class="live" aria-label={text.log}>
      {(rows.value ?? []).map((row, at) => (
        <li key={`${row.at} ${at}`}>
          <i />
          <b>{row.name}</b>
          <span>{row.tenant}</span>
          <code>{row.properties}</code>
          <Ago at={row.at} />
        </li>
      ))}
      {!rows.value && (
        <li>
          <i />
          <b>{text.arrived(events)}</b>
        </li>
      )}
    </ul>
  );
}

/** For those without a terminal: the page itself sends an event with the key that it was given. */
function SendTest({ apiKey }: { apiKey: string }) {
  const send = async () => {
    await answer(
      api.POST("/v1/events", {
        body: { events: [SAMPLE] },
        headers: { Authorization: `Bearer ${apiKey}` },
        credentials: "omit",
      }),
    );
    await refresh("onboarding");
  };
  return (
    <p>
      <Button onClick={() => attempt(send)}>{text.sendTest}</Button>
    </p>
  );
}

function DashboardStep({ dashboard, isReady }: { dashboard: Schemas["Dashboard"] | undefined; isReady: boolean }) {
  const [busy, setBusy] = useState(false);
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })), {
    enabled: isReady,
    every: 5_000,
  });
  const found = discovered.value?.events ?? [];
  const generate = async () => {
    setBusy(true);
    try {
      await answer(api.POST("/v1/discover/auto-create"));
      await refresh("dashboards", "onboarding");
    } finally {
      setBusy(false);
    }
  };
  const properties = found.reduce((sum, event) => sum + event.string_props.length + event.numeric_props.length, 0);
  return (
    <>
      <p>{found.length ? text.found(found.length, properties) : text.foundNone}</p>
      {dashboard ? (
        <p>
          <LinkButton href={address(`dashboards/${dashboard.id}`)}>{text.openDashboard(dashboard.name)}</LinkButton>
        </p>
      ) : (
        may("editor") && (
          <Button kind="primary" busy={busy} disabled={!found.length} onClick={() => attempt(generate)}>
            {text.generateNow}
          </Button>
        )
      )}
    </>
  );
}

function PublishStep({ dashboard }: { dashboard: Schemas["Dashboard"] | undefined }) {
  const [busy, setBusy] = useState(false);
  const usage = useData(["usage", "30d"], (signal) =>
    answer(api.GET("/v1/usage", { signal, params: { query: { period: "30d" } } })),
  );
  if (!dashboard) return <p>{text.publishText}</p>;
  const { id, name, status } = dashboard;
  const publish = async () => {
    setBusy(true);
    try {
      await answer(api.POST("/v1/dashboards/{id}/publish", { params: { path: { id } } }));
      await refresh("dashboards", "onboarding");
    } finally {
      setBusy(false);
    }
  };
  if (status !== "published")
    return (
      <>
        <p>{text.publishText}</p>
        {may("editor") && (
          <Button kind="primary" busy={busy} onClick={() => attempt(publish)}>
            {text.publishNow(name)}
          </Button>
        )}
      </>
    );
  return (
    <>
      <p>
        {text.published(name)} <Badge tone="good">{texts.dashboards.states.published}</Badge>
      </p>
      {may("admin") && (
        <EmbedPanel
          dashboard={id}
          theme={themeIn(dashboard.settings)}
          tenant={usage.value?.top_tenants[0]?.tenant_id ?? "acme"}
          onMinted={() => void refresh("onboarding", "embed-sessions")}
        />
      )}
    </>
  );
}
