// One's own account: the password, and the sessions that are open.

import { answer, api } from "../api/client";
import { refresh, useData } from "../api/cache";
import { me } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Field, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Badge, Card, Empty, Page } from "../ui/page";
import { Ago } from "../ui/time";

const text = texts.account;

export default function Account() {
  const user = me.value?.user;
  return (
    <Page title={texts.menu.pages.account} lead={user && `${user.name} · ${user.email}`}>
      <Card title={text.password} lead={text.passwordLead}>
        <ChangePassword />
      </Card>
      <h2 class="section">{text.sessions}</h2>
      <Sessions />
    </Page>
  );
}

function ChangePassword() {
  const form = useForm(async (value, data) => {
    await answer(
      api.POST("/v1/auth/change-password", {
        body: { current_password: value("current_password"), new_password: value("new_password") },
      }),
    );
    for (const name of [...data.keys()])
      document.querySelector<HTMLInputElement>(`input[name="${name}"]`)?.form?.reset();
    say(text.changed);
    await refresh("sessions");
  });
  return (
    <form {...form.props} class="narrow">
      <input type="email" name="username" value={me.value?.user?.email} autocomplete="username" hidden readOnly />
      <Field
        in={form}
        name="current_password"
        label={text.current}
        type="password"
        required
        autocomplete="current-password"
      />
      <Field
        in={form}
        name="new_password"
        label={texts.entrance.newPassword}
        hint={texts.entrance.passwordRule}
        type="password"
        required
        minLength={10}
        maxLength={200}
        autocomplete="new-password"
      />
      <Submit form={form}>{text.change}</Submit>
    </form>
  );
}

function Sessions() {
  const sessions = useData(["sessions"], (signal) => answer(api.GET("/v1/auth/sessions", { signal })));
  const end = async (id: string) => {
    await answer(api.DELETE("/v1/auth/sessions/{id}", { params: { path: { id } } }));
    say(text.ended);
    await refresh("sessions");
  };
  return (
    <List
      data={sessions}
      label={text.sessions}
      rowKey={(session) => session.id}
      searched={(session) => `${session.user_agent ?? ""} ${session.ip ?? ""}`}
      empty={<Empty title={text.none} />}
      columns={[
        {
          title: text.device,
          cell: (session) => <b title={session.user_agent ?? undefined}>{browserOf(session.user_agent ?? "")}</b>,
        },
        { title: text.address, cell: (session) => session.ip ?? "" },
        { title: text.opened, cell: (session) => <Ago at={session.created_at} /> },
        { title: text.seen, cell: (session) => <Ago at={session.seen_at} /> },
        {
          title: texts.actions.more,
          silent: true,
          end: true,
          cell: (session) =>
            session.current ? (
              <Badge tone="good">{text.this}</Badge>
            ) : (
              <Button kind="quiet" onClick={() => attempt(() => end(session.id))}>
                {text.end}
              </Button>
            ),
        },
      ]}
    />
  );
}

/** "Firefox on Linux", from what the browser calls itself; an unknown user agent is shown unchanged. */
export function browserOf(agent: string): string {
  const [, browser] =
    [
      ["Edg/", "Edge"],
      ["OPR/", "Opera"],
      ["Firefox/", "Firefox"],
      ["Chrome/", "Chrome"],
      ["Safari/", "Safari"],
      ["curl/", "curl"],
    ].find(([mark]) => agent.includes(mark ?? "")) ?? [];
  const [, system] =
    [
      ["Windows", "Windows"],
      ["Android", "Android"],
      ["iPhone", "iPhone"],
      ["iPad", "iPad"],
      ["Mac OS", "macOS"],
      ["Linux", "Linux"],
    ].find(([mark]) => agent.includes(mark ?? "")) ?? [];
  if (!browser) return agent || text.unknown;
  return system ? text.on(browser, system) : browser;
}
