// Erasures: a tenant's events, or one user's, are removed for good, and a receipt says when that was done.

import { useState } from "preact/hooks";
import { answer, api } from "../api/client";
import { refresh, useData } from "../api/cache";
import { may } from "../state/session";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Field, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Ago, number } from "../ui/time";

const text = texts.erasures;
/** A running erasure is looked at this often. */
const RUNNING_MS = 2_000;

export default function Erasures() {
  const [isAsking, setAsking] = useState(false);
  const isAdmin = may("admin");
  const erasures = useData(["erasures"], (signal) => answer(api.GET("/v1/erasures", { signal })), {
    enabled: isAdmin,
    every: (known) => (known?.data.some(({ finished_at }) => !finished_at) ? RUNNING_MS : undefined),
  });
  return (
    <Page
      title={texts.menu.pages.erasures}
      lead={text.lead}
      actions={
        isAdmin && (
          <Button kind="danger" onClick={() => setAsking(true)}>
            {text.erase}
          </Button>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      {isAdmin && (
        <List
          data={erasures}
          label={texts.menu.pages.erasures}
          rowKey={(erasure) => erasure.id}
          searched={(erasure) => `${erasure.tenant_id ?? ""} ${erasure.scope}`}
          empty={<Empty title={text.none} text={text.noneText} />}
          columns={[
            { title: text.tenant, cell: (erasure) => <b>{erasure.tenant_id ?? "–"}</b> },
            { title: text.scope, cell: (erasure) => text.scopes[erasure.scope] ?? erasure.scope },
            {
              title: text.status,
              cell: (erasure) => (
                <Badge tone={erasure.finished_at ? "good" : "warn"}>
                  {erasure.finished_at ? text.done : text.running}
                </Badge>
              ),
            },
            { title: text.removed, end: true, cell: (erasure) => number(erasure.events_removed) },
            { title: text.requested, cell: (erasure) => <Ago at={erasure.requested_at} /> },
            { title: text.finished, cell: (erasure) => (erasure.finished_at ? <Ago at={erasure.finished_at} /> : "") },
          ]}
        />
      )}
      {isAsking && <Ask onClose={() => setAsking(false)} />}
    </Page>
  );
}

function Ask({ onClose }: { onClose: () => void }) {
  const [tenant, setTenant] = useState("");
  const form = useForm(async (value) => {
    const [tenant_id, user_id] = [value("tenant_id"), value("user_id")];
    if (user_id)
      await answer(
        api.DELETE("/v1/tenants/{tenant_id}/users/{user_id}/events", { params: { path: { tenant_id, user_id } } }),
      );
    else await answer(api.DELETE("/v1/tenants/{tenant_id}/events", { params: { path: { tenant_id } } }));
    say(text.started);
    onClose();
    await refresh("erasures");
  });
  return (
    <Dialog title={text.erase} onClose={onClose}>
      <form {...form.props}>
        <p class="lead">{text.eraseText}</p>
        <Field
          in={form}
          name="tenant_id"
          label={text.tenant}
          required
          maxLength={256}
          autocomplete="off"
          autofocus
          onInput={(event) => setTenant(event.currentTarget.value)}
        />
        <Field in={form} name="user_id" label={text.user} hint={text.userHint} maxLength={256} autocomplete="off" />
        <Field
          name="confirmation"
          label={texts.actions.typeName(tenant || "…")}
          required
          autocomplete="off"
          onInput={(event) =>
            event.currentTarget.setCustomValidity(
              event.currentTarget.value === tenant ? "" : texts.actions.typeName(tenant),
            )
          }
        />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form} kind="danger">
            {text.erase}
          </Submit>
        </div>
      </form>
    </Dialog>
  );
}
