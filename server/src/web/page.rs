//! The HTML documents of the embed page.
//!
//! A dashboard is drawn by the server as a shell: title, periods, filters, and every card with its
//! title at its final place and height, a skeleton inside. So the layout is right before any script
//! runs, and nothing moves when the data comes. The script then draws the same markup, alive.
//!
//! The documents obey a strict content policy: no inline script, no `style` attribute. The places
//! of the cards are rules in one `<style>` element that carries the nonce of the response. What the
//! script needs to know lies in a JSON block, which browsers do not execute.
//!
//! This module turns values into text. It knows neither requests nor tokens.

use std::fmt::Write as _;

use super::{
    markup::{escape, escape_json},
    theme::Theme,
};
use crate::app::WIDGET_KINDS;

/// Columns of the grid.
const COLUMNS: u32 = 12;

/// Largest height of a card in rows; beyond it a stored layout is a mistake.
const ROWS_MAX: u32 = 40;

/// Style sheets of every document.
const STYLES: [&str; 1] = ["dist/embed.css"];

const FONT: &str = "fonts/inter.woff2";

/// The language of a page, as far as the shell must know it: what is written is English, and the script
/// says it again. Direction and name are right from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(&'static str);

/// Languages that the script speaks, English first.
const LANGUAGES: [&str; 5] = ["en", "ar", "de", "fr", "ja"];

impl Language {
    /// The one for a locale, or for the first of a list as browsers send it.
    pub fn of(wanted: &str) -> Self {
        let first = wanted.split([',', ';', '-', '_']).next().unwrap_or_default().trim();
        let known = LANGUAGES.iter().find(|known| first.eq_ignore_ascii_case(known));
        Self(known.copied().unwrap_or(LANGUAGES[0]))
    }

    fn direction(self) -> &'static str {
        if self.0 == "ar" { "rtl" } else { "ltr" }
    }
}

/// A widget as the shell shows it. `x` counts from 0; one row is 44 px and the gap is 16 px.
#[derive(Clone, Debug)]
pub struct Card {
    /// What is drawn; picks the skeleton.
    pub kind: String,
    /// The title in the card's head.
    pub title: String,
    /// Quiet text beside the title.
    pub subtitle: Option<String>,
    /// The content of a text, which needs no data.
    pub text: Option<String>,
    /// First column, 0 to 11.
    pub x: u32,
    /// First row, from 0.
    pub y: u32,
    /// Width in columns, 1 to 12.
    pub w: u32,
    /// Height in rows.
    pub h: u32,
}

/// Everything in the document of a dashboard.
#[derive(Debug)]
pub struct DashboardPage<'a> {
    /// The dashboard's name, also the title of the document.
    pub name: &'a str,
    /// Widgets that this session may see, in any order.
    pub cards: &'a [Card],
    /// Periods on offer; a single one shows no control.
    pub periods: &'a [String],
    /// The period shown first.
    pub period: &'a str,
    /// Whether dates may be chosen instead of a period.
    pub has_dates: bool,
    /// Whether there is anything to filter by.
    pub has_filter: bool,
    /// Locked filters: dimension and value.
    pub locked: &'a [(String, String)],
    /// Language of the page.
    pub language: Language,
    /// Colours that the first paint must have.
    pub theme: &'a Theme,
    /// The boot block as JSON text; escaped here.
    pub boot_json: &'a str,
    /// Where the files of the page are.
    pub assets: &'a Assets,
    /// The nonce in the response's content policy.
    pub nonce: &'a str,
}

/// Where the static files are.
#[derive(Clone, Debug)]
pub struct Assets {
    /// Path under which the tree of `server/web/` is served, for example `/assets/3fa9`.
    pub base: String,
    /// Every module of the dashboard page, for example `dist/embed.js`, the entry first. The browser fetches
    /// them at once instead of finding them import by import.
    pub modules: Vec<String>,
}

