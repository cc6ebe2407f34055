//! The document of the public demo: a fake product that frames a real embed.

use std::fmt::Write as _;

use super::markup::escape;

/// What the page shows as its own code.
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

const COLORS: [(&str, &str, &str); 6] = [
    ("primaryColor", "Primary", "#315ed9"),
    ("backgroundColor", "Background", "#f7f7f5"),
    ("cardBackground", "Card", "#ffffff"),
    ("cardBorder", "Card border", "#e6e5e1"),
    ("textColor", "Text", "#17181c"),
    ("mutedColor", "Muted text", "#6b6e78"),
];
const THEMES: [(&str, &str); 4] =
    [("inlay", "Inlay"), ("teal", "Teal"), ("rose", "Rose"), ("night", "Night")];

/// Draws the page. `style` and `script` are addresses; `base_url` is where hosts find the helper.
pub fn demo(style: &str, script: &str, base_url: &str, tenants: &[&str]) -> String {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Demo of an embedded dashboard</title><link rel=\"icon\" href=\"data:,\">",
    );
    put(&mut html, format_args!("<link rel=\"stylesheet\" href=\"{}\">", escape(style)));
    put(&mut html, format_args!("<script type=\"module\" src=\"{}\"></script>", escape(script)));
    html.push_str(
        "</head><body><div class=\"host\"><nav aria-label=\"Product\"><p class=\"brand\">Fabrikam API</p>\
         <span>Overview</span><span class=\"here\">Usage</span><span>Keys</span><span>Billing</span></nav>\
         <main><h1>Your usage</h1><p>This page plays a product of a customer of ours; what is below is the embed.</p>\
         <div id=\"dashboard\"></div></main>\
         <aside aria-label=\"What a host can do\"><h2>Try it</h2><div class=\"controls\">",
    );
    select(&mut html, "tenant", "Tenant", tenants.iter().map(|tenant| (*tenant, *tenant)));
    select(&mut html, "preset", "Theme", THEMES.into_iter());
    for (id, label, color) in COLORS {
        put(
            &mut html,
            format_args!(
                "<label>{label}<input type=\"color\" id=\"{id}\" value=\"{color}\"></label>"
            ),
        );
    }
    for (id, label) in [
        ("week", "Last 7 days"),
        ("enterprise", "Plan: enterprise"),
        ("clear", "Clear filters"),
        ("reload", "Reload data"),
    ] {
        put(&mut html, format_args!("<button type=\"button\" id=\"{id}\">{label}</button>"));
    }
    let code = escape(&CODE.replace("{base}", base_url));
    put(
        &mut html,
        format_args!(
            "</div><h2>Messages</h2><ol id=\"log\" tabindex=\"0\" aria-label=\"Messages\"></ol>\
             <h2>The code</h2><pre tabindex=\"0\" aria-label=\"The code\">{code}</pre></aside></div></body></html>"
        ),
    );
    html
}

fn select<'a>(
    html: &mut String,
    id: &str,
    label: &str,
    options: impl Iterator<Item = (&'a str, &'a str)>,
) {
    put(html, format_args!("<label>{label}<select id=\"{id}\">"));
    for (value, text) in options {
        put(html, format_args!("<option value=\"{}\">{}</option>", escape(value), escape(text)));
    }
    html.push_str("</select></label>");
}

fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(text);
}
