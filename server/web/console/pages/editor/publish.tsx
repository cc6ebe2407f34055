// The publish dialog: the changes that customers will see.

import { answer, api, ApiError, type Schemas } from "../../api/client";
import { refresh, useData } from "../../api/cache";
import { say } from "../../state/toast";
import { texts } from "../../texts/en";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Submit, useForm } from "../../ui/form";
import { Loading } from "../../ui/page";
import { changesOf, type Change } from "./changes";
import type { Draft } from "./draft";

const text = texts.editor;

export function ChangeList({ changes }: { changes: Change[] }) {
  if (!changes.length) return <p class="lead">{text.noChanges}</p>;
  return (
    <ul class="changes">
      {changes.map((change, at) => (
        <li key={at}>
          <b>{text.changes[change.kind](change.title)}</b>
          {change.parts.length > 0 && (
            <span class="muted"> {change.parts.map((part) => text.parts[part]).join(", ")}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

export function Publish({
  dashboard,
  draft,
  flush,
  onClose,
}: {
  dashboard: Schemas["Dashboard"];
  draft: Draft;
  flush: () => Promise<boolean>;
  onClose: () => void;
}) {
  const { id, status } = dashboard;
  const published = useData(
    ["published", id, dashboard.published_at],
    (signal) => answer(api.GET("/v1/dashboards/{id}/published", { signal, params: { path: { id } } })),
    { enabled: dashboard.published_at != null },
  );
  const form = useForm(async () => {
    if (!(await flush())) throw new ApiError(0, { error: text.notSaved });
    await answer(api.POST("/v1/dashboards/{id}/publish", { params: { path: { id } } }));
    say(text.published(draft.name));
    onClose();
    await refresh("dashboard", "dashboards", "published");
  });
  return (
    <Dialog title={text.publishTitle(draft.name)} onClose={onClose}>
      <form {...form.props}>
        <p class="lead">{status === "published" ? text.publishAgain : text.publishFirst}</p>
        {published.isLoading && <Loading lines={3} />}
        {published.value && <ChangeList changes={changesOf(published.value, draft)} />}
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{text.publish}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
