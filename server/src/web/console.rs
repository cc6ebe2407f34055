//! The HTML document of the console: one for every page, since the script draws what the address names.
//!
//! `console(&ConsolePage { title: "Inlay", … })`. The script and what it imports are named in the head, with the module of
//! the page that the address asks for, so that the browser fetches them at once.

use std::fmt::Write as _;

use super::{
    markup::{escape, escape_json},
    page::Assets,
};

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

/// Draws the document.
pub fn console(page: &ConsolePage<'_>) -> String {
    let base = escape(&page.assets.base);
    let mode =
        page.mode.map_or_else(String::new, |mode| format!(" data-mode=\"{}\"", escape(mode)));
    let mut html = format!(
        "<!doctype html><html lang=\"en\"{mode}><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\"><title>Inlay</title>\
         <link rel=\"stylesheet\" href=\"{base}/dist/console.css\">\
         <link rel=\"preload\" href=\"{base}/fonts/inter.woff2\" as=\"font\" type=\"font/woff2\" crossorigin>"
    );
    for module in &page.assets.modules {
        let _ = write!(html, "<link rel=\"modulepreload\" href=\"{base}/{}\">", escape(module));
    }
    let entry = page.assets.modules.first().map(|entry| escape(entry)).unwrap_or_default();
    let _ = write!(
        html,
        "<script type=\"module\" src=\"{base}/{entry}\"></script></head><body><div id=\"app\"></div>\
         <noscript>The console needs JavaScript. The API does not: <a href=\"/docs\">/docs</a>.</noscript>\
         <script type=\"application/json\" id=\"boot\">{}</script></body></html>",
        escape_json(page.boot_json)
    );
    html
}

/// The module of the page at a path below `/console/`: `alerts/7` is drawn by `alert`.
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
        let html = console(&ConsolePage { assets: &assets, mode: Some("dark\">"), boot_json });
        assert!(!html.contains("</script><b>"), "{html}");
        assert!(html.contains("data-mode=\"dark&quot;&gt;\""));
    }
}
