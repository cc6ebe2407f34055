// Settings of the organisation: name and address, environments, and, for its owner, the end of it.

import { useState } from "preact/hooks";
import { answer, api } from "../api/client";
import { refresh, useData } from "../api/cache";
import { becomes } from "../api/person";
import { may, me } from "../state/session";
import { say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, Copy } from "../ui/button";
import { Confirm } from "../ui/dialog";
import { Field, Submit, useForm } from "../ui/form";
import { Card, Failed, Loading, Page, WhoMay } from "../ui/page";
import { day } from "../ui/time";

const text = texts.settings;

export default function Settings() {
  const org = useData(["org"], (signal) => answer(api.GET("/v1/settings/org", { signal })));
  const [isDeleting, setDeleting] = useState(false);
  const [isRotating, setRotating] = useState(false);
  const isAdmin = may("admin");
  const form = useForm(async (value) => {
    const changed = await answer(
      api.PATCH("/v1/settings/org", { body: { name: value("name"), email: value("email") } }),
    );
    if (me.value) me.value = { ...me.value, org: changed };
    say(text.saved);
    await refresh("org");
  });
  const value = org.value;
  return (
    <Page title={texts.menu.pages.settings}>
      <WhoMay least="admin" what={text.what} />
      <Card title={text.organization} lead={value && text.since(day(value.created_at))}>
        {org.isLoading && <Loading lines={3} />}
        {org.error && <Failed error={org.error} onRetry={org.reload} />}
        {value && (
          <form {...form.props} class="narrow">
            <Field
              in={form}
              name="name"
              label={text.name}
              defaultValue={value.name}
              required
              maxLength={200}
              readOnly={!isAdmin}
            />
            <Field
              in={form}
              name="email"
              label={text.email}
              hint={text.emailHint}
              type="email"
              defaultValue={value.email}
              required
              readOnly={!isAdmin}
            />
            {isAdmin && <Submit form={form}>{texts.actions.save}</Submit>}
          </form>
        )}
      </Card>
      <Card title={text.environments} lead={text.environmentsLead}>
        <ul class="rows">
          {value?.environments.map(({ id, name }) => (
            <li key={id}>
              <b>{texts.shell.environments[name] ?? name}</b>
              <code>{id}</code>
              <Copy kind="quiet" text={id} label={text.copyId} />
            </li>
          ))}
        </ul>
      </Card>
      {isAdmin && (
        <Card title={text.signing} lead={text.signingLead}>
          <Button onClick={() => setRotating(true)}>{text.rotate}</Button>
        </Card>
      )}
      {may("owner") && value && (
        <Card title={text.danger} lead={text.dangerLead}>
          <Button kind="danger" onClick={() => setDeleting(true)}>
            {text.delete}
          </Button>
        </Card>
      )}
      {isRotating && (
        <Confirm
          title={text.rotateTitle}
          text={text.rotateText}
          action={text.rotate}
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            const made = await answer(api.POST("/v1/embed-sessions/rotate-key"));
            say(text.rotated(made.kid));
          }}
        />
      )}
      {isDeleting && value && (
        <Confirm
          title={text.deleteTitle(value.name)}
          text={text.deleteText}
          name={value.name}
          action={text.delete}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/settings/org"));
            becomes(null);
            location.assign("/console/login");
          }}
        />
      )}
    </Page>
  );
}
