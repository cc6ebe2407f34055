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
//!
//! ```text
//! GET /embed/01a21f85-…?token=…
//! <!doctype html><html lang="en" dir="ltr">…
//! <style nonce="63a5…">.c0{--x:1;--y:1;--w:3;--h:3}.c1{--x:4;--y:1;--w:9;--h:3}</style>…
//! <section class="card is-number lone c0" aria-labelledby="t0" aria-busy="true"><header><h2 id="t0">Calls</h2></header>…</section>
//! <section class="card is-bar_list c1" aria-labelledby="t1" aria-busy="true">…</section>…
//! <script type="application/json" id="boot">{…,"periods":["24h","7d","30d","90d"],…,"widgets":[…],"data":{"calls":{"data":[{"value":32}],…}}}</script>
//! ```

use std::fmt::Write as _;

use askama::Template;

use super::{
    markup::{escape_json, rendered},
    theme::Theme,
};
use crate::{app::WIDGET_KINDS, error::Result};

/// Columns of the grid.
const COLUMNS: u32 = 12;

/// Pixels of a card that are enough to say that there is nothing.
const FIT_MIN_PX: usize = 196;

/// Largest height of a card in rows; beyond it a stored layout is a mistake.
const ROWS_MAX: u32 = 40;

/// The language of a page, as far as the shell must know it: what is written is English, and the script
/// says it again. Direction and name are right from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(&'static str);

/// Languages that the script speaks, English first.
const LANGUAGES: [&str; 5] = ["en", "ar", "de", "fr", "ja"];

impl Language {
    /// The one for a locale, or for the first of a list as browsers send it: `ar-EG` is Arabic, `fr-CH, fr;q=0.9, en;q=0.8` French. English
    /// for all others.
    pub fn of(wanted: &str) -> Self {
        let first = wanted.split([',', ';', '-', '_']).next().unwrap_or_default().trim();
        let known = LANGUAGES.iter().find(|known| first.eq_ignore_ascii_case(known));
        Self(known.copied().unwrap_or(LANGUAGES[0]))
    }

    fn name(self) -> &'static str {
        self.0
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
    /// Rows that the first answer is drawn with; nothing where there is none yet, or rows are not what is drawn.
    pub rows: Option<usize>,
}

impl Card {
    /// Whether it is a chart of at most half of a wide page.
    fn is_small(&self) -> bool {
        let w = self.w.clamp(1, COLUMNS - self.x.min(COLUMNS - 1));
        self.kind != "number" && self.kind != "text" && w <= COLUMNS / 2
    }

    /// Pixels that its rows need on a narrow page, and at least those that say that there is nothing; `fitHeight` in `web/embed/boot.js` has
    /// the same.
    fn fit_height_px(&self) -> Option<usize> {
        let (rest, row) = match &*self.kind {
            "bar_list" => (72, 35),
            "bar" => (72, 40),
            "table" => (84, 36),
            "funnel" => (94, 45),
            _ => return None,
        };
        self.rows.map(|rows| (rest + row * rows).max(FIT_MIN_PX))
    }
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

impl Assets {
    /// The module that the page begins with.
    pub fn entry(&self) -> &str {
        self.modules.first().map_or("", String::as_str)
    }
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

/// What all documents of the embed have, as their template knows it.
struct EmbedDocument<'a> {
    title: &'a str,
    language: Language,
    theme: &'a Theme,
    assets: &'a Assets,
    nonce: &'a str,
    /// Rules of the style element: colours of the theme, places of cards.
    rules: String,
    /// The boot block, escaped.
    boot: String,
}

#[derive(Template)]
#[template(path = "embed_dashboard.html")]
struct DashboardDocument<'a> {
    document: EmbedDocument<'a>,
    page: &'a DashboardPage<'a>,
    cards: Vec<DrawnCard<'a>>,
}

/// A card as the template draws it.
struct DrawnCard<'a> {
    of: &'a Card,
    /// A kind that has a skeleton of its own, or `other`.
    kind: &'static str,
    /// Whether it stands beside another one where there is room for two.
    is_small: bool,
    /// Whether it has nobody beside it there.
    is_lone: bool,
}

/// The document of a dashboard.
///
/// Errors: none that is expected; what the template says.
pub fn dashboard(page: &DashboardPage) -> Result<String> {
    let mut cards: Vec<&Card> = page.cards.iter().collect();
    cards.sort_by_key(|card| (card.y, card.x));
    let mut rules = page.theme.rules();
    for (index, card) in cards.iter().enumerate() {
        place(&mut rules, index, card);
    }
    let lone = lone_cards(&cards);
    let drawn = cards.into_iter().enumerate().map(|(index, of)| DrawnCard {
        of,
        kind: WIDGET_KINDS.iter().find(|kind| **kind == of.kind).copied().unwrap_or("other"),
        is_small: of.is_small(),
        is_lone: lone.contains(&index),
    });
    let cards = drawn.collect();
    let document = EmbedDocument {
        title: page.name,
        language: page.language,
        theme: page.theme,
        assets: page.assets,
        nonce: page.nonce,
        rules,
        boot: escape_json(page.boot_json),
    };
    rendered(&DashboardDocument { document, page, cards })
}

