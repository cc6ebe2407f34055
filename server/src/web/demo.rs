//! The document of the public demo: a fake product that frames a real embed.
//!
//! `GET /demo` shows the product of one company, "Fabrikam API", with the dashboard of a customer that the visitor can choose, controls for
//! its theme, and the few lines of code that a host page needs.

use askama::Template;

use super::markup::rendered;
use crate::error::Result;

/// Code that the page shows as its own; `{base}` becomes the address of the server.
const CODE: &str = r##"import { mountDashboard } from
  "{base}/sdk/v1/embed.js";

const dash = mountDashboard("#usage", {
  // Your server calls POST /v1/embed-sessions
  fetchEmbedUrl: async ({ signal }) =>
    (await fetch("/api/usage-embed", {
      method: "POST", signal,
    })).json(),
});
dash.on("drill", ({ dimension, value }) =>
  console.log(dimension, value));
dash.setFilters({ period: "7d" });"##;

/// Key of the theme, label, and first value of each control for a colour.
const COLORS: [(&str, &str, &str); 6] = [
    ("primaryColor", "Primary", "#315ed9"),
    ("backgroundColor", "Background", "#f7f7f5"),
    ("cardBackground", "Card", "#ffffff"),
    ("cardBorder", "Card border", "#e6e5e1"),
    ("textColor", "Text", "#17181c"),
    ("mutedColor", "Muted text", "#6b6e78"),
];
/// Value and label of each theme that a visitor can choose.
const THEMES: [(&str, &str); 4] =
    [("inlay", "Inlay"), ("teal", "Teal"), ("rose", "Rose"), ("night", "Night")];

/// Values of the template `demo.html`.
#[derive(Template)]
#[template(path = "demo.html")]
struct DemoPage<'a> {
    style: &'a str,
    script: &'a str,
    tenants: &'a [&'a str],
    code: String,
}

/// Draws the page. `style` and `script` are addresses such as `/assets/3b963ae98bb164ec/dist/demo.css`; `base_url` is where hosts find the
/// helper; `tenants` are the customers to choose from.
pub fn demo(style: &str, script: &str, base_url: &str, tenants: &[&str]) -> Result<String> {
    let code = CODE.replace("{base}", base_url);
    rendered(&DemoPage { style, script, tenants, code })
}
