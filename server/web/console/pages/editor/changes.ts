// The differences between two versions of a dashboard, as a list to read before publishing or choosing one.
//
//     changesOf(published, draft)   // [{ kind: "changed", title: "Calls per day", parts: ["query", "layout"] }]

import type { Widget } from "../../ui/widget";

export type Part = "title" | "kind" | "query" | "viz" | "layout";

export interface Change {
  kind: "added" | "removed" | "changed" | "renamed" | "settings";
  title: string;
  parts: Part[];
}

interface Version {
  name: string;
  widgets: readonly Widget[];
  settings?: unknown;
}

const PARTS: readonly Part[] = ["title", "kind", "query", "viz", "layout"];

/** The same JSON whatever the order of its keys. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => a.localeCompare(b)))
      : part,
  );
}

export function changesOf(before: Version, after: Version): Change[] {
  const changes: Change[] = [];
  if (before.name !== after.name) changes.push({ kind: "renamed", title: after.name, parts: [] });
  if (stable(before.settings ?? {}) !== stable(after.settings ?? {}))
    changes.push({ kind: "settings", title: after.name, parts: [] });
  for (const widget of after.widgets) {
    const old = before.widgets.find(({ id }) => id === widget.id);
    if (!old) {
      changes.push({ kind: "added", title: widget.title, parts: [] });
      continue;
    }
    const parts = PARTS.filter((part) => stable(old[part]) !== stable(widget[part]));
    if (parts.length) changes.push({ kind: "changed", title: widget.title, parts });
  }
  for (const old of before.widgets)
    if (!after.widgets.some(({ id }) => id === old.id)) changes.push({ kind: "removed", title: old.title, parts: [] });
  return changes;
}
