//! Writes drawings as SVG. Text from the data never becomes markup.
//!
//! ```text
//! <svg xmlns="http://www.w3.org/2000/svg" width="1200" height="620" viewBox="0 0 1200 620" font-family="Inter" fill="none">
//!   <rect x="0.00" y="0.00" width="1200.00" height="620.00" rx="0" fill="#f7f7f5"/>
//!   <path d="M54.00 60.50L542.00 60.50" stroke="…" stroke-width="1"/>
//!   <text x="46.00" y="64.69" font-size="11.5" font-weight="400" fill="#6b6e78" text-anchor="end">100K</text>
//! </svg>
//! ```
//!
//! Text of a widget or a group, such as `</text><script>&"'`, is written as `&lt;/text&gt;&lt;script&gt;&amp;&quot;'`.
//! A drawing is one line, without the breaks shown here, and names no files.

use std::fmt::Write as _;

use super::{
    font::Weight,
    theme::{Ink, Palette},
};

/// From the middle of a line of text down to its baseline, as a fraction of the font size.
/// Text of 11.5 px about y = 60.5 has its baseline at 64.69.
const BASE: f64 = 0.364;

/// Horizontal alignment of text at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The text is centred at the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// Style of a text.
/// `Style::new(11.5, Weight::Regular, Ink::Muted).end()` are the labels of the vertical axis.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Font size in pixels.
    pub size: f64,
    /// Weight of the font.
    pub weight: Weight,
    /// Ink of the letters.
    pub color: Ink,
    /// Alignment at the position.
    pub anchor: Anchor,
}

impl Style {
    /// A style for text that begins at its position.
    pub const fn new(size: f64, weight: Weight, color: Ink) -> Self {
        Self { size, weight, color, anchor: Anchor::Start }
    }

    /// The same style, centred at the position.
    pub const fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    /// The same style, ending at the position.
    pub const fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }
}

/// A drawing under construction.
#[derive(Debug, Default)]
pub struct Svg {
    /// Colours of the inks; those of the light mode by default.
    palette: Palette,
    /// The markup so far, without the outer element.
    body: String,
    /// Number of ids that were given.
    ids: usize,
}

impl Svg {
    /// An empty drawing whose inks have the colours of a palette.
    pub fn with(palette: &Palette) -> Self {
        Self { palette: palette.clone(), ..Self::default() }
    }

    /// The colour of an ink in this drawing, such as `#315ed9`.
    pub fn color(&self, ink: Ink) -> String {
        self.palette.hex(ink)
    }

    /// Adds markup. Only numbers, ids and colours go in here, no text from the data.
    /// A format string with its arguments: what is not a number in them must be markup already.
    pub fn raw(&mut self, markup: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(markup);
    }

    /// An id that is used nowhere else in the drawing.
    /// `i1`, `i2`, and so on.
    pub fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("i{}", self.ids)
    }

    /// A filled rectangle from its upper left corner, with rounded corners; pixels throughout.
    /// Negative widths and heights become 0, for which nothing is drawn.
    pub fn rect(&mut self, (x, y, w, h): (f64, f64, f64, f64), radius: f64, fill: Ink) {
        let (w, h, fill) = (w.max(0.0), h.max(0.0), self.color(fill));
        self.raw(format_args!(
            r#"<rect x="{x:.2}" y="{y:.2}" width="{w:.2}" height="{h:.2}" rx="{radius}" fill="{fill}"/>"#
        ));
    }

    /// A straight line.
    /// From one point to another, as wide as `width`, in pixels.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Ink, width: f64) {
        let stroke = self.color(stroke);
        self.raw(format_args!(
            r#"<path d="M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}" stroke="{stroke}" stroke-width="{width}"/>"#
        ));
    }

    /// A filled shape.
    /// `path` is the attribute `d`, such as `M0 0h8l-4 6Z`; an empty one draws nothing.
    pub fn fill(&mut self, path: &str, fill: Ink) {
        if !path.is_empty() {
            let fill = self.color(fill);
            self.raw(format_args!(r#"<path d="{path}" fill="{fill}"/>"#));
        }
    }

    /// A filled shape that fades out towards its lower edge, from an opacity of 0 to 1.
    /// Each shape has a gradient of its own, from `opacity` at its upper edge to 0.
    pub fn fade(&mut self, path: &str, ink: Ink, opacity: f64) {
        let (id, color) = (self.new_id(), self.color(ink));
        self.raw(format_args!(
            r#"<defs><linearGradient id="{id}" x1="0" x2="0" y1="0" y2="1"><stop offset="0" stop-color="{color}" stop-opacity="{opacity}"/><stop offset="1" stop-color="{color}" stop-opacity="0"/></linearGradient></defs><path d="{path}" fill="url(#{id})"/>"#
        ));
    }

    /// A disc of radius 3.
    /// A run of one value, which has no line, and the mark of a name at the end of its line.
    pub fn dot(&mut self, (x, y): (f64, f64), fill: Ink) {
        let fill = self.color(fill);
        self.raw(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{fill}"/>"#));
    }

    /// A drawn line, dashed or not.
    /// `dashes` are lengths of dash and gap, as `6 4`; empty for a solid line.
    pub fn stroke(&mut self, path: &str, stroke: Ink, width: f64, dashes: &str) {
        let stroke = self.color(stroke);
        let dashes = if dashes.is_empty() {
            String::new()
        } else {
            format!(r#" stroke-dasharray="{dashes}""#)
        };
        self.raw(format_args!(
            r#"<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"{dashes}/>"#
        ));
    }

    /// One line of text, vertically centred about `y`.
    /// `x` is the start, middle or end of the text, as `style` has it. The text may be anything.
    pub fn text(&mut self, x: f64, y: f64, style: Style, text: &str) {
        let Style { size, weight, color, anchor } = style;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (weight, base, color) = (weight.number(), y + size * BASE, self.color(color));
        self.raw(format_args!(
            r#"<text x="{x:.2}" y="{base:.2}" font-size="{size}" font-weight="{weight}" fill="{color}" text-anchor="{anchor}">"#
        ));
        escape_into(text, &mut self.body);
        self.body.push_str("</text>");
    }

    /// The complete document, with its size in pixels.
    /// `<svg …>` to `</svg>`, without an XML declaration.
    pub fn finish(self, width: f64, height: f64) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="Inter" fill="none">{}</svg>"#,
            self.body
        )
    }
}

/// Escapes text for markup. Control characters become spaces, and narrow no-break spaces common
/// ones. U+FFFE, U+FFFF, and marks that turn the direction of text are left out.
/// XML 1.0 has no way to write a control character such as U+0000; a document with one would not be read.
fn escape_into(text: &str, out: &mut String) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{202f}' => out.push('\u{a0}'),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut svg = Svg::default();
        let style = Style::new(12.0, Weight::Regular, Ink::Text);
        svg.text(0.0, 0.0, style, "</text><script>&\"'\u{202e}\u{0}\u{ffff}\u{1b}[0m🙂");
        let drawing = svg.finish(10.0, 10.0);
        assert!(
            drawing.contains("&lt;/text&gt;&lt;script&gt;&amp;&quot;'  [0m🙂</text>"),
            "{drawing}"
        );
    }
}
