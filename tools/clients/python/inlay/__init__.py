"""Inlay from Python: send events, query them, mint embed sessions, verify webhooks. Nothing but the standard library.

    from inlay import Inlay

    inlay = Inlay("https://inlay.acme.com", os.environ["INLAY_KEY"])
    inlay.track("northwind", "api_call", user_id="u1", string_props={"model": "large"}, numeric_props={"latency_ms": 120})
    inlay.query(tenant_id="northwind", event_name="api_call", metric="count", period="7d")["data"]
    inlay.embed_session("northwind", "dash_1").embed_url
"""

from ._client import Dropped, EmbedSession, Inlay, QueryAnswer, Rejected, SqlAnswer
from ._http import InlayError
from ._webhooks import WebhookError, verify_webhook

__all__ = [
    "Dropped",
    "EmbedSession",
    "Inlay",
    "InlayError",
    "QueryAnswer",
    "Rejected",
    "SqlAnswer",
    "WebhookError",
    "verify_webhook",
]
__version__ = "0.1.0"