/// Why there is no dashboard to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The dashboard exists but is not published.
    NotPublished,
    /// The session was valid and has ended.
    Expired,
    /// A bad or foreign token, or a dashboard that is gone: one text, so that nothing is disclosed.
    InvalidLink,
    /// The server failed.
    Failed,
}

impl Message {
    fn heading(self) -> &'static str {
        match self {
            Self::NotPublished => "This dashboard isn’t published",
            Self::Expired => "Your session has ended",
            Self::InvalidLink => "This link isn’t valid",
            Self::Failed => "This dashboard couldn’t load",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotPublished => "Its owner can publish it to make it visible here.",
            Self::Expired => "Reload the page to continue.",
            Self::InvalidLink => "The dashboard link is incomplete or was changed.",
            Self::Failed => "Reload the page to try again.",
        }
    }

    /// Drawing of a 30 by 30 icon.
    fn icon(self) -> &'static str {
        match self {
            Self::NotPublished => {
                "<rect x=\"2\" y=\"4\" width=\"26\" height=\"22\" rx=\"4\"/>\
                 <path d=\"M2 11h26M7 17h8M7 21h11\"/>"
            }
            Self::Expired => "<circle cx=\"15\" cy=\"15\" r=\"13\"/><path d=\"M15 8v7l4.5 3\"/>",
            Self::InvalidLink => {
                "<path d=\"M12.5 17.5a5 5 0 0 0 7.1 0l4-4a5 5 0 0 0-7.1-7.1l-1.6 1.6\
                 M17.5 12.5a5 5 0 0 0-7.1 0l-4 4a5 5 0 0 0 7.1 7.1l1.6-1.6\"/>"
            }
            Self::Failed => {
                "<circle cx=\"15\" cy=\"15\" r=\"13\"/><path d=\"M15 8v8M15 20.5v.5\"/>"
            }
        }
    }
}

/// The document of a dashboard.
pub fn dashboard(page: &DashboardPage) -> String {
    let mut cards: Vec<&Card> = page.cards.iter().collect();
    cards.sort_by_key(|card| (card.y, card.x));

    let mut html = String::with_capacity(4096 + cards.len() * 512 + page.boot_json.len());
    open_document(&mut html, page.name, page.assets, (page.theme, page.language));
    put(&mut html, format_args!("<style nonce=\"{}\">", escape(page.nonce)));
    html.push_str(&page.theme.rules());
    for (index, card) in cards.iter().enumerate() {
        place(&mut html, index, card);
    }
    html.push_str("</style></head><body><main id=\"app\"><header class=\"head\">");
    put(&mut html, format_args!("<h1>{}</h1><p class=\"updated\"></p>", escape(page.name)));
    periods(&mut html, page.periods, page.period, page.has_dates);
    tools(&mut html, page.has_filter);
    html.push_str("</header>");
    chips(&mut html, page.locked);
    html.push_str("<div class=\"grid\">");
    let lone = lone_numbers(&cards);
    for (index, card) in cards.iter().enumerate() {
        section(&mut html, index, card, lone.contains(&index));
    }
    html.push_str("</div></main>");
    close_document(&mut html, page.boot_json);
    html
}

/// The document that says why there is no dashboard. Its script posts `error` and `resize` to the
/// host, so `boot_json` carries the error's code.
pub fn message(
    kind: Message,
    assets: &Assets,
    (theme, language): (&Theme, Language),
    boot_json: &str,
    nonce: &str,
) -> String {
    let mut html = String::with_capacity(2048);
    open_document(&mut html, kind.heading(), assets, (theme, language));
    let (nonce, rules) = (escape(nonce), theme.rules());
    put(&mut html, format_args!("<style nonce=\"{nonce}\">{rules}</style></head><body>"));
    put(
        &mut html,
        format_args!(
            "<main id=\"app\"><div class=\"message\">\
             <svg width=\"30\" height=\"30\" aria-hidden=\"true\">{}</svg><h1>{}</h1><p>{}</p></div></main>",
            kind.icon(),
            kind.heading(),
            kind.text()
        ),
    );
    close_document(&mut html, boot_json);
    html
}

