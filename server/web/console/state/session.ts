// The logged-in user and their permissions.
//
// Nothing relies on `may`: it only hides controls; the server enforces permissions.

import { signal } from "@preact/signals";
import type { Schemas } from "../api/client";
import { boot } from "../boot";

export type Role = Schemas["Role"];

export const me = signal<Schemas["Me"] | null>(boot.me);

/** The key that registering has made, as long as this page is open; it is never stored. */
export const firstKey = signal<string | null>(null);

const RANK: Record<Role, number> = { viewer: 0, editor: 1, admin: 2, owner: 3 };

/** Whether the user has this role or a higher one. */
export function may(least: Role): boolean {
  const role = me.value?.role;
  return role != null && RANK[role] >= RANK[least];
}

/** The user in the response of a log-in. */
export function enter({ org, role, user }: Schemas["LoggedIn"]): void {
  me.value = {
    auth: "session",
    environment: org.environments[0]?.name ?? "production",
    org,
    role,
    scope: RANK[role] >= RANK.admin ? "admin" : "member",
    user,
  };
}
