//! Colours and measures of drawings: those of `web/shared/tokens.css`, with the theme of a
//! dashboard applied as in `web/embed/theme.js`.
//!
//! A drawing names inks; the palette of its sheet says what colour they are.
//!
//! ```text
//! theme of the dashboard                         screen                              paper
//! {}                                             light: card #ffffff, text #17181c   page #ffffff, series 1 #315ed9
//! {"mode": "dark"}                               dark: card #16171b, text #f0f0ee    as without it
//! {"primaryColor": "#0f766e"}                    series 1 #0f766e                    series 1 #0f766e
//! {"cardBackground": "#101820"}                  dark, since the card is             as without it
//! {"textColor": "#222222", "cardBackground": "#101820"}      text lighter until its contrast is 4.5
//! {"mutedColor": "no color"}                     as without it
//! ```
//!
//! Paper ignores everything but the primary colour: a dark card would take much ink.

use serde_json::{Map, Value};

use super::color::{Rgb, contrast, hex, is_dark, mix, painted, readable_on, rotate};

/// Roles of colours in a drawing.
/// Marks and texts name an ink, never a colour: the same drawing code serves screens, paper, and themes of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Background of the whole drawing; white on paper.
    /// `#f7f7f5` in the light mode, `#0e0f12` in the dark one.
    Page,
    /// Background of a card.
    Card,
    /// The edge of a card.
    Border,
    /// Edges that must be visible.
    /// `#8a8d96` in the light mode: the dashed picture of a card without data.
    BorderStrong,
    /// Text on a card.
    Text,
    /// Secondary text on a card.
    Text2,
    /// Tertiary text on a card, such as labels of an axis.
    Muted,
    /// Text on the page itself.
    PageText,
    /// Secondary text on the page itself.
    PageMuted,
    /// A change for the better.
    Good,
    /// A threshold that asks for attention.
    Warn,
    /// A change for the worse.
    Bad,
    /// Lines of the grid.
    /// 8 % of the text on the card.
    Grid,
    /// The line at zero.
    /// 20 % of the text on the card.
    Axis,
    /// The track behind a bar.
    /// 9 % of the text on the card.
    Fill,
    /// A bar behind text.
    /// 14 % of the first colour on the card.
    Soft,
    /// The remaining groups of a chart, as `Other`.
    /// 34 % of the text on the card.
    Other,
    /// A series, by its index; colours repeat after eight.
    /// `Series(8)` has the colour of `Series(0)`.
    Series(usize),
}

impl Ink {
    /// Ink of a single series.
    pub const PRIMARY: Self = Self::Series(0);
}

/// Number of series with a colour of their own.
pub const SERIES_MAX: usize = 8;

/// Least contrast on the card: WCAG 1.4.3 for text, 1.4.11 for marks.
// `#6b6e78` on white has 5.09.
const TEXT_LEAST: f64 = 4.5;
const MARK_LEAST: f64 = 3.0;
/// Text with more than this on the card may be weakened and still reads on fills.
/// The usual text on white has 17.7, so secondary text is a mix of it.
const STRONG: f64 = 9.0;

/// The colour of each ink.
#[derive(Debug, Clone)]
pub struct Palette {
    page: Rgb,
    card: Rgb,
    border: Rgb,
    border_strong: Rgb,
    text: Rgb,
    text_2: Rgb,
    muted: Rgb,
    page_text: Rgb,
    page_muted: Rgb,
    good: Rgb,
    warn: Rgb,
    bad: Rgb,
    series: [Rgb; SERIES_MAX],
}

impl Default for Palette {
    fn default() -> Self {
        Self::light()
    }
}

impl Palette {
    /// The light colours of `tokens.css`; a test compares them.
    fn light() -> Self {
        Self {
            page: [0xf7, 0xf7, 0xf5],
            card: [0xff; 3],
            border: [0xe6, 0xe5, 0xe1],
            border_strong: [0x8a, 0x8d, 0x96],
            text: [0x17, 0x18, 0x1c],
            text_2: [0x42, 0x43, 0x47],
            muted: [0x6b, 0x6e, 0x78],
            page_text: [0x17, 0x18, 0x1c],
            page_muted: [0x6b, 0x6e, 0x78],
            good: [0x0b, 0x7a, 0x55],
            warn: [0x8f, 0x5a, 0x00],
            bad: [0xc0, 0x2b, 0x2b],
            series: [
                [0x31, 0x5e, 0xd9],
                [0xd0, 0x7f, 0x0e],
                [0x03, 0xa4, 0x90],
                [0xb7, 0x2d, 0x56],
                [0xa4, 0x82, 0xd4],
                [0x02, 0x52, 0x78],
                [0x4d, 0x71, 0x02],
                [0x7f, 0x12, 0x21],
            ],
        }
    }

