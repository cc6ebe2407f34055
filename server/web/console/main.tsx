// Entry of the console: draws the page that the address names into the document that the server sent.

import { render } from "preact";
import { App } from "./app";

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
