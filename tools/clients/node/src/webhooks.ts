// Signatures of webhooks, as Standard Webhooks has them.
//
//     webhook-id: 0197…                        the same at every attempt
//     webhook-timestamp: 1614265330            seconds since 1970, of the attempt
//     webhook-signature: v1,g0hM9SsE+OTP…=     HMAC-SHA256 of `id.timestamp.body`

import { createHmac, timingSafeEqual } from "node:crypto";

const KEY_BYTES_MIN = 16;

/** A request that is not a webhook of this rule, or an old one that somebody sends again. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

/** Headers as Node, Express and `fetch` have them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Checks a webhook's signature and age; returns its id, by which a receiver recognises one that it has. Throws
 * `WebhookError`, and `TypeError` for a secret that is none.
 *
 * `secret` is the rule's `webhook_secret` (`whsec_…`), `body` the bytes as they came, not JSON that was parsed and written again.
 */
export function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: Uint8Array | string,
  { toleranceSeconds = 300, now = Date.now() }: { toleranceSeconds?: number; now?: number } = {},
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  // Whoever leaves it empty would accept everybody's.
  if (key.length < KEY_BYTES_MIN) throw new TypeError("secret is no webhook_secret of a rule");
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!id || !timestamp || !signatures || !/^\d+$/.test(timestamp)) {
    throw new WebhookError("webhook-id, webhook-timestamp or webhook-signature is missing");
  }
  if (!(Math.abs(now / 1_000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookError("the webhook is too old, or a clock is wrong");
  }
  const mac = createHmac("sha256", key);
  const expected = Buffer.from(`v1,${mac.update(`${id}.${timestamp}.`).update(body).digest("base64")}`);
  const isRight = (text: string) => {
    const signature = Buffer.from(text);
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  };
  if (!signatures.split(" ").some(isRight)) throw new WebhookError("no signature is right");
  return id;
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([known]) => known.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found[0] : found;
}
