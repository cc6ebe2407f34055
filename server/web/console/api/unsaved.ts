// Drafts of dashboards that could not be saved before their page was left, until they can be.
//
// They live as long as the page: closing it asks first.

import type { Schemas } from "./client";

export interface Unsaved {
  draft: Pick<Schemas["Dashboard"], "name" | "widgets" | "settings">;
  /** The version that the draft began from. */
  version: number;
}

const drafts = new Map<string, Unsaved>();

addEventListener("beforeunload", (event) => {
  if (drafts.size) event.preventDefault();
});

export const leaveUnsaved = (id: string, unsaved: Unsaved) => drafts.set(id, unsaved);

/** The unsaved draft of a dashboard, if there is one. */
export const unsavedOf = (id: string) => drafts.get(id);

export const savedAfterAll = (id: string) => drafts.delete(id);

export const forgetUnsaved = () => drafts.clear();
