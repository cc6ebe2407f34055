// How far the first steps are: a new organisation begins with them, until all are done.

import { answer, api, type Schemas } from "./client";
import { useData, type Data } from "./cache";

type Status = Schemas["OnboardingStatus"];

const LOOK_MS = 1_500;
/** Once an event is there, the next steps are people's, and slower. */
const LATER_MS = 5_000;

/** `isWatched`: asked again and again, as on the page that waits for the first event. */
export function useOnboarding({ isWatched = false, enabled = true } = {}): Data<Status> {
  return useData(["onboarding"], (signal) => answer(api.GET("/v1/onboarding/status", { signal })), {
    enabled,
    ...(isWatched ? { every: (known: Status | undefined) => (known?.steps.sent_event ? LATER_MS : LOOK_MS) } : {}),
  });
}

export const isOnboarded = ({ steps }: Status): boolean => Object.values(steps).every(Boolean);
