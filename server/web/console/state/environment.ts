// Which of the organisation's environments the console shows, and addresses that say so.
//
// Production is silent; `?env=development` stands in every address of the other one, so that a copied address opens
// the same environment.

import { signal } from "@preact/signals";

export const PRODUCTION = "production";

export const environment = signal(new URLSearchParams(location.search).get("env") ?? PRODUCTION);

/** The address of a page of the console: `address("alerts/7")` is `/console/alerts/7`. Empty values are left out. */
export function address(page: string, query: Record<string, string | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value);
  if (environment.value !== PRODUCTION) parameters.set("env", environment.value);
  return `/console/${page}${parameters.size ? `?${parameters}` : ""}`;
}
