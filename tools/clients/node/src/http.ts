// Requests with retries.
//
// A request is repeated after a lost connection, 429, 500 to 504, and a 409 that says when to come again, with exponential backoff and
// jitter, and not before the server's `Retry-After`. Events have ids and other POSTs an `Idempotency-Key`, so nothing is done
// twice; a DELETE that finds nothing when it is repeated has done its work before.

import { randomUUID } from "node:crypto";

const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 30_000;
const RETRIED = new Set([429, 500, 502, 503, 504]);

/** One fault of a request. */
export interface Fault {
  field: string;
  code: string;
  message: string;
}

/** The server refused a request, or could not be reached. */
export class InlayError extends Error {
  /** The HTTP status, 0 without a response. */
  readonly status: number;
  /** For programs; `connection` without a response. */
  readonly code: string;
  /** The part of the request that is to blame. */
  readonly field: string | undefined;
  /** Finds the request in the server's log. */
  readonly requestId: string | undefined;
  /** All faults of the request, where there are fields to blame. */
  readonly details: Fault[];

  constructor(status: number, code: string, message: string, body: ErrorBody = {}) {
    super(`${message} (${code})`);
    this.name = "InlayError";
    this.status = status;
    this.code = code;
    this.field = body.field;
    this.requestId = body.request_id;
    this.details = body.details ?? [];
  }
}

interface ErrorBody {
  code?: string;
  error?: string;
  field?: string;
  request_id?: string;
  details?: Fault[];
}

/** A value of a query parameter. */
export type Parameter = string | number | boolean | Date | undefined;

export interface Call {
  params?: Record<string, Parameter>;
  body?: unknown;
  idempotencyKey?: string;
  retryMs?: number;
  /** Asked before each repetition. */
  isStopped?: () => boolean;
}

/** A server, for one key. */
export class Http {
  readonly #base: string;
  readonly #key: string;

  constructor(
    url: string,
    key: string,
    readonly timeoutMs: number,
    readonly retryMs: number,
  ) {
    if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError(`url must begin with http:// or https://, and is ${url}`);
    this.#base = url.replace(/\/+$/, "");
    this.#key = key.trim();
  }

  /** The JSON of the response, `undefined` of an empty one. Throws `InlayError`. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.params ?? {})) {
      if (value !== undefined) query.set(name, value instanceof Date ? value.toISOString() : String(value));
    }
    const url = this.#base + path + (query.size > 0 ? `?${query}` : "");
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}`, accept: "application/json" };
    if (call.body !== undefined) headers["content-type"] = "application/json";
    if (method === "POST" && path !== "/v1/events") {
      headers["idempotency-key"] = call.idempotencyKey ?? randomUUID();
    }
    const request = { method, headers, body: call.body === undefined ? null : JSON.stringify(call.body) };
    // Not by the clock on the wall, which jumps.
    const limit = performance.now() + (call.retryMs ?? this.retryMs);
    for (let attempt = 0; ; attempt++) {
      const { answer, error, retryAfterMs } = await this.#attempt<T>(url, request);
      if (error === undefined) return answer as T;
      if (method === "DELETE" && error.status === 404 && attempt > 0) return undefined as T;
      const wait = backoff(attempt, retryAfterMs);
      const isUnderWay = error.status === 409 && retryAfterMs > 0;
      const comesAgain = error.status === 0 || RETRIED.has(error.status) || isUnderWay;
      if (!comesAgain || call.isStopped?.() || performance.now() + wait > limit) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  async #attempt<T>(
    url: string,
    request: RequestInit,
  ): Promise<{ answer?: T; error?: InlayError; retryAfterMs: number }> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        ...request,
        // A POST that is sent on becomes a GET.
        redirect: "manual",
        signal: AbortSignal.timeout(this.timeoutMs),
      });
      text = await response.text();
    } catch (error) {
      const { message, cause } = error as Error;
      const detail = cause instanceof Error && cause.message ? `: ${cause.message}` : "";
      return { error: new InlayError(0, "connection", message + detail), retryAfterMs: 0 };
    }
    let body: unknown;
    try {
      body = text === "" ? undefined : JSON.parse(text);
    } catch {
      body = undefined;
    }
    if (response.ok && text !== "" && body === undefined) {
      const message = "the response is no JSON: is this the address of Inlay?";
      return { error: new InlayError(response.status, "http", message), retryAfterMs: 0 };
    }
    if (response.ok) return { answer: body as T, retryAfterMs: 0 };
    const refusal = (body ?? {}) as ErrorBody;
    const seconds = Number(response.headers.get("retry-after") ?? 0);
    const error = new InlayError(response.status, refusal.code ?? "http", refusal.error ?? reason(response), refusal);
    return { error, retryAfterMs: seconds > 0 ? seconds * 1_000 : 0 };
  }
}

function reason(response: Response): string {
  const location = response.headers.get("location");
  return location === null ? response.statusText : `the server is at ${location}`;
}

/** Milliseconds before the attempt after number `attempt`, from 0: half of it fixed, half by chance. */
function backoff(attempt: number, retryAfterMs: number): number {
  const full = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX);
  return Math.max(full / 2 + (Math.random() * full) / 2, retryAfterMs);
}
