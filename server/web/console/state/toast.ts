// One sentence about what has just been done, at the foot of the page, with a way back where there is one.

import { signal } from "@preact/signals";
import { texts } from "../texts/en";

export interface Toast {
  text: string;
  /** Takes back what was done. */
  undo?: () => void;
}

const SHOWN_MS = 6_000;
let timer = 0;

export const toast = signal<Toast | null>(null);

export function say(text: string, undo?: () => void): void {
  clearTimeout(timer);
  toast.value = undo ? { text, undo } : { text };
  timer = setTimeout(() => (toast.value = null), SHOWN_MS);
}

/**
 * Does what a button was pressed for; a failure is said, so that none is silent.
 *
 *     <Button onClick={() => attempt(() => end(session.id))}>End</Button>
 */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    say(error instanceof Error ? error.message : texts.errors.unknown);
  }
}
