// Statements that are being written, stored in this browser for each organisation, so that a reload loses nothing.
//
// It is the only thing that the console stores there. A browser without storage works; it forgets.

import { me } from "./session";

export interface Tab {
  id: string;
  title: string;
  sql: string;
  /** The saved query that it was opened from, and its text then. */
  saved?: { id: string; sql: string };
}

export interface Tabs {
  tabs: Tab[];
  chosen: string;
}

const key = () => `inlay.sql.${me.value?.org.id ?? ""}.${me.value?.user?.id ?? ""}`;

const isTab = (value: unknown): value is Tab => {
  const tab = value as Partial<Tab> | null;
  return typeof tab?.id === "string" && typeof tab.title === "string" && typeof tab.sql === "string";
};

export function readTabs(): Tabs | null {
  try {
    const stored = JSON.parse(localStorage.getItem(key()) ?? "null") as Partial<Tabs> | null;
    const tabs = Array.isArray(stored?.tabs) ? stored.tabs.filter(isTab) : [];
    const [first] = tabs;
    if (!first) return null;
    return { tabs, chosen: tabs.some(({ id }) => id === stored?.chosen) ? String(stored?.chosen) : first.id };
  } catch {
    return null;
  }
}

/** Removes them: on a shared machine, the next user must not read the drafts of the previous one. */
export function forgetTabs(): void {
  try {
    localStorage.removeItem(key());
  } catch {
    // Nothing was stored.
  }
}

export function writeTabs(tabs: Tabs): void {
  try {
    localStorage.setItem(key(), JSON.stringify(tabs));
  } catch {
    // Full, or refused: the tabs live as long as the page.
  }
}