#[derive(Template)]
#[template(path = "embed_message.html")]
struct MessageDocument<'a> {
    document: EmbedDocument<'a>,
    kind: Message,
}

/// The document that says why there is no dashboard. Its script posts `error` and `resize` to the
/// host, so `boot_json` carries the error's code.
///
/// Errors: none that is expected; what the template says.
pub fn message(
    kind: Message,
    assets: &Assets,
    (theme, language): (&Theme, Language),
    boot_json: &str,
    nonce: &str,
) -> Result<String> {
    let (title, rules, boot) = (kind.heading(), theme.rules(), escape_json(boot_json));
    let document = EmbedDocument { title, language, theme, assets, nonce, rules, boot };
    rendered(&MessageDocument { document, kind })
}

/// Writes the rule that puts a card at its place. Grid lines count from 1: `{x: 6, y: 0, w: 6, h: 4}` of the second card is
/// `.c1{--x:7;--y:1;--w:6;--h:4}`, and with `--f:247px` behind it where it is a list of five. A card outside of the grid is pulled inside.
fn place(rules: &mut String, index: usize, card: &Card) {
    let x = card.x.min(COLUMNS - 1);
    let w = card.w.clamp(1, COLUMNS - x);
    let h = card.h.clamp(1, ROWS_MAX);
    let (x, y) = (x + 1, card.y.saturating_add(1));
    // Writing to a string cannot fail.
    let _ = write!(rules, ".c{index}{{--x:{x};--y:{y};--w:{w};--h:{h}");
    if let Some(height) = card.fit_height_px() {
        let _ = write!(rules, ";--f:{height}px");
    }
    rules.push('}');
}

/// Numbers stand two abreast on narrow pages, and small charts on those that are not as narrow as a phone; the last of an odd run takes the
/// whole width. `web/embed/boot.js` follows the same rule.
/// Of three numbers in a row the third, of one the one; by their positions in reading order.
fn lone_cards(cards: &[&Card]) -> Vec<usize> {
    let run_of = |card: &&Card| match &*card.kind {
        "number" => 1,
        _ if card.is_small() => 2,
        _ => 0,
    };
    let runs: Vec<u8> = cards.iter().map(run_of).collect();
    let mut lone = Vec::new();
    let mut length = 0;
    for (index, run) in runs.iter().enumerate() {
        let is_same = index > 0 && runs.get(index - 1) == Some(run);
        length = if is_same { length + 1 } else { 1 };
        if *run > 0 && length % 2 == 1 && runs.get(index + 1) != Some(run) {
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
            rows: None,
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
        .unwrap()
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
        assert!(html.contains("<h1>&#60;script&#62;alert(1)&#60;/script&#62;</h1>"));
        assert!(html.contains("<span>Work space</span><b><bdi>&#60;b&#62;</bdi></b>"));
    }

    #[test]
    fn a_text_is_there_before_any_script_and_stays_text() {
        let text = Card { text: Some("a <b>\n\"c\"".into()), ..card("text", "t", 0, 0) };
        let html = render("a", std::slice::from_ref(&text), &[], "{}");
        assert!(html.contains("<p class=\"prose\">a &#60;b&#62;\n&#34;c&#34;</p>"));
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
            )
            .unwrap(),
        ] {
            assert!(!html.contains(" style="));
            assert!(!html.contains("<script>"));
            assert!(!html.contains(" on"), "no event attribute");
            // The browser would make texts of them, which the scripts do not expect.
            assert!(!html.contains('\n') && !html.contains("> <"), "{html}");
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
        assert!(html.contains("class=\"card is-other small lone c0\""));
    }

    #[test]
    fn the_last_number_of_an_odd_run_is_lone_and_the_last_small_chart() {
        let cards = |kinds: &[(&str, u32)]| -> Vec<Card> {
            kinds.iter().map(|(kind, w)| Card { w: *w, ..card(kind, "a", 0, 0) }).collect()
        };
        let lone = |cards: &[Card]| lone_cards(&cards.iter().collect::<Vec<_>>());
        let (number, small) = (("number", 3), ("line", 6));
        assert_eq!(lone(&cards(&[number, number, number, ("line", 12), number])), [2, 4]);
        let list = ("bar_list", 4);
        assert_eq!(lone(&cards(&[number, small, small, list, ("table", 7), small])), [0, 3, 5]);
        let text = ("text", 4);
        assert!(lone(&cards(&[text, small, ("donut", 5), text])).is_empty());
    }

    #[test]
    fn a_list_is_as_high_as_its_rows() {
        let html = |kind, rows| render("a", &[Card { rows, ..card(kind, "a", 0, 0) }], &[], "{}");
        assert!(html("bar_list", Some(5)).contains(".c0{--x:1;--y:1;--w:6;--h:4;--f:247px}"));
        assert!(html("bar_list", Some(5)).contains("class=\"card is-bar_list small lone c0\""));
        assert!(html("table", Some(0)).contains(";--f:196px}"));
        for plain in [html("bar_list", None), html("line", Some(30))] {
            assert!(plain.contains(".c0{--x:1;--y:1;--w:6;--h:4}"), "{plain}");
        }
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
            )
            .unwrap();
            assert!(html.contains(kind.heading()) && html.contains(kind.text()));
            assert!(html.contains("src=\"/assets/ab12/dist/message.js\""));
        }
    }
}
