// The definition of a dataset, as SQL.

import { answer, api } from "../api/client";
import { useData } from "../api/cache";
import { texts } from "../texts/en";
import { Code } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { Failed, Loading } from "../ui/page";

export default function Definition({ name, onClose }: { name: string; onClose: () => void }) {
  const ddl = useData(["ddl", name], (signal) =>
    answer(api.GET("/v1/datasets/{name}/ddl", { signal, params: { path: { name } } })),
  );
  return (
    <Dialog title={name} onClose={onClose} wide>
      {ddl.isLoading && <Loading lines={4} />}
      {ddl.error && <Failed error={ddl.error} onRetry={ddl.reload} />}
      {ddl.value && <Code text={ddl.value.ddl} label={texts.data.ddl} />}
    </Dialog>
  );
}
