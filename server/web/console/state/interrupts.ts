// Two events that interrupt any page: a session that has ended, and a limit of the plan.

import { signal } from "@preact/signals";
import type { Schemas } from "../api/client";

/** A request was refused because the session is over; the page stays, and asks for the password. */
export const endedSession = signal(false);

/** The refusal that names the limit; null when there is none to show. */
export const reachedLimit = signal<Partial<Schemas["Error"]> | null>(null);
