// The boot data in the page, so that the first paint needs no request.
//
// `<script type="application/json" id="boot">{"me": {…}, "base_url": "https://inlay.example.com", …}</script>`

import type { Schemas } from "./api/client";

export interface Boot {
  /** The user behind the cookie; null without a session. */
  me: Schemas["Me"] | null;
  /** Where customers' servers reach this server. */
  base_url: string;
  /** Whether the server runs with `--demo`. */
  demo: boolean;
  /** Whether plans can be bought on this server. */
  billing: boolean;
  /** Allows the SQL editor's style sheet in the page's policy. */
  nonce: string;
}

const block = document.getElementById("boot")?.textContent;

export const boot: Boot = {
  me: null,
  base_url: location.origin,
  demo: false,
  billing: false,
  nonce: "",
  ...JSON.parse(block || "{}"),
};
