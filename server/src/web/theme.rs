//! Colours of a theme as rules of the shell, so that the first paint is right before any script.
//!
//! The script checks themes with the browser's own parser and guards contrast; the shell takes only
//! what is certainly a colour and nothing else. A value that is not goes unused here.
//!
//! ```text
//! theme                                                rules
//! {"primaryColor": "#0f766e", "mutedColor": "white"}   :root{--primary:#0f766e;--muted:white;}
//! {"primaryColor": "red;}body{display:none"}           (none)
//! {"primaryColor": "url(https://x.example)"}           (none)
//! {"cardBackground": "#16171b"}                        :root{--card:#16171b;} and the mode dark
//! ```

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::render::is_dark;

/// Theme key and the custom property it sets.
const TOKENS: [(&str, &str); 6] = [
    ("primaryColor", "--primary"),
    ("backgroundColor", "--bg"),
    ("cardBackground", "--card"),
    ("cardBorder", "--card-border"),
    ("textColor", "--text"),
    ("mutedColor", "--muted"),
];
/// Longest text of a colour, in bytes. The longest that is useful, `oklch()` with all its numbers, is shorter.
const COLOR_CHARS_MAX: usize = 80;
/// Names of colours that are taken. All others are left to the script.
const NAMES: [&str; 3] = ["transparent", "white", "black"];
/// Functions that are taken when their arguments are plain numbers: `rgb(1 2 3 / 50%)`.
const FUNCTIONS: [&str; 8] = ["rgb", "rgba", "hsl", "hsla", "hwb", "lab", "oklab", "oklch"];

/// A theme as the shell uses it: declarations of CSS, and the mode that decides about the palette.
#[derive(Debug, Clone, Default)]
pub struct Theme {
    declarations: String,
    mode: Option<&'static str>,
}

impl Theme {
    /// Of a stored theme, or of one in the address of a page. Values that are no colours are left out, without an error.
    pub fn of(theme: &Map<String, Value>) -> Self {
        Self { declarations: declarations(theme), mode: mode(theme) }
    }

    /// Style rules; empty where there is nothing to say.
    pub fn rules(&self) -> String {
        if self.declarations.is_empty() {
            return String::new();
        }
        format!(":root{{{}}}", self.declarations)
    }

    /// `light` or `dark`, where it is decided.
    pub fn mode(&self) -> Option<&'static str> {
        self.mode
    }
}

/// The tokens that a theme sets, as declarations.
fn declarations(theme: &Map<String, Value>) -> String {
    let mut css = String::new();
    for (key, token) in TOKENS {
        if let Some(color) = theme.get(key).and_then(Value::as_str).filter(|text| is_color(text)) {
            // Writing to a string cannot fail.
            let _ = write!(css, "{token}:{color};");
        }
    }
    css
}

/// `light` or `dark` where the theme decides it: by its mode, or by its card.
fn mode(theme: &Map<String, Value>) -> Option<&'static str> {
    match theme.get("mode").and_then(Value::as_str) {
        Some("light") => return Some("light"),
        Some("dark") => return Some("dark"),
        _ => {}
    }
    let card = theme.get("cardBackground").and_then(Value::as_str).and_then(hex)?;
    Some(if is_dark(card) { "dark" } else { "light" })
}

/// Hexadecimal colours, three names, and functions over three or four plain numbers: nothing that could
/// end a declaration or refer to anything. What else is a colour comes with the script.
fn is_color(text: &str) -> bool {
    if text.len() > COLOR_CHARS_MAX {
        return false;
    }
    if let Some(digits) = text.strip_prefix('#') {
        return matches!(digits.len(), 3 | 4 | 6 | 8)
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((function, inside)) => {
            let numbers = inside.split([' ', ',', '/']).filter(|part| !part.is_empty());
            let is_number = |part: &str| {
                let number = part.strip_suffix('%').unwrap_or(part);
                number.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte))
                    && number.parse::<f64>().is_ok()
            };
            let slashes = inside.matches('/').count();
            let (mut count, mut are_numbers) = (0, true);
            for part in numbers {
                count += 1;
                are_numbers &= is_number(part);
            }
            FUNCTIONS.contains(&function)
                && are_numbers
                && (count == 3 && slashes == 0 || count == 4 && slashes <= 1)
        }
        None => NAMES.contains(&text),
    }
}

/// The channels of `#rgb` or `#rrggbb`. `None` for a colour with an alpha channel: it has no brightness of its own.
fn hex(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#')?;
    let channel = |at: usize| match digits.len() {
        3 => u8::from_str_radix(&digits.get(at..=at)?.repeat(2), 16).ok(),
        6 => u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok(),
        _ => None,
    };
    Some([channel(0)?, channel(1)?, channel(2)?])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn theme(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn only_colors_become_rules() {
        let css = declarations(&theme(json!({
            "primaryColor": "#0f766e", "textColor": "rgb(1 2 3 / 50%)", "mutedColor": "white",
            "cardBorder": "transparent", "unknown": "#fff",
        })));
        let all =
            "--primary:#0f766e;--card-border:transparent;--text:rgb(1 2 3 / 50%);--muted:white;";
        assert_eq!(css, all);
        for hostile in [
            "red;}body{display:none",
            "url(https://x.example)",
            "var(--text)",
            "#12",
            "#ggg",
            "",
            "expression(1)",
            "rgb(1;2)",
            "rgb(var(--a))",
            "</style>",
            "red/**/",
            "RED",
            "é",
        ] {
            assert_eq!(declarations(&theme(json!({"primaryColor": hostile}))), "", "{hostile}");
        }
        assert_eq!(declarations(&theme(json!({"primaryColor": 3}))), "");
    }

    #[test]
    fn the_card_decides_unless_the_mode_does() {
        assert_eq!(mode(&theme(json!({"cardBackground": "#16171b"}))), Some("dark"));
        assert_eq!(mode(&theme(json!({"cardBackground": "#fff"}))), Some("light"));
        assert_eq!(mode(&theme(json!({"cardBackground": "#fff", "mode": "dark"}))), Some("dark"));
        assert_eq!(mode(&theme(json!({"mode": "auto"}))), None);
        assert_eq!(mode(&theme(json!({"cardBackground": "#fffé"}))), None);
        assert_eq!(mode(&theme(json!({}))), None);
    }
}
