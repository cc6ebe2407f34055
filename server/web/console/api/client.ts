// The one way to the API: `answer(api.GET("/v1/alerts"))` gives the body, or throws an `ApiError`.
//
// Types come from the server's OpenAPI document, so that a page cannot ask for a field that does not exist. Every
// request names the environment, and is noted, for "View as API request". A session that has ended, and a limit of
// the plan, are the same everywhere: they open their dialog here.

import createClient from "openapi-fetch";
import { environment } from "../state/environment";
import { endedSession, reachedLimit } from "../state/interrupts";
import { me } from "../state/session";
import { texts } from "../texts/en";
import { noteRequest } from "./requests";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

type ErrorBody = Partial<Schemas["Error"]>;

/** A request that was refused or not answered. `status` is 0 when the server could not be reached. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super(sentence(body.error ?? texts.errors.unknown));
    this.status = status;
    this.code = body.code ?? "internal";
    this.body = body;
  }

  /** Messages by the field that they are about. */
  get fields(): Record<string, string> {
    const { details, field, error } = this.body;
    const faults = details?.length ? details : field ? [{ field, message: error ?? "" }] : [];
    return Object.fromEntries(faults.map((fault) => [fault.field, sentence(fault.message)]));
  }
}

/** The client. Its methods never throw for a status; `answer` does. */
export const api = createClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });

/** Path segments that URLs normalise away: `/users/../events` is `/events`, also percent-encoded. */
const SWALLOWED = new Set([".", ".."]);

api.use({
  async onRequest({ request, params }) {
    for (const [field, value] of Object.entries(params.path ?? {})) {
      if (SWALLOWED.has(String(value)))
        throw new ApiError(400, { code: "invalid_field", field, error: texts.errors.dots });
    }
    request.headers.set("X-Service-Environment", environment.value);
    await noteRequest(request);
    return request;
  },
  onResponse({ request, response }) {
    // Whatever ended the session, also in another tab. A wrong password is none, nor a key that was revoked.
    const isOfSession =
      me.value !== null && !request.headers.has("authorization") && !new URL(request.url).pathname.endsWith("/login");
    if (response.status === 401 && isOfSession) endedSession.value = true;
  },
});

/** The body of a successful answer. */
export async function answer<Body>(call: Promise<{ data?: Body; error?: unknown; response: Response }>): Promise<Body> {
  let result;
  try {
    result = await call;
  } catch (cause) {
    if (cause instanceof ApiError || (cause instanceof DOMException && cause.name === "AbortError")) throw cause;
    throw new ApiError(0, { code: "unreachable", error: texts.errors.unreachable });
  }
  const { data, response } = result;
  if (response.ok) return data as Body;
  const body = typeof result.error === "object" && result.error !== null ? (result.error as ErrorBody) : {};
  const error = new ApiError(response.status, body);
  if (response.status === 402) reachedLimit.value = body;
  throw error;
}

/** A message of the API as a sentence. */
export function sentence(text: string): string {
  return text && text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
