// Embed sessions that are open: which customer sees which dashboard, with which permissions, and for how long still.

import { useLocation } from "preact-iso";
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, Copy, LinkButton } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field, Select, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Empty, Page, WhoMay } from "../ui/page";
import { Ago, fullTime } from "../ui/time";
import { checkPermissions, inWords, permissionsOf, PermissionFields } from "./permissions";

const text = texts.embedSessions;
type Session = Schemas["EmbedSession"];

export default function EmbedSessions() {
  const [isMinting, setMinting] = useOpened("new", "admin");
  const [revoked, setRevoked] = useState<Session | null>(null);
  const isAdmin = may("admin");
  const sessions = useData(["embed-sessions"], (signal) => answer(api.GET("/v1/embed-sessions", { signal })), {
    enabled: isAdmin,
  });
  return (
    <Page
      title={texts.menu.pages.embedSessions}
      lead={text.lead}
      actions={
        isAdmin && (
          <Button kind="primary" icon="plus" onClick={() => setMinting(true)}>
            {text.mint}
          </Button>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      {isAdmin && (
        <List
          data={sessions}
          label={texts.menu.pages.embedSessions}
          rowKey={(session) => session.id}
          searched={(session) =>
            `${session.tenant_id} ${session.resource.name} ${session.actor.label} ${inWords(session.permissions).join(" ")}`
          }
          empty={
            <Empty title={text.none} text={text.noneText}>
              <Button kind="primary" onClick={() => setMinting(true)}>
                {text.mint}
              </Button>
            </Empty>
          }
          columns={[
            { title: text.tenant, cell: (session) => <b>{session.tenant_id}</b> },
            {
              title: text.dashboard,
              cell: (session) => <a href={address(`dashboards/${session.resource.id}`)}>{session.resource.name}</a>,
            },
            { title: text.permissions, cell: (session) => inWords(session.permissions).join("; ") },
            { title: text.by, cell: (session) => session.actor.label },
            { title: text.issued, cell: (session) => <Ago at={session.issued_at} /> },
            { title: text.remaining, end: true, cell: (session) => <Countdown until={session.expires_at} /> },
            {
              title: texts.actions.more,
              silent: true,
              end: true,
              cell: (session) => (
                <Menu
                  label={texts.actions.of(session.tenant_id)}
                  items={[{ label: text.revoke, danger: true, act: () => setRevoked(session) }]}
                />
              ),
            },
          ]}
        />
      )}
      {isMinting && <Mint onClose={() => setMinting(false)} />}
      {revoked && (
        <Confirm
          title={text.revokeTitle(revoked.tenant_id)}
          text={text.revokeText(revoked.resource.name)}
          action={text.revoke}
          onClose={() => setRevoked(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/embed-sessions/{id}", { params: { path: { id: revoked.id } } }));
            say(text.revoked);
            await refresh("embed-sessions");
          }}
        />
      )}
    </Page>
  );
}

/** One clock for all rows. */
const second = signal(0);
setInterval(() => second.value++, 1_000);

function Countdown({ until }: { until: string }) {
  void second.value;
  const seconds = Math.max(0, Math.round((Date.parse(until) - Date.now()) / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return (
    <time class="number" dateTime={until} title={fullTime(until)}>
      {seconds ? `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}` : text.ended}
    </time>
  );
}

function Mint({ onClose }: { onClose: () => void }) {
  const { query } = useLocation();
  const [made, setMade] = useState<Schemas["NewEmbedSession"] | null>(null);
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const published = (dashboards.value?.data ?? []).filter(({ status }) => status === "published");
  const [chosenId, setChosenId] = useState(query.dashboard ?? "");
  const chosen = published.find(({ id }) => id === chosenId) ?? published[0];
  const form = useForm(async (value, data) => {
    checkPermissions(data);
    setMade(
      await answer(
        api.POST("/v1/embed-sessions", {
          body: {
            tenant_id: value("tenant_id"),
            dashboard_id: value("dashboard_id"),
            expires_in: Number(value("expires_in")),
            permissions: permissionsOf(data),
          },
        }),
      ),
    );
    await refresh("embed-sessions");
  });
  if (made) {
    return (
      <Dialog title={text.mintedTitle} onClose={onClose} wide>
        <p class="lead">{text.mintedText(fullTime(made.expires_at))}</p>
        <p class="secret">
          <code>{made.embed_url}</code>
        </p>
        <div class="foot">
          <Copy text={made.embed_url} label={text.copyUrl} />
          <a class="button primary" href={made.embed_url} target="_blank" rel="noopener noreferrer">
            {text.open}
          </a>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={text.mint} onClose={onClose}>
      {dashboards.value && published.length === 0 ? (
        <Empty title={text.publishFirst} text={text.publishFirstText}>
          <LinkButton kind="primary" href={address("dashboards")}>
            {texts.menu.pages.dashboards}
          </LinkButton>
        </Empty>
      ) : (
        <form {...form.props}>
          <p class="lead">{text.mintLead}</p>
          <Select
            in={form}
            name="dashboard_id"
            label={text.dashboard}
            value={chosen?.id}
            onChange={(event) => setChosenId(event.currentTarget.value)}
            options={published.map(({ id, name }) => [id, name] as const)}
          />
          <Field
            in={form}
            name="tenant_id"
            label={text.tenant}
            hint={text.tenantHint}
            required
            maxLength={256}
            autocomplete="off"
            autofocus
          />
          <Select in={form} name="expires_in" label={text.expires} defaultValue="3600" options={text.lifetimes} />
          <PermissionFields in={form} {...(chosen ? { widgets: chosen.widgets } : {})} />
          <div class="foot">
            <Button onClick={onClose}>{texts.actions.cancel}</Button>
            <Submit form={form}>{text.mint}</Submit>
          </div>
        </form>
      )}
    </Dialog>
  );
}
