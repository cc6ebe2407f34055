// API keys: a new one is shown once, and a revoked one stops working at once.

import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { environment } from "../state/environment";
import { may, me } from "../state/session";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field, Select, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { SecretOnce } from "../ui/secret";
import { Ago } from "../ui/time";

const text = texts.apiKeys;
type Key = Schemas["ApiKey"];

export default function ApiKeys() {
  const [isMaking, setMaking] = useOpened("new", "admin");
  const [revoked, setRevoked] = useState<Key | null>(null);
  const isAdmin = may("admin");
  const keys = useData(["api-keys"], (signal) => answer(api.GET("/v1/api-keys", { signal })), { enabled: isAdmin });
  return (
    <Page
      title={texts.menu.pages.apiKeys}
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
      {isAdmin && (
        <List
          data={keys}
          label={texts.menu.pages.apiKeys}
          rowKey={(key) => key.id}
          searched={(key) => `${key.label} ${key.prefix} ${key.environment}`}
          empty={<Empty title={text.none} text={text.noneText} />}
          columns={[
            { title: text.label, cell: (key) => <b>{key.label}</b> },
            { title: text.key, cell: (key) => <code>{key.prefix}…</code> },
            {
              title: text.scope,
              cell: (key) => <Badge tone={key.scope === "admin" ? "warn" : "plain"}>{text.scopes[key.scope]}</Badge>,
            },
            {
              title: texts.shell.environment,
              cell: (key) => texts.shell.environments[key.environment] ?? key.environment,
            },
            { title: text.made, cell: (key) => <Ago at={key.created_at} /> },
            {
              title: text.used,
              cell: (key) =>
                key.last_used_at ? <Ago at={key.last_used_at} /> : <span class="muted">{text.never}</span>,
            },
            {
              title: texts.actions.more,
              silent: true,
              end: true,
              cell: (key) => (
                <Menu
                  label={texts.actions.of(key.label)}
                  items={[{ label: text.revoke, danger: true, act: () => setRevoked(key) }]}
                />
              ),
            },
          ]}
        />
      )}
      {isMaking && <NewKey onClose={() => setMaking(false)} />}
      {revoked && (
        <Confirm
          title={text.revokeTitle(revoked.label)}
          text={text.revokeText(revoked.prefix)}
          action={text.revoke}
          onClose={() => setRevoked(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/api-keys/{id}", { params: { path: { id: revoked.id } } }));
            say(text.revoked(revoked.label));
            await refresh("api-keys");
          }}
        />
      )}
    </Page>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<Schemas["NewApiKey"] | null>(null);
  const [scope, setScope] = useState<Schemas["Scope"]>("ingest");
  const form = useForm(async (value) => {
    setMade(
      await answer(
        api.POST("/v1/api-keys", { body: { label: value("label"), scope, environment: value("environment") } }),
      ),
    );
    await refresh("api-keys");
  });
  if (made) {
    return (
      <SecretOnce title={text.onceTitle} text={text.onceText} secret={made.key} copy={text.copyKey} onClose={onClose} />
    );
  }
  return (
    <Dialog title={text.make} onClose={onClose}>
      <form {...form.props}>
        <Field in={form} name="label" label={text.label} hint={text.labelHint} required maxLength={200} autofocus />
        <Select
          in={form}
          name="scope"
          label={text.scope}
          hint={text.scopeHints[scope]}
          value={scope}
          options={[
            ["ingest", text.scopes.ingest],
            ["admin", text.scopes.admin],
          ]}
          onChange={(event) => setScope(event.currentTarget.value === "admin" ? "admin" : "ingest")}
        />
        <Select
          in={form}
          name="environment"
          label={texts.shell.environment}
          defaultValue={environment.value}
          options={(me.value?.org.environments ?? []).map(
            ({ name }) => [name, texts.shell.environments[name] ?? name] as const,
          )}
        />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.make}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
