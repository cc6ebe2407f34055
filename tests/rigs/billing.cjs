// What the billing provider's own library says of a signature. It reads one question a line
// ({"header", "body", "key"}, or {"sign": {"ts", "body", "key"}}) and answers one line each.

"use strict";

const readline = require("node:readline");
const { Paddle } = require("@paddle/paddle-node-sdk");
const { createHmac } = require("node:crypto");

const webhooks = new Paddle("a key that is not used").webhooks;

async function answer(question) {
  if (question.sign) {
    const { ts, body, key } = question.sign;
    return createHmac("sha256", key).update(`${ts}:${body}`).digest("hex");
  }
  try {
    return await webhooks.isSignatureValid(question.body, question.key, question.header);
  } catch {
    return false;
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  }
})();
