// The toast: one sentence about the last action, with Undo where that is possible.

import { signal } from "@preact/signals";
import { texts } from "../texts/en";

export interface Toast {
  text: string;
  /** Undoes the action. */
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
 * Runs the action of a button and shows its error, so that no failure is silent.
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
