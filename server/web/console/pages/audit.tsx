// The audit log: actor, action, object, time and address; the last hundred entries.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { useData } from "../api/cache";
import { may } from "../state/session";
import { texts } from "../texts/en";
import { Copy } from "../ui/button";
import { Code } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { List } from "../ui/list";
import { Empty, Page, WhoMay } from "../ui/page";
import { Ago, fullTime } from "../ui/time";

const text = texts.audit;
type Row = Schemas["AuditRow"];

export default function Audit() {
  const { query, route, path } = useLocation();
  const [opened, setOpened] = useState<Row | null>(null);
  const isAdmin = may("admin");
  const action = query.action ?? "";
  const rows = useData(
    ["audit", action],
    (signal) => answer(api.GET("/v1/audit", { signal, params: { query: action ? { action } : {} } })),
    { enabled: isAdmin, keeps: true },
  );
  const all = useData(["audit", ""], (signal) => answer(api.GET("/v1/audit", { signal })), { enabled: isAdmin });
  const actions = [
    ...new Set([...(all.value?.data ?? []).map((row) => row.action), ...(action ? [action] : [])]),
  ].sort();
  const choose = (chosen: string) => {
    const { action: _, ...rest } = query;
    const parameters = new URLSearchParams(chosen ? { ...rest, action: chosen } : rest);
    route(path + (parameters.size ? `?${parameters}` : ""), true);
  };
  return (
    <Page title={texts.menu.pages.audit} lead={text.lead}>
      <WhoMay least="admin" what={text.what} />
      {isAdmin && (
        <List
          data={rows}
          label={texts.menu.pages.audit}
          rowKey={(row) => row.id}
          searched={(row) =>
            `${row.action} ${actionOf(row.action)} ${row.actor.label} ${row.target.type} ${row.target.id} ${row.ip ?? ""} ${JSON.stringify(row.metadata)}`
          }
          empty={<Empty title={text.none} text={text.noneText} />}
          filters={
            <select
              class="input small"
              aria-label={text.action}
              value={action}
              onChange={(event) => choose(event.currentTarget.value)}
            >
              <option value="">{text.allActions}</option>
              {actions.map((name) => (
                <option key={name} value={name}>
                  {actionOf(name)}
                </option>
              ))}
            </select>
          }
          columns={[
            { title: text.when, cell: (row) => <Ago at={row.created_at} /> },
            { title: text.who, cell: (row) => <span title={row.actor.type}>{row.actor.label}</span> },
            {
              title: text.action,
              cell: (row) => (
                <button type="button" class="link" onClick={() => setOpened(row)}>
                  {actionOf(row.action)}
                </button>
              ),
            },
            {
              title: text.target,
              cell: (row) => (
                <>
                  <span class="muted">{objectOf(row.target.type)}</span>{" "}
                  {nameOf(row) ?? (
                    <code>{row.target.id.length > 12 ? `${row.target.id.slice(0, 8)}…` : row.target.id}</code>
                  )}
                </>
              ),
            },
            { title: text.from, cell: (row) => row.ip ?? "" },
          ]}
        />
      )}
      {opened && (
        <Dialog title={actionOf(opened.action)} onClose={() => setOpened(null)} wide>
          <dl class="facts">
            <dt>{text.when}</dt>
            <dd>{fullTime(opened.created_at)}</dd>
            <dt>{text.who}</dt>
            <dd>
              {opened.actor.label} <span class="muted">{opened.actor.type}</span>
            </dd>
            <dt>{text.target}</dt>
            <dd>
              {objectOf(opened.target.type)} {nameOf(opened)} <code>{opened.target.id}</code>
            </dd>
            <dt>{text.code}</dt>
            <dd>
              <code>{opened.action}</code>
            </dd>
            <dt>{text.from}</dt>
            <dd>{opened.ip ?? text.unknown}</dd>
          </dl>
          <Code text={JSON.stringify(opened.metadata, null, 2)} label={text.details} />
          <div class="foot">
            <Copy text={JSON.stringify(opened, null, 2)} label={text.copyJson} />
          </div>
        </Dialog>
      )}
    </Page>
  );
}

const objectOf = (type: string): string => text.objects[type] ?? type;

/** "Dashboard published" for `dashboard.publish`; an unknown action is shown as its code. */
function actionOf(action: string): string {
  const [object = "", verb = ""] = action.split(".");
  const word = text.verbs[verb];
  return word ? `${objectOf(object)} ${word}` : action;
}

/** The name that an object had. */
function nameOf({ metadata }: Row): string | null {
  const { name, label, title, email, tenant_id } = metadata as Record<string, unknown>;
  return (
    [name, label, title, email, tenant_id].find((one): one is string => typeof one === "string" && one !== "") ?? null
  );
}
