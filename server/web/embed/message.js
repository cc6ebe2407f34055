// @ts-check
// Entry of the pages that are only a message: not published, session ended, invalid link.
//
// The server drew the text in English. What is left is to say it in the viewer's language, to tell
// the host, so that it can mint a new session or hide the frame, and to give the frame its height.

import { pickLocale } from "../shared/locale.js";
import { speak, words } from "../shared/words.js";
import { createBridge, reportHeight } from "./bridge.js";
import { parseBoot } from "./boot.js";
import { createTheme, displayTheme } from "./theme.js";

const boot = parseBoot(document.getElementById("boot")?.textContent);
const bridge = createBridge({ origins: boot.origins, onTheme: (next) => theme.apply(next) });
const theme = createTheme(document.documentElement, (message) => bridge.error("invalid_theme", message));
const { code, message } = boot.error ?? { code: "internal", message: "" };
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const params = new URLSearchParams(location.search);

theme.apply(displayTheme(params.get("theme")));
await speak(pickLocale(params.get("locale") ?? navigator.language), document.documentElement);
const texts = {
  not_published: words.pageNotPublished,
  session_expired: words.pageExpired,
  invalid_link: words.pageInvalid,
};
const [heading, text] = texts[/** @type {keyof typeof texts} */ (code)] ?? words.pageFailed;
app.querySelector("h1")?.replaceChildren(heading);
app.querySelector(".message p")?.replaceChildren(text);

bridge.error(code, message, { retryable: code === "internal" });
reportHeight(app, bridge.post);
