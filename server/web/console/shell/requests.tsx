// "View as API request": the page's latest requests, as commands to copy.

import { useState } from "preact/hooks";
import { curlOf, sentRequests } from "../api/requests";
import { texts } from "../texts/en";
import { Code } from "../ui/code";
import { Dialog } from "../ui/dialog";

export function Requests() {
  const [isOpen, setOpen] = useState(false);
  return (
    <footer class="page-foot">
      <button type="button" class="link" onClick={() => setOpen(true)}>
        {texts.requests.open}
      </button>
      <a class="link" href="/docs">
        {texts.requests.reference}
      </a>
      {isOpen && (
        <Dialog title={texts.requests.title} onClose={() => setOpen(false)} wide>
          <p class="lead">{texts.requests.lead}</p>
          {sentRequests.value.map((request) => (
            <div key={request.method + request.path + request.body} class="request">
              <p>
                <b>{request.method}</b> <code>{request.path}</code>
              </p>
              <Code text={curlOf(request)} label={`${request.method} ${request.path}`} />
            </div>
          ))}
        </Dialog>
      )}
    </footer>
  );
}
