// Light, dark, or as the system has it. A cookie of the console's own says so to the server, which draws the first
// paint right; nothing secret is in it.

import { signal } from "@preact/signals";

export type Mode = "light" | "dark" | "system";

const root = document.documentElement;
const YEAR_SECONDS = 31_536_000;

export const mode = signal<Mode>((root.dataset.mode as Mode | undefined) ?? "system");

export function chooseMode(next: Mode): void {
  mode.value = next;
  if (next === "system") delete root.dataset.mode;
  else root.dataset.mode = next;
  document.cookie = `inlay_mode=${next}; path=/console; max-age=${YEAR_SECONDS}; samesite=lax`;
}
