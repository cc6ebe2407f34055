// @ts-check
// Entry of the pages that are only a message: not published, session ended, invalid link.
//
// The server drew the text. What is left is to tell the host, so that it can mint a new session or
// hide the frame, and to give the frame its height.

import { createBridge, reportHeight } from "./bridge.js";
import { parseBoot } from "./boot.js";

const boot = parseBoot(document.getElementById("boot")?.textContent);
const bridge = createBridge({ origins: boot.origins });
const { code, message } = boot.error ?? { code: "internal", message: "" };

bridge.error(code, message, { retryable: code === "internal" });
reportHeight(/** @type {HTMLElement} */ (document.getElementById("app")), bridge.post);
