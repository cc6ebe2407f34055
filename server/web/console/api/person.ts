// Change of user: requests, cached data and drafts of the previous user are dropped.
//
//     becomes(await answer(api.POST("/v1/auth/login", …)));     // logged in
//     becomes(null);                                            // logged out
//
// Other tabs of the browser have the same cookie, so each gets a message, and reloads when it shows another user.

import { forgetTabs } from "../state/drafts";
import { environment, PRODUCTION } from "../state/environment";
import { endedSession, reachedLimit } from "../state/interrupts";
import { enter, firstKey, me } from "../state/session";
import { toast } from "../state/toast";
import { cache } from "./cache";
import type { Schemas } from "./client";
import { sentRequests } from "./requests";
import { forgetUnsaved } from "./unsaved";

const tabs = new BroadcastChannel("inlay.person");

tabs.onmessage = ({ data }: MessageEvent<string | null>) => {
  if (me.value && data !== (me.value.user?.id ?? null)) location.reload();
};

/** The user of this page from now on; `key` is one that registering has just made. */
export function becomes(logged: Schemas["LoggedIn"] | null, key: string | null = null): void {
  const isSame = logged !== null && logged.user.id === me.value?.user?.id;
  if (!isSame) {
    if (logged === null) forgetTabs();
    cache.clear();
    forgetUnsaved();
    sentRequests.value = [];
    toast.value = reachedLimit.value = null;
    if (me.value) environment.value = PRODUCTION;
  }
  firstKey.value = key ?? (isSame ? firstKey.value : null);
  endedSession.value = false;
  if (logged) enter(logged);
  else me.value = null;
  tabs.postMessage(logged?.user.id ?? null);
}
