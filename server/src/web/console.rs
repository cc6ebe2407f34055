//! The HTML document of the console: one for every page, since the script draws what the address names.
//!
//! The script and what it imports are named in the head, with the module of
//! the page that the address asks for, so that the browser fetches them at once:
//!
//! ```text
//! GET /console/alerts/7
//! <html lang="en" data-mode="dark"><head>…
//!   <link rel="modulepreload" href="/assets/3b963ae98bb164ec/dist/console/main.js">
//!   <link rel="modulepreload" href="/assets/3b963ae98bb164ec/dist/console/alert.js">
//!   …
//! <body><div id="app"></div>…
//!   <script type="application/json" id="boot">{"base_url":"https://inlay.acme.com","billing":true,"demo":false,"me":{…},"nonce":"…"}</script>
//! ```

use askama::Template;

use super::{
    markup::{escape_json, rendered},
    page::Assets,
};
use crate::error::Result;

/// Everything in the document.
#[derive(Debug)]
pub struct ConsolePage<'a> {
    /// Where the files are, and which modules the page needs, the entry first.
    pub assets: &'a Assets,
    /// `light` or `dark`, where the user has chosen one.
    pub mode: Option<&'a str>,
    /// The boot block as JSON text; escaped here.
    pub boot_json: &'a str,
}

/// Values of the template `console.html`.
#[derive(Template)]
#[template(path = "console.html")]
struct ConsoleDocument<'a> {
    assets: &'a Assets,
    mode: Option<&'a str>,
    boot: String,
}

/// Draws the document.
///
/// Errors: none that is expected; what the template says.
pub fn console(page: &ConsolePage<'_>) -> Result<String> {
    let boot = escape_json(page.boot_json);
    rendered(&ConsoleDocument { assets: page.assets, mode: page.mode, boot })
}

/// The module of the page at a path below `/console/`:
///
/// ```text
/// (empty)             dist/console/start.js
/// embed-sessions      dist/console/embed_sessions.js
/// alerts              dist/console/alerts.js        the list
/// alerts/7            dist/console/alert.js         one of them
/// reset-password      dist/console/entrance.js      all pages before one is logged in
/// ```
///
/// A path that no page has names a module that does not exist; then only the common modules are listed.
pub fn module_of(path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or("start");
    let name = match (first, parts.next()) {
        ("login" | "register" | "invite" | "forgot-password" | "reset-password", _) => "entrance",
        (list, Some(_)) => list.trim_end_matches('s'),
        (page, None) => page,
    };
    format!("dist/console/{}.js", name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Files;

    #[test]
    fn an_address_names_the_module_that_draws_it() {
        let files = Files::load();
        for (path, module) in [
            ("", "start"),
            ("embed-sessions", "embed_sessions"),
            ("alerts/7", "alert"),
            ("reset-password", "entrance"),
        ] {
            let path = module_of(path);
            assert_eq!(path, format!("dist/console/{module}.js"));
            assert!(files.find(&path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_the_page_is_told_cannot_end_its_block() {
        let assets = Assets {
            base: "/assets/1".to_owned(),
            modules: vec!["dist/console/main.js".to_owned()],
        };
        let boot_json = "{\"org\":\"</script><b>\"}";
        let html =
            console(&ConsolePage { assets: &assets, mode: Some("dark\">"), boot_json }).unwrap();
        assert!(!html.contains("</script><b>"), "{html}");
        assert!(html.contains("data-mode=\"dark&#34;&#62;\""));
    }
}
