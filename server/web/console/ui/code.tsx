// Code to read and copy: a block with a button, and the same thing in several languages behind tabs.

import { useState } from "preact/hooks";
import { Copy } from "./button";
import { Tabs } from "./tabs";

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} kind="quiet" />
    </div>
  );
}

/** `snippets`: name of the language and the code in it. */
export function Snippets({ snippets, label }: { snippets: Record<string, string>; label: string }) {
  const names = Object.keys(snippets);
  const [chosen, choose] = useState(names[0] ?? "");
  return (
    <div class="snippets">
      <Tabs label={label} names={names} chosen={chosen} onChoose={choose} />
      <Code text={snippets[chosen] ?? ""} label={`${label}: ${chosen}`} />
    </div>
  );
}
