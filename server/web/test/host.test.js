// When sessions are renewed, and what a host's callback may give.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, claimsOf, renewalMs, retryMs } from "../host/session.js";

/** @param {any} claims */
const url = (claims) =>
  `https://a.example/embed/d?token=x.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.y`;

test("a session is renewed after four fifths of its life, whatever time it is", () => {
  for (const iat of [0, 1_700_000_000, 9_999_999_999]) {
    assert.equal(Math.round(renewalMs(url({ iat, exp: iat + 1000 }), 0)), 720_000);
    assert.equal(Math.round(renewalMs(url({ iat, exp: iat + 1000 }), 0.5)), 800_000);
    assert.ok(renewalMs(url({ iat, exp: iat + 1000 }), 1) < 1_000_000);
  }
});

test("never sooner than after ten seconds, and without a readable token after minutes", () => {
  assert.equal(renewalMs(url({ iat: 0, exp: 5 }), 0.5), 10_000);
  for (const odd of [
    "https://a.example/",
    "nonsense",
    "https://a.example/?token=a",
    "https://a.example/?token=a.%%.c",
    url({}),
    url({ iat: "x", exp: null }),
  ]) {
    assert.equal(Math.round(renewalMs(odd, 0.5)), 240_000, odd);
  }
});

test("claims are read as base64url", () => {
  const claims = { sub: "d", exp: 7, odd: "\u00bf\u00fe>?" };
  assert.equal(claimsOf(url(claims)).sub, "d");
  assert.equal(claimsOf(url(claims)).exp, 7);
});

test("failures are tried again five times, each later", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(retryMs), [2000, 4000, 8000, 16_000, 32_000, null, null]);
});

test("a callback may give the address or the whole answer of the API", () => {
  assert.equal(addressOf("https://a"), "https://a");
  assert.equal(addressOf({ embed_url: "https://b", token: "t" }), "https://b");
  for (const odd of [null, undefined, 7, {}, { embed_url: 3 }, { error: "no" }]) assert.equal(addressOf(odd), null);
});
