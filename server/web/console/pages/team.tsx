// The team: members with their roles, and invites that wait.

import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { may, me, type Role } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button, Copy } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field, Select, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Menu } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Card, Empty, Page, WhoMay } from "../ui/page";
import { Ago } from "../ui/time";

const text = texts.team;
type Member = Schemas["Member"];

const ROLES: readonly Role[] = ["viewer", "editor", "admin", "owner"];

export default function Team() {
  const [isInviting, setInviting] = useOpened("invite", "admin");
  const [removed, setRemoved] = useState<Member | null>(null);
  const members = useData(["members"], (signal) => answer(api.GET("/v1/members", { signal })));
  const isAdmin = may("admin");
  const own = me.value?.user?.id;
  const mayRemove = (member: Member) =>
    member.user_id === own || may("owner") || (isAdmin && (member.role === "viewer" || member.role === "editor"));
  return (
    <Page
      title={texts.menu.pages.team}
      lead={text.lead}
      actions={
        isAdmin && (
          <Button kind="primary" icon="plus" onClick={() => setInviting(true)}>
            {text.invite}
          </Button>
        )
      }
    >
      <WhoMay least="admin" what={text.what} />
      <List
        data={members}
        label={texts.menu.pages.team}
        rowKey={(member) => member.id}
        searched={(member) => `${member.name} ${member.email} ${text.roles[member.role]}`}
        empty={<Empty title={text.none} />}
        columns={[
          {
            title: text.name,
            cell: (member) => (
              <b>
                {member.name}
                {member.user_id === own && <span class="muted"> {text.you}</span>}
              </b>
            ),
          },
          { title: texts.entrance.email, cell: (member) => member.email },
          { title: text.role, cell: (member) => <RoleOf member={member} /> },
          { title: text.joined, cell: (member) => <Ago at={member.joined_at} /> },
          {
            title: texts.actions.more,
            silent: true,
            end: true,
            cell: (member) =>
              mayRemove(member) && (
                <Menu
                  label={texts.actions.of(member.name)}
                  items={[
                    {
                      label: member.user_id === own ? text.leave : text.remove,
                      danger: true,
                      act: () => setRemoved(member),
                    },
                  ]}
                />
              ),
          },
        ]}
      />
      {isAdmin && <Invites />}
      {isInviting && <Invite onClose={() => setInviting(false)} />}
      {removed && (
        <Confirm
          title={text.removeTitle(removed.name)}
          text={text.removeText}
          action={text.remove}
          onClose={() => setRemoved(null)}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/members/{id}", { params: { path: { id: removed.id } } }));
            say(text.removed(removed.name));
            await refresh("members");
          }}
        />
      )}
    </Page>
  );
}

function RoleOf({ member }: { member: Member }) {
  const [busy, setBusy] = useState(false);
  if (!may("owner")) return <>{text.roles[member.role]}</>;
  const change = async (role: Role) => {
    setBusy(true);
    try {
      await answer(api.PATCH("/v1/members/{id}", { params: { path: { id: member.id } }, body: { role } }));
      say(text.changed(member.name, text.roles[role]));
    } finally {
      setBusy(false);
      // After a refusal the list shows the stored role again.
      await refresh("members");
    }
  };
  return (
    <select
      class="input small"
      aria-label={text.roleOf(member.name)}
      value={member.role}
      disabled={busy}
      onChange={(event) => attempt(() => change(event.currentTarget.value as Role))}
    >
      {ROLES.map((role) => (
        <option key={role} value={role}>
          {text.roles[role]}
        </option>
      ))}
    </select>
  );
}

function Invites() {
  const invites = useData(["invites"], (signal) => answer(api.GET("/v1/members/invites", { signal })));
  const withdraw = async (id: string) => {
    await answer(api.DELETE("/v1/members/invites/{id}", { params: { path: { id } } }));
    say(text.withdrawn);
    await refresh("invites");
  };
  const rows = invites.value?.data ?? [];
  if (!rows.length) return null;
  return (
    <Card title={text.pending}>
      <ul class="rows">
        {rows.map((invite) => (
          <li key={invite.id}>
            <b>{invite.email}</b>
            <span>{text.roles[invite.role]}</span>
            <span class="muted">
              {text.expires} <Ago at={invite.expires_at} />
            </span>
            <Button kind="quiet" onClick={() => attempt(() => withdraw(invite.id))}>
              {text.withdraw}
            </Button>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Invite({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<Schemas["NewInvite"] | null>(null);
  const form = useForm(async (value) => {
    setMade(
      await answer(
        api.POST("/v1/members/invite", {
          body: { email: value("email"), role: value("role") as Schemas["InvitedRole"] },
        }),
      ),
    );
    await refresh("invites");
  });
  if (made) {
    return (
      <Dialog title={text.invitedTitle(made.email)} onClose={onClose}>
        <p class="lead">{text.invitedText}</p>
        <p class="secret">
          <code>{made.invite_url}</code>
        </p>
        <div class="foot">
          <Copy text={made.invite_url} kind="primary" label={text.copyLink} />
          <Button onClick={onClose}>{texts.actions.done}</Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={text.invite} onClose={onClose}>
      <form {...form.props}>
        <Field in={form} name="email" label={texts.entrance.email} type="email" required autofocus />
        <Select
          in={form}
          name="role"
          label={text.role}
          hint={text.roleHint}
          defaultValue="viewer"
          options={[
            ["viewer", text.roles.viewer],
            ["editor", text.roles.editor],
            ["admin", text.roles.admin],
          ]}
        />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.invite}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
