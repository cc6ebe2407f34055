// The client: events in batches behind the caller's back, everything else as calls.

import { randomUUID } from "node:crypto";

import { Http, InlayError, type Call, type Parameter } from "./http.js";

/** Events of one request to `POST /v1/events`, at most. */
const EVENTS_MAX = 1_000;
const BYTES_MAX = 8 << 20;

/** A product event. Without an id it gets one, and the time of the call without a time. */
export interface Event {
  tenant_id: string;
  event_name: string;
  user_id?: string;
  string_props?: Record<string, string>;
  numeric_props?: Record<string, number>;
  timestamp?: string | Date;
  event_id?: string;
}

/** Events that will not be counted: refused by the server for good, or not sent. */
export interface Problem {
  kind: "rejected" | "dropped";
  events: Event[];
  error: string;
}

export interface Options {
  /** The server, such as `https://inlay.acme.com`. */
  url: string;
  /** An API key; one for ingest is enough for events. */
  key: string;
  /** Of one attempt of a request. */
  timeoutMs?: number;
  /** How long a call is repeated, and events of `track`. */
  retryMs?: number;
  sendMs?: number;
  /** Events of a batch, at most 1,000, and how long they wait for it. */
  batchEvents?: number;
  flushMs?: number;
  /** Events that wait, at most; more are dropped. */
  bufferEvents?: number;
  /** Hears of events that are refused or dropped; without it the console does. */
  onProblem?: (problem: Problem) => void;
}

/** A metric query; see the reference of the API. */
export interface Query {
  event_name: string;
  metric: string;
  tenant_id?: string;
  period?: string;
  from?: string | Date;
  to?: string | Date;
  granularity?: "hour" | "day" | "week" | "month";
  group_by?: string;
  numeric_prop?: string;
  limit?: number;
  timezone?: string;
  compare?: "previous";
  fill?: "none";
  explain?: boolean;
  /** Values of properties: `{ status: "ok" }`. */
  filters?: Record<string, string>;
}

export interface QueryRow {
  bucket?: string;
  group?: string | null;
  value: number | null;
  previous?: number | null;
}

export interface QueryAnswer {
  data: QueryRow[];
  meta: Record<string, unknown>;
}

export interface SqlAnswer {
  columns: { name: string; type: string }[];
  rows: unknown[][];
}

export interface EmbedSessionRequest {
  tenant_id: string;
  dashboard_id: string;
  /** Seconds. */
  expires_in?: number;
  permissions?: Record<string, unknown>;
}

/** A signed session of one tenant: `embed_url` goes into a frame of the host's page. */
export interface EmbedSession {
  token: string;
  embed_url: string;
  expires_at: string;
}

type ReadyEvent = Event & { event_id: string };

interface Ingested {
  accepted: number;
  errors: { index: number; message: string }[];
}

/** Clients that may have events when the process ends by itself. */
const clients = new Set<Inlay>();
process.on("beforeExit", () => clients.forEach((client) => void client.flush()));

/**
 * A server of Inlay, for one API key.
 *
 * Events are buffered and sent in the background, at the latest after `flushMs`, and before the process ends by itself (a process that calls
 * `process.exit` awaits `close` before). Each has an `event_id`, so that one that is sent again is counted once.
 */
export class Inlay {
  readonly #http: Http;
  readonly #options: Required<Omit<Options, "url" | "key">>;
  #buffer: Event[] = [];
  #underWay: Event[] = [];
  // Events that were tracked, and those of them that are sent or dropped.
  #tracked = 0;
  #settled = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  #isClosed = false;

