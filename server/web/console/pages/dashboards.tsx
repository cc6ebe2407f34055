// All dashboards: what state each is in, and how to make another.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { refresh, useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt, say } from "../state/toast";
import { texts } from "../texts/en";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/dialog";
import { Field, Submit, useForm } from "../ui/form";
import { List } from "../ui/list";
import { Menu, type MenuItem } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Badge, Empty, Page, WhoMay } from "../ui/page";
import { Ago, number } from "../ui/time";

const text = texts.dashboards;
type Dashboard = Schemas["Dashboard"];

export default function Dashboards() {
  const { route } = useLocation();
  const [isMaking, setMaking] = useOpened("new", "editor");
  const [isGenerating, setGenerating] = useState(false);
  const [deleted, setDeleted] = useState<Dashboard | null>(null);
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const isEditor = may("editor");
  const generate = async () => {
    setGenerating(true);
    try {
      const made = await answer(api.POST("/v1/discover/auto-create"));
      await refresh("dashboards");
      route(address(`dashboards/${made.dashboard_id}`));
    } finally {
      setGenerating(false);
    }
  };
  const duplicate = async ({ name, settings, widgets }: Dashboard) => {
    const made = await answer(api.POST("/v1/dashboards", { body: { name: text.copyOf(name), settings, widgets } }));
    say(text.duplicated(name));
    await refresh("dashboards");
    route(address(`dashboards/${made.id}`));
  };
  const actionsOf = (dashboard: Dashboard): MenuItem[] => [
    { label: text.duplicate, act: () => attempt(() => duplicate(dashboard)) },
    { label: text.delete, danger: true, act: () => setDeleted(dashboard) },
  ];
  return (
    <Page
      title={texts.menu.pages.dashboards}
      lead={text.lead}
      actions={
        isEditor && (
          <>
            <Button busy={isGenerating} onClick={() => attempt(generate)}>
              {text.generate}
            </Button>
            <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
              {text.make}
            </Button>
          </>
        )
      }
    >
      <WhoMay least="editor" what={text.what} />
      <List
        data={dashboards}
        label={texts.menu.pages.dashboards}
        rowKey={(dashboard) => dashboard.id}
        searched={(dashboard) => dashboard.name}
        empty={
          <Empty title={text.none} text={text.noneText}>
            {isEditor && (
              <>
                <Button kind="primary" busy={isGenerating} onClick={() => attempt(generate)}>
                  {text.generate}
                </Button>
                <Button onClick={() => setMaking(true)}>{text.startEmpty}</Button>
              </>
            )}
          </Empty>
        }
        columns={[
          {
            title: text.name,
            cell: (dashboard) => (
              <a class="row-link" href={address(`dashboards/${dashboard.id}`)}>
                {dashboard.name}
              </a>
            ),
          },
          { title: text.state, cell: (dashboard) => <State dashboard={dashboard} /> },
          { title: text.widgets, end: true, cell: (dashboard) => number(dashboard.widgets.length) },
          { title: text.edited, cell: (dashboard) => <Ago at={dashboard.updated_at} /> },
          {
            title: text.published,
            cell: (dashboard) =>
              dashboard.published_at ? <Ago at={dashboard.published_at} /> : <span class="muted">{text.never}</span>,
          },
          {
            title: texts.actions.more,
            silent: true,
            end: true,
            cell: (dashboard) =>
              isEditor && <Menu label={texts.actions.of(dashboard.name)} items={actionsOf(dashboard)} />,
          },
        ]}
      />
      {isMaking && <Make onClose={() => setMaking(false)} />}
      {deleted && (
        <Confirm
          title={text.deleteTitle(deleted.name)}
          text={deleted.status === "published" ? text.deletePublished : text.deleteText}
          action={text.delete}
          onClose={() => setDeleted(null)}
          {...(deleted.status === "published" ? { name: deleted.name } : {})}
          onConfirm={async () => {
            await answer(api.DELETE("/v1/dashboards/{id}", { params: { path: { id: deleted.id } } }));
            say(text.deleted(deleted.name));
            await refresh("dashboards");
          }}
        />
      )}
    </Page>
  );
}

/** "Published", with what is not yet published beside it. */
export function State({ dashboard }: { dashboard: Dashboard }) {
  if (dashboard.status !== "published") return <Badge>{text.states[dashboard.status]}</Badge>;
  return (
    <>
      <Badge tone="good">{text.states.published}</Badge>
      {dashboard.has_unpublished_changes && <span class="muted"> {text.changed}</span>}
    </>
  );
}

function Make({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const form = useForm(async (value) => {
    const made = await answer(api.POST("/v1/dashboards", { body: { name: value("name"), widgets: [] } }));
    await refresh("dashboards");
    onClose();
    route(address(`dashboards/${made.id}`, { edit: "1" }));
  });
  return (
    <Dialog title={text.make} onClose={onClose}>
      <form {...form.props}>
        <Field in={form} name="name" label={text.name} required maxLength={200} autofocus />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.make}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
