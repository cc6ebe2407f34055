// Inlay from Node: send events, query them, mint embed sessions, verify webhooks. No dependencies.
//
//     const inlay = new Inlay({ url: "https://inlay.acme.com", key: process.env.INLAY_KEY });
//     inlay.track({ tenant_id: "northwind", event_name: "api_call", string_props: { model: "large" } });
//     (await inlay.query({ tenant_id: "northwind", event_name: "api_call", metric: "count", period: "7d" })).data;
//     (await inlay.embedSession({ tenant_id: "northwind", dashboard_id: "dash_1" })).embed_url;

export { Inlay } from "./client.js";
export type {
  EmbedSession,
  EmbedSessionRequest,
  Event,
  Options,
  Problem,
  Query,
  QueryAnswer,
  QueryRow,
  SqlAnswer,
} from "./client.js";
export { InlayError } from "./http.js";
export type { Fault } from "./http.js";
export { verifyWebhook, WebhookError } from "./webhooks.js";