fn open_document(
    html: &mut String,
    title: &str,
    assets: &Assets,
    (theme, language): (&Theme, Language),
) {
    let base = escape(&assets.base);
    let mode = theme.mode().map_or_else(String::new, |mode| format!(" data-mode=\"{mode}\""));
    let (name, direction) = (language.0, language.direction());
    put(
        html,
        format_args!(
            "<!doctype html><html lang=\"{name}\" dir=\"{direction}\"{mode}><head><meta charset=\"utf-8\">"
        ),
    );
    html.push_str(
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\">",
    );
    put(html, format_args!("<title>{}</title>", escape(title)));
    for style in STYLES {
        put(html, format_args!("<link rel=\"stylesheet\" href=\"{base}/{style}\">"));
    }
    // Fonts are fetched without credentials even from the own origin, hence `crossorigin`.
    put(
        html,
        format_args!(
            "<link rel=\"preload\" href=\"{base}/{FONT}\" as=\"font\" type=\"font/woff2\" crossorigin>"
        ),
    );
    for module in &assets.modules {
        put(html, format_args!("<link rel=\"modulepreload\" href=\"{base}/{}\">", escape(module)));
    }
    let entry = assets.modules.first().map(|entry| escape(entry)).unwrap_or_default();
    put(html, format_args!("<script type=\"module\" src=\"{base}/{entry}\"></script>"));
}

fn close_document(html: &mut String, boot_json: &str) {
    html.push_str("<script type=\"application/json\" id=\"boot\">");
    html.push_str(&escape_json(boot_json));
    html.push_str("</script></body></html>");
}

/// The rule that puts a card at its place. Grid lines count from 1.
fn place(html: &mut String, index: usize, card: &Card) {
    let x = card.x.min(COLUMNS - 1);
    let w = card.w.clamp(1, COLUMNS - x);
    let h = card.h.clamp(1, ROWS_MAX);
    let (x, y) = (x + 1, card.y.saturating_add(1));
    put(html, format_args!(".c{index}{{--x:{x};--y:{y};--w:{w};--h:{h}}}"));
}

/// The period control, not yet alive: the script enables it.
fn periods(html: &mut String, periods: &[String], current: &str, has_dates: bool) {
    if periods.len() < 2 {
        return;
    }
    html.push_str("<div class=\"segments\" role=\"group\" aria-label=\"Period\">");
    for period in periods {
        let pressed = if period == current { " aria-pressed=\"true\"" } else { "" };
        let text = escape(period);
        put(html, format_args!("<button type=\"button\" disabled{pressed}>{text}</button>"));
    }
    if has_dates {
        html.push_str("<button type=\"button\" disabled>Custom</button>");
    }
    html.push_str("</div>");
}

/// The filter button and the menu, at the places where the script makes them live.
fn tools(html: &mut String, has_filter: bool) {
    if has_filter {
        html.push_str(
            "<button type=\"button\" class=\"tool\" disabled><svg width=\"14\" height=\"12\" aria-hidden=\"true\">\
             <path d=\"M1 2h12M3 6h8M5 10h4\"/></svg>Filter</button>",
        );
    }
    html.push_str(
        "<button type=\"button\" class=\"tool menu-of\" disabled aria-label=\"Download\">\
         <svg width=\"16\" height=\"16\" aria-hidden=\"true\"><path d=\"M8 2v8M4.5 6.5L8 10l3.5-3.5M2.5 13.5h11\"/></svg></button>",
    );
}

