"""Signatures of webhooks, as Standard Webhooks has them.

    webhook-id: 0197…                        the same at every attempt
    webhook-timestamp: 1614265330            seconds since 1970, of the attempt
    webhook-signature: v1,g0hM9SsE+OTP…=     HMAC-SHA256 of `id.timestamp.body`
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Mapping


KEY_BYTES_MIN = 16


class WebhookError(Exception):
    """A request that is not a webhook of this rule, or an old one that somebody sends again."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, tolerance_seconds: float = 300,
                   now: float | None = None) -> str:  # fmt: skip
    """Checks a webhook's signature and age; returns its id, by which a receiver recognises one that it has.

    `secret` is the rule's `webhook_secret` (`whsec_…`), `body` the bytes as they came. Raises `WebhookError`, and `ValueError` for a
    secret that is none.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    # Whoever leaves it empty would accept everybody's.
    if len(key) < KEY_BYTES_MIN:
        raise ValueError("secret is no webhook_secret of a rule")
    message, timestamp = lower.get("webhook-id", ""), lower.get("webhook-timestamp", "")
    signatures = lower.get("webhook-signature", "")
    are_there = message and signatures and all(text.isascii() for text in (message, timestamp, signatures))
    if not are_there or not timestamp.isdigit() or len(timestamp) > 15:
        raise WebhookError("webhook-id, webhook-timestamp or webhook-signature is missing")
    seconds = int(timestamp)
    if abs((time.time() if now is None else now) - seconds) > tolerance_seconds:
        raise WebhookError("the webhook is too old, or a clock is wrong")
    signed = b".".join((message.encode(), timestamp.encode(), body))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    if not any([hmac.compare_digest(expected.encode(), one.encode()) for one in signatures.split()]):
        raise WebhookError("no signature is right")
    return message