    /// The dark colours of `tokens.css`; secondary text is mixed, as there.
    fn dark() -> Self {
        let (text, card) = ([0xf0, 0xf0, 0xee], [0x16, 0x17, 0x1b]);
        Self {
            page: [0x0e, 0x0f, 0x12],
            card,
            border: [0x26, 0x28, 0x2e],
            border_strong: [0x6c, 0x70, 0x7b],
            text,
            text_2: mix(text, 78.0, card),
            muted: [0x96, 0x99, 0xa3],
            page_text: text,
            page_muted: [0x96, 0x99, 0xa3],
            good: [0x4c, 0xc3, 0x8a],
            warn: [0xf5, 0xb5, 0x44],
            bad: [0xff, 0x8a, 0x80],
            series: [
                [0x72, 0x9b, 0xf8],
                [0xea, 0xa6, 0x36],
                [0x52, 0xda, 0xc1],
                [0xf2, 0x59, 0x7a],
                [0x8e, 0x6d, 0xa5],
                [0xb2, 0xdd, 0xfc],
                [0x86, 0xcc, 0x7b],
                [0xcb, 0x4a, 0x31],
            ],
        }
    }

    /// The palette of a screen: the theme as the embed shows it. Colours with too little contrast
    /// are moved until they are readable; values that are not colours are ignored.
    /// A half transparent `cardBackground` is mixed with the `backgroundColor`, and that one, or either alone, with the card
    /// colour of the mode. Without a `mode`, the card decides: dark below a luminance of 0.179.
    pub fn screen(theme: &Map<String, Value>) -> Self {
        let text = |key: &str| theme.get(key).and_then(Value::as_str);
        let mode = text("mode").filter(|mode| ["light", "dark"].contains(mode));
        let of_mode = |dark: bool| if dark { Self::dark() } else { Self::light() };
        // Transparent cards lie on the page, and a transparent page on a host of which only the
        // mode is known.
        let under = of_mode(mode == Some("dark")).card;
        let page = text("backgroundColor").and_then(|color| painted(color, under));
        let card = text("cardBackground").and_then(|color| painted(color, page.unwrap_or(under)));
        let dark = match mode {
            Some(mode) => mode == "dark",
            None => card.is_some_and(is_dark),
        };
        let mut of = of_mode(dark);
        // The series of our own surfaces need no change: they have the contrast already.
        let is_ours = page.is_none() && card.is_none();
        of.page = page.unwrap_or(of.page);
        of.card = card.unwrap_or(of.card);
        let given =
            |key: &str, or: Rgb| text(key).and_then(|color| painted(color, of.card)).unwrap_or(or);
        let (border, ink, muted) = (
            given("cardBorder", of.border),
            given("textColor", of.text),
            given("mutedColor", of.muted),
        );
        let primary = given("primaryColor", of.series[0]);
        of.border = border;
        of.page_text = readable_on(ink, of.page, TEXT_LEAST);
        of.page_muted = readable_on(muted, of.page, TEXT_LEAST);
        of.text = readable_on(ink, of.card, TEXT_LEAST);
        of.muted = readable_on(muted, of.card, TEXT_LEAST);
        of.text_2 =
            if contrast(of.text, of.card) < STRONG { of.text } else { mix(of.text, 78.0, of.card) };
        if !is_ours || text("primaryColor").is_some() {
            of.lead(readable_on(primary, of.card, MARK_LEAST));
        }
        of
    }

    /// The palette of paper: ink on white as the embed prints it, led by the theme's primary
    /// colour.
    /// With `#0f766e`: page and cards `#ffffff`, text `#17181c`, series `#0f766e`, `#d07f0e`, and so on.
    pub fn paper(theme: &Map<String, Value>) -> Self {
        let mut of = Self { page: [0xff; 3], ..Self::light() };
        let primary = theme.get("primaryColor").and_then(Value::as_str);
        if let Some(primary) = primary.and_then(|color| painted(color, of.card)) {
            of.lead(readable_on(primary, of.card, MARK_LEAST));
        }
        of
    }

    /// Makes a colour the first of the series; similar ones go to the end.
    /// Each of the others is moved as well until it has a contrast of 3 on the card.
    fn lead(&mut self, primary: Rgb) {
        let rotated = rotate(primary, &self.series[1..]);
        self.series[0] = primary;
        for (at, color) in rotated.into_iter().enumerate() {
            self.series[at + 1] = readable_on(color, self.card, MARK_LEAST);
        }
    }

