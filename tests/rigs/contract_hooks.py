"""How the generator of `contract.py` writes and reads one JSON value a line."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def write_lines(_, value):
    return json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def read_lines(_, response):
    return [json.loads(line) for line in response.content.splitlines() if line.strip()]