  constructor({ url, key, ...options }: Options) {
    this.#options = {
      timeoutMs: 10_000,
      retryMs: 30_000,
      sendMs: 300_000,
      batchEvents: 500,
      flushMs: 1_000,
      bufferEvents: 100_000,
      onProblem: (problem) => console.warn(`inlay: ${problem.events.length} events ${problem.kind}: ${problem.error}`),
      ...options,
    };
    const { batchEvents, timeoutMs, retryMs } = this.#options;
    if (!(batchEvents >= 1 && batchEvents <= EVENTS_MAX)) {
      throw new RangeError(`batchEvents must be between 1 and ${EVENTS_MAX}`);
    }
    this.#http = new Http(url, key, timeoutMs, retryMs);
    clients.add(this);
  }

  /**
   * Buffers an event, and returns its id. Does not wait, and does not throw when the server cannot be reached; it throws for what
   * cannot be written as JSON.
   */
  track(event: Event): string {
    const one = ready(event);
    const isFull = this.#buffer.length >= this.#options.bufferEvents;
    if (isFull || this.#isClosed) {
      this.#report({ kind: "dropped", events: [one], error: isFull ? "the buffer is full" : "the client is closed" });
      return one.event_id;
    }
    this.#buffer.push(one);
    this.#tracked++;
    if (this.#buffer.length >= this.#options.batchEvents) {
      void this.#drain();
    } else if (this.#timer === undefined && this.#sending === undefined) {
      this.#wait();
    }
    return one.event_id;
  }

  /**
   * Sends events now, in as many requests as it takes; returns how many were accepted. For backfills. Those that are refused are reported
   * to `onProblem`. Throws `InlayError` when a request fails in the end; those before it are stored, and sending all of them again
   * counts none twice if they have ids.
   */
  async send(events: Event[]): Promise<number> {
    let accepted = 0;
    for (const batch of batches(events.map(ready))) accepted += await this.#send(batch);
    return accepted;
  }

  /** Resolves when all events that were tracked before are sent or dropped. */
  async flush(): Promise<void> {
    const target = this.#tracked;
    while (this.#settled < target) await this.#drain(target);
  }

  /** Sends what is buffered, for so long at most, and ends; the rest is reported as dropped. */
  async close(ms = 10_000): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.flush(), timeout]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    const left = this.#isClosed ? [] : [...this.#underWay, ...this.#buffer];
    this.#isClosed = true;
    this.#buffer = [];
    clients.delete(this);
    if (left.length > 0) {
      this.#report({ kind: "dropped", events: left, error: "the client was closed before they were sent" });
    }
  }

  /** A metric query. */
  query({ filters = {}, ...query }: Query): Promise<QueryAnswer> {
    const params: Record<string, Parameter> = { ...query };
    for (const [name, value] of Object.entries(filters)) params[`f_${name}`] = value;
    return this.#http.call("GET", "/v1/query", { params });
  }

  /** A SELECT over the events of the key's environment. */
  sql(statement: string): Promise<SqlAnswer> {
    return this.#http.call("POST", "/v1/query/adhoc", { body: { sql: statement } });
  }

  /** Mints a session that shows one tenant one dashboard. */
  embedSession(session: EmbedSessionRequest): Promise<EmbedSession> {
    return this.#http.call("POST", "/v1/embed-sessions", { body: session });
  }

  /** Any operation of the API reference, such as `request("GET", "/v1/dashboards")`. */
  request<T = unknown>(method: string, path: string, call: Omit<Call, "retryMs" | "isStopped"> = {}): Promise<T> {
    return this.#http.call(method, path, call);
  }

  #wait() {
    this.#timer = setTimeout(() => void this.#drain(), this.#options.flushMs);
    // A process that has nothing else to do ends, and `beforeExit` sends the rest.
    this.#timer.unref?.();
  }

  /** Sends batch by batch until so many are settled, or nothing is buffered; one at a time. */
  #drain(target = Infinity): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#run(target).finally(() => {
      this.#sending = undefined;
      // One that came while the last batch was under way.
      if (this.#buffer.length > 0 && !this.#isClosed) this.#wait();
    });
    return this.#sending;
  }

  async #run(target: number): Promise<void> {
    while (this.#buffer.length > 0 && this.#settled < target) {
      const events = this.#buffer.splice(0, this.#options.batchEvents);
      this.#underWay = events;
      for (const batch of batches(events)) {
        try {
          await this.#send(batch, this.#options.sendMs);
        } catch (error) {
          if (!this.#isClosed) this.#report({ kind: "dropped", events: batch, error: (error as Error).message });
        }
      }
      this.#underWay = [];
      this.#settled += events.length;
    }
  }

  async #send(batch: Event[], retryMs?: number): Promise<number> {
    let answer: Ingested;
    try {
      const call = retryMs === undefined ? {} : { retryMs, isStopped: () => this.#isClosed };
      answer = await this.#http.call<Ingested>("POST", "/v1/events", { body: { events: batch }, ...call });
    } catch (error) {
      if (!(error instanceof InlayError) || (error.status !== 400 && error.status !== 413)) throw error;
      // What stands before the server may take less at once.
      if (error.status === 413 && batch.length > 1) {
        const half = batch.length >> 1;
        return (await this.#send(batch.slice(0, half), retryMs)) + (await this.#send(batch.slice(half), retryMs));
      }
      // None of them is valid: nothing will become better by trying again.
      this.#report({ kind: "rejected", events: batch, error: error.message });
      return 0;
    }
    for (const { index, message } of answer.errors) {
      this.#report({ kind: "rejected", events: batch.slice(index, index + 1), error: message });
    }
    return answer.accepted;
  }

  #report(problem: Problem) {
    const failed = (error: unknown) => console.error("inlay: onProblem failed", error);
    try {
      // One that is async may reject.
      Promise.resolve(this.#options.onProblem(problem) as unknown).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

/** An event as it is sent. What the caller changes later does not change it. */
function ready(event: Event): ReadyEvent {
  for (const [name, value] of Object.entries(event.numeric_props ?? {})) {
    // JSON has no such number, and null would be refused much later.
    if (!Number.isFinite(value)) throw new RangeError(`numeric_props.${name} is ${value}`);
  }
  const timestamp = event.timestamp || new Date();
  const ready = { ...event, event_id: event.event_id || randomUUID(), timestamp };
  return JSON.parse(JSON.stringify(ready)) as ReadyEvent;
}

/** Events in lists that fit into a request each. */
function batches(events: Event[]): Event[][] {
  const found: Event[][] = [];
  let size = 0;
  for (const event of events) {
    const length = Buffer.byteLength(JSON.stringify(event)) + 1;
    const last = found.at(-1);
    if (last === undefined || last.length === EVENTS_MAX || size + length > BYTES_MAX) {
      found.push([event]);
      size = length;
    } else {
      last.push(event);
      size += length;
    }
  }
  return found;
}
