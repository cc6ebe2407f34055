// All dashboards: their states, and creating one.

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
import { Field, Select, Submit, useForm } from "../ui/form";
import { Cards } from "../ui/list";
import type { MenuItem } from "../ui/menu";
import { useOpened } from "../ui/opened";
import { Empty, Page, WhoMay } from "../ui/page";
import { DashboardCard } from "./dashboard_card";
import { STARTERS, startedWith, type Starter } from "./editor/starters";

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
      <Cards
        data={dashboards}
        label={texts.menu.pages.dashboards}
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
        card={(dashboard) => (
          <DashboardCard key={dashboard.id} dashboard={dashboard} actions={isEditor ? actionsOf(dashboard) : []} />
        )}
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

function Make({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const [event] = discovered.value?.events ?? [];
  const [starter, setStarter] = useState<Starter>("empty");
  const form = useForm(async (value) => {
    const widgets = startedWith(starter, event);
    const made = await answer(api.POST("/v1/dashboards", { body: { name: value("name"), widgets } }));
    await refresh("dashboards");
    onClose();
    route(address(`dashboards/${made.id}`, { edit: "1" }));
  });
  return (
    <Dialog title={text.make} onClose={onClose}>
      <form {...form.props}>
        <Field in={form} name="name" label={text.name} required maxLength={200} autofocus />
        {event && (
          <Select
            in={form}
            name="starter"
            label={text.layout}
            hint={text.starters.hints[starter]}
            value={starter}
            options={STARTERS.map((one) => [one, text.starters.names[one]] as const)}
            onChange={(event) => setStarter(event.currentTarget.value as Starter)}
          />
        )}
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.make}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