    /// The colour of an ink.
    /// `color(Ink::Card)` is `[255, 255, 255]` in the light mode.
    pub fn color(&self, ink: Ink) -> Rgb {
        let weak = |percent: f64| mix(self.text, percent, self.card);
        match ink {
            Ink::Page => self.page,
            Ink::Card => self.card,
            Ink::Border => self.border,
            Ink::BorderStrong => self.border_strong,
            Ink::Text => self.text,
            Ink::Text2 => self.text_2,
            Ink::Muted => self.muted,
            Ink::PageText => self.page_text,
            Ink::PageMuted => self.page_muted,
            Ink::Good => self.good,
            Ink::Warn => self.warn,
            Ink::Bad => self.bad,
            Ink::Grid => weak(8.0),
            Ink::Axis => weak(20.0),
            Ink::Fill => weak(9.0),
            Ink::Soft => mix(self.series[0], 14.0, self.card),
            Ink::Other => weak(34.0),
            Ink::Series(at) => self.series[at % SERIES_MAX],
        }
    }

    /// The colour of an ink as `#rrggbb`.
    /// `hex(Ink::PRIMARY)` is `#315ed9` without a theme.
    pub fn hex(&self, ink: Ink) -> String {
        hex(self.color(ink))
    }
}

/// Width of a column of the grid, in pixels.
pub const COLUMN: f64 = 82.0;
/// Height of a row of the grid, in pixels.
pub const ROW: f64 = 44.0;
/// Distance between two cards, in pixels.
pub const GAP: f64 = 16.0;
/// Width of twelve columns with their gaps, in pixels.
/// 1,160.
pub const WIDTH: f64 = 12.0 * COLUMN + 11.0 * GAP;
/// Margin around the page of a picture, in pixels.
pub const MARGIN: f64 = 20.0;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::color::apart, *};

    fn theme(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn without_a_theme_the_colors_are_those_of_the_pages() {
        let css = include_str!("../../web/shared/tokens.css");
        for (dark, of) in [(false, Palette::light()), (true, Palette::dark())] {
            let token = |name: &str| {
                let line = css.lines().find(|line| line.trim().starts_with(&format!("--{name}:")));
                let colors = line.unwrap().split_once("light-dark(").unwrap().1;
                let mut both = colors.trim_end_matches(");").split(", ");
                both.nth(usize::from(dark)).unwrap().to_owned()
            };
            let named = [
                ("bg", Ink::Page),
                ("card", Ink::Card),
                ("card-border", Ink::Border),
                ("border-strong", Ink::BorderStrong),
                ("text", Ink::Text),
                ("muted", Ink::Muted),
                ("good", Ink::Good),
                ("warn", Ink::Warn),
                ("bad", Ink::Bad),
                ("primary", Ink::PRIMARY),
            ];
            for (name, ink) in named {
                assert_eq!(of.hex(ink), token(name), "{name}");
            }
            for at in 1..SERIES_MAX {
                assert_eq!(of.hex(Ink::Series(at)), token(&format!("c{}", at + 1)));
            }
        }
        let (plain, none) = (Palette::light(), Palette::screen(&Map::new()));
        assert_eq!(format!("{plain:?}"), format!("{none:?}"));
    }

    #[test]
    fn a_theme_colors_the_screen_and_stays_readable() {
        let of = Palette::screen(&theme(json!({
            "primaryColor": "#0f766e", "backgroundColor": "#fff7ed", "cardBackground": "#101820",
            "cardBorder": "#223344", "textColor": "#222222", "mutedColor": "no color",
        })));
        assert_eq!(of.hex(Ink::Card), "#101820");
        assert_eq!(of.hex(Ink::Page), "#fff7ed");
        assert_eq!(of.hex(Ink::Border), "#223344");
        let card = of.color(Ink::Card);
        for ink in [Ink::Text, Ink::Text2, Ink::Muted] {
            assert!(contrast(of.color(ink), card) >= TEXT_LEAST, "{ink:?}");
        }
        for ink in [Ink::PageText, Ink::PageMuted] {
            assert!(contrast(of.color(ink), of.color(Ink::Page)) >= TEXT_LEAST, "{ink:?}");
        }
        for at in 0..SERIES_MAX {
            assert!(contrast(of.color(Ink::Series(at)), card) >= MARK_LEAST, "{at}");
        }
    }

    #[test]
    fn paper_is_white_and_takes_the_primary_color_only() {
        let of = Palette::paper(&theme(json!({
            "mode": "dark", "primaryColor": "#0f766e", "cardBackground": "#000", "textColor": "#fff",
        })));
        let inks = [Ink::Page, Ink::Card, Ink::Text, Ink::PRIMARY, Ink::Series(1)];
        let colors = inks.map(|ink| of.hex(ink));
        assert_eq!(colors, ["#ffffff", "#ffffff", "#17181c", "#0f766e", "#d07f0e"]);
        // What could be taken for it comes last.
        let far = |at: usize| apart(of.series[0], of.series[at]) >= 12.0;
        assert_eq!([1, 2, 7].map(far), [true, true, false]);
    }
}