fn chips(html: &mut String, locked: &[(String, String)]) {
    if locked.is_empty() {
        return;
    }
    html.push_str("<ul class=\"chips\" aria-label=\"Filters\">");
    for (name, value) in locked {
        let (name, value) = (escape(&humanize(name)), escape(value));
        put(
            html,
            format_args!(
                "<li class=\"locked\"><svg width=\"12\" height=\"12\" aria-hidden=\"true\">\
                 <path d=\"M2.5 5.5h7v5h-7zM4 5.5V3.8a2 2 0 0 1 4 0v1.7\"/></svg>\
                 <span>{name}</span><b><bdi>{value}</bdi></b><span class=\"vh\">locked</span></li>"
            ),
        );
    }
    html.push_str("</ul>");
}

fn section(html: &mut String, index: usize, card: &Card, lone: bool) {
    let kind = WIDGET_KINDS.iter().find(|kind| **kind == card.kind).copied().unwrap_or("other");
    let lone = if lone { " lone" } else { "" };
    let title = escape(&card.title);
    put(
        html,
        format_args!(
            "<section class=\"card is-{kind}{lone} c{index}\" aria-labelledby=\"t{index}\" aria-busy=\"true\">\
             <header><h2 id=\"t{index}\">{title}</h2>"
        ),
    );
    if let Some(subtitle) = &card.subtitle {
        put(html, format_args!("<p>{}</p>", escape(subtitle)));
    }
    html.push_str("</header><div class=\"body\">");
    if let Some(text) = card.text.as_deref().filter(|_| kind == "text") {
        put(html, format_args!("<p class=\"prose\">{}</p>", escape(text)));
    }
    if kind != "text" {
        put(
            html,
            format_args!(
                "<div class=\"skeleton is-{kind}\" aria-hidden=\"true\"><i></i><i></i></div>"
            ),
        );
    }
    html.push_str("</div></section>");
}

/// Numbers stand two abreast on narrow pages; the last of an odd run takes the whole width.
/// `web/embed/boot.js` follows the same rule.
fn lone_numbers(cards: &[&Card]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut run = 0;
    for (index, card) in cards.iter().enumerate() {
        run = if card.kind == "number" { run + 1 } else { 0 };
        let next_is_number = cards.get(index + 1).is_some_and(|next| next.kind == "number");
        if run % 2 == 1 && !next_is_number {
            lone.push(index);
        }
    }
    lone
}

