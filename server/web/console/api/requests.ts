// The requests that the page has just sent, newest first, as commands for a terminal.
//
//     curl 'https://inlay.example.com/v1/alerts' -H 'Authorization: Bearer $INLAY_KEY'

import { signal } from "@preact/signals";
import { boot } from "../boot";

export interface SentRequest {
  method: string;
  /** Path and query, without the server's address. */
  path: string;
  /** The body as it was sent, if there was one. */
  body: string | null;
}

const REQUESTS_MAX = 20;
/** Secrets that a user types must not appear in a command that is copied. */
const SECRET = /("(?:password|current_password|new_password|token)":)"(?:[^"\\]|\\.)*"/g;

export const sentRequests = signal<SentRequest[]>([]);

export async function noteRequest(request: Request): Promise<void> {
  const { pathname, search } = new URL(request.url);
  if (pathname.startsWith("/v1/auth/")) return;
  const body = request.body ? (await request.clone().text()).replace(SECRET, '$1"…"') : null;
  const sent = { method: request.method, path: pathname + search, body };
  const isSame = (other: SentRequest) =>
    other.method === sent.method && other.path === sent.path && other.body === sent.body;
  sentRequests.value = [sent, ...sentRequests.value.filter((other) => !isSame(other))].slice(0, REQUESTS_MAX);
}

/** A text as one word of a shell. */
export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A request as a command. */
export function curlOf({ method, path, body }: SentRequest): string {
  const parts = [
    `curl ${method === "GET" || (method === "POST" && body) ? "" : `-X ${method} `}${quoted(boot.base_url + path)}`,
    `-H "Authorization: Bearer $INLAY_KEY"`,
  ];
  if (body) parts.push(`-H "Content-Type: application/json"`, `-d ${quoted(body)}`);
  return parts.join(" \\\n  ");
}