/// A name from the data as a label: `error_code` becomes `Error code`.
fn humanize(name: &str) -> String {
    let spaced =
        name.split(['_', '-']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let mut chars = spaced.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(kind: &str, title: &str, x: u32, y: u32) -> Card {
        Card {
            kind: kind.into(),
            title: title.into(),
            subtitle: None,
            text: None,
            x,
            y,
            w: 6,
            h: 4,
        }
    }

    fn assets() -> Assets {
        Assets { base: "/assets/ab12".into(), modules: vec!["dist/message.js".into()] }
    }

    fn render(name: &str, cards: &[Card], periods: &[String], boot: &str) -> String {
        dashboard(&DashboardPage {
            name,
            cards,
            periods,
            period: "7d",
            has_dates: false,
            has_filter: true,
            language: Language::of("en"),
            theme: &Theme::default(),
            locked: &[("work_space".into(), "<b>".into())],
            boot_json: boot,
            assets: &assets(),
            nonce: "n0",
        })
    }

    #[test]
    fn a_language_is_one_that_the_script_speaks() {
        for (wanted, name, direction) in [
            ("ar-EG", "ar", "rtl"),
            ("DE", "de", "ltr"),
            ("fr-CH, fr;q=0.9, en;q=0.8", "fr", "ltr"),
            ("sv", "en", "ltr"),
            ("\"><script>", "en", "ltr"),
            ("", "en", "ltr"),
        ] {
            let language = Language::of(wanted);
            assert_eq!((language.0, language.direction()), (name, direction), "{wanted}");
        }
    }

    #[test]
    fn text_never_becomes_markup() {
        let html =
            render("<script>alert(1)</script>", &[card("line", "\"><img>", 0, 0)], &[], "{}");
        assert!(!html.contains("<script>alert"));
        assert!(!html.contains("<img>"));
        assert!(html.contains("<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>"));
        assert!(html.contains("<span>Work space</span><b><bdi>&lt;b&gt;</bdi></b>"));
    }

    #[test]
    fn a_text_is_there_before_any_script_and_stays_text() {
        let text = Card { text: Some("a <b>\n\"c\"".into()), ..card("text", "t", 0, 0) };
        let html = render("a", std::slice::from_ref(&text), &[], "{}");
        assert!(html.contains("<p class=\"prose\">a &lt;b&gt;\n&quot;c&quot;</p>"));
        let other = Card { kind: "line".into(), ..text };
        assert!(!render("a", &[other], &[], "{}").contains("prose"));
    }

    #[test]
    fn boot_block_cannot_end_its_element() {
        let html = render("a", &[], &[], "{\"name\":\"</script>&\u{2028}\"}");
        assert!(html.contains(r#"{"name":"\u003c/script\u003e\u0026\u2028"}"#));
    }

    #[test]
    fn no_document_has_a_style_attribute_or_inline_script() {
        for html in [
            render("a", &[card("number", "n", 0, 0)], &["7d".into(), "30d".into()], "{}"),
            message(
                Message::Expired,
                &assets(),
                (&Theme::default(), Language::of("en")),
                "{}",
                "n0",
            ),
        ] {
            assert!(!html.contains(" style="));
            assert!(!html.contains("<script>"));
            assert!(!html.contains(" on"), "no event attribute");
        }
    }

    #[test]
    fn cards_are_written_in_reading_order_at_their_places() {
        let cards = [
            card("line", "third", 0, 4),
            card("bar", "second", 6, 0),
            card("table", "first", 0, 0),
        ];
        let html = render("a", &cards, &[], "{}");
        let at = |text: &str| html.find(text).expect("card is written");
        assert!(at(">first<") < at(">second<") && at(">second<") < at(">third<"));
        assert!(html.contains(".c0{--x:1;--y:1;--w:6;--h:4}.c1{--x:7;--y:1;--w:6;--h:4}"));
        assert!(html.contains(".c2{--x:1;--y:5;--w:6;--h:4}"));
    }

    #[test]
    fn a_layout_outside_the_grid_is_pulled_inside() {
        let wide = Card { x: 40, w: 99, h: 0, ..card("line", "a", 0, 0) };
        assert!(render("a", &[wide], &[], "{}").contains("{--x:12;--y:1;--w:1;--h:1}"));
    }

    #[test]
    fn a_single_period_shows_no_control() {
        let one = render("a", &[], &["7d".into()], "{}");
        let two = render("a", &[], &["7d".into(), "30d".into()], "{}");
        assert!(!one.contains("segments"));
        assert!(two.contains("<button type=\"button\" disabled aria-pressed=\"true\">7d</button>"));
    }

    #[test]
    fn an_unknown_kind_takes_the_plain_skeleton() {
        let html = render("a", &[card("\"x", "a", 0, 0)], &[], "{}");
        assert!(html.contains("class=\"card is-other c0\""));
    }

    #[test]
    fn the_last_number_of_an_odd_run_is_lone() {
        let cards: Vec<Card> = ["number", "number", "number", "line", "number"]
            .iter()
            .map(|kind| card(kind, "a", 0, 0))
            .collect();
        assert_eq!(lone_numbers(&cards.iter().collect::<Vec<_>>()), [2, 4]);
    }

    #[test]
    fn every_message_says_what_happened_and_loads_its_script() {
        for kind in [Message::NotPublished, Message::Expired, Message::InvalidLink, Message::Failed]
        {
            let html = message(
                kind,
                &assets(),
                (&Theme::default(), Language::of("en")),
                "{\"error\":{}}",
                "n0",
            );
            assert!(html.contains(kind.heading()) && html.contains(kind.text()));
            assert!(html.contains("src=\"/assets/ab12/dist/message.js\""));
        }
    }
}
