//! The fonts that text is drawn with, and how wide it becomes.
//!
//! Inter comes with the binary; what it lacks is taken from the fonts of the machine, where there are
//! any.
//!
//! A drawing has no browser to lay out its text, so widths are computed here from the advances in the font,
//! without kerning:
//!
//! ```text
//! width("Requests", 10.0, Regular)     43.96 px
//! width("Requests", 10.0, SemiBold)    45.23 px
//! width("日本語", 10.0, Regular)        30 px      none of its letters is in Inter: one em each
//! fit("a rather long label", 10.0, Regular, 50.0)                a rather…
//! lines("alpha beta gamma delta", 10.0, Regular, 60.0, 9)        alpha beta / gamma / delta
//! ```

use std::sync::{Arc, Once, OnceLock};

use resvg::usvg::fontdb::Database;
use tracing::warn;
use ttf_parser::Face;

use crate::base::locale::Locale;

/// The glyphs of Latin, Greek and Cyrillic letters; the licence is beside the files.
const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("../../fonts/Inter-Medium.ttf");
const SEMIBOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.ttf");

/// Weights of the font Inter that the binary contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// CSS font weight 400.
    Regular,
    /// CSS font weight 500.
    Medium,
    /// CSS font weight 600.
    SemiBold,
}

impl Weight {
    /// The CSS `font-weight`: 400, 500 or 600.
    pub fn number(self) -> u16 {
        match self {
            Self::Regular => 400,
            Self::Medium => 500,
            Self::SemiBold => 600,
        }
    }

    /// The parsed font of a weight, parsed once for the process. `None` only if the file in the binary were damaged.
    fn face(self) -> Option<&'static Face<'static>> {
        static FACES: OnceLock<[Option<Face<'static>>; 3]> = OnceLock::new();
        let faces = FACES
            .get_or_init(|| [REGULAR, MEDIUM, SEMIBOLD].map(|bytes| Face::parse(bytes, 0).ok()));
        faces.get(self as usize).and_then(Option::as_ref)
    }
}

/// All fonts, read once.
/// Reading the fonts of a machine takes a while; the first drawing after the start pays for it.
pub fn database() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        // Ours come first: a font of the same name on the machine may be another one.
        for bytes in [REGULAR, MEDIUM, SEMIBOLD] {
            fonts.load_font_data(bytes.to_vec());
        }
        fonts.load_system_fonts();
        Arc::new(fonts)
    });
    Arc::clone(fonts)
}

/// Whether there are letters for a language: Inter has those of all but Japanese, for which the machine must have a font.
fn has_letters_of(locale: Locale) -> bool {
    static JAPANESE: OnceLock<bool> = OnceLock::new();
    let has_kanji = || {
        let fonts = database();
        let has = |data: &[u8], index: u32| {
            Face::parse(data, index).is_ok_and(|face| face.glyph_index('月').is_some())
        };
        fonts.faces().any(|face| fonts.with_face_data(face.id, has) == Some(true))
    };
    match locale {
        Locale::En | Locale::De | Locale::Fr => true,
        Locale::Ja => *JAPANESE.get_or_init(has_kanji),
    }
}

/// The language in which a drawing can be made: English where the fonts have no letters of the wanted one.
pub fn drawn_locale(wanted: Locale) -> Locale {
    if has_letters_of(wanted) {
        return wanted;
    }
    static WARNING: Once = Once::new();
    WARNING.call_once(|| {
        let language = wanted.name();
        warn!(
            language,
            "drawings are in English: the fonts of this machine lack the letters of their language"
        );
    });
    Locale::En
}

/// Width of a text in pixels, at a font size in pixels.
/// Proportional to the size: `Requests` has 43.96 px at 10 px and 87.92 px at 20 px.
pub fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let Some(face) = weight.face() else { return text.chars().count() as f64 * size * 0.6 };
    let em = f64::from(face.units_per_em());
    let advance =
        |char: char| match face.glyph_index(if char == '\u{202f}' { '\u{a0}' } else { char }) {
            Some(glyph) => f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / em,
            // A letter of another font, which may be as wide as it is high.
            None => 1.0,
        };
    text.chars().map(advance).sum::<f64>() * size
}

/// Characters of a text that are looked at: no line has room for more, and combining marks have no width.
const CHARS_MAX: usize = 400;
/// Characters of prose that are looked at.
const PROSE_CHARS_MAX: usize = 8_000;

/// Width of one character, without an allocation.
fn width_of(char: char, size: f64, weight: Weight) -> f64 {
    width(char.encode_utf8(&mut [0; 4]), size, weight)
}

/// Text that fits into a width, with dots where it was cut.
/// Text that fits comes back as it is. Spaces before the dots are dropped: `a rather…`, not `a rather …`.
pub fn fit(text: &str, size: f64, weight: Weight, room: f64) -> String {
    let dots = width_of('…', size, weight);
    let (mut used, mut kept) = (0.0, 0);
    for (count, (at, char)) in text.char_indices().enumerate() {
        used += width_of(char, size, weight);
        if used > room || count == CHARS_MAX {
            return text.get(..kept).unwrap_or_default().trim_end().to_owned() + "…";
        }
        // Up to here there is room for the dots too.
        if used + dots <= room {
            kept = at + char.len_utf8();
        }
    }
    text.to_owned()
}

/// Text in at most so many lines that fit into a width, broken at spaces, and within words that are too
/// long. The last one ends in dots when there is more.
/// An empty line between two paragraphs stays: `one\n\ntwo` is `["one", "", "two"]`. Forty `w` in a row are
/// broken wherever the width ends.
pub fn lines(text: &str, size: f64, weight: Weight, room: f64, most: usize) -> Vec<String> {
    let space = width_of(' ', size, weight);
    let mut out: Vec<String> = Vec::new();
    let (mut line, mut used, mut chars) = (String::new(), 0.0, 0);
    let text: String = text.chars().take(PROSE_CHARS_MAX).collect();
    for paragraph in text.split('\n') {
        for word in paragraph.split_whitespace() {
            let wide: f64 = word.chars().map(|char| width_of(char, size, weight)).sum();
            if !line.is_empty() && used + space + wide > room {
                out.push(std::mem::take(&mut line));
                (used, chars) = (0.0, 0);
            } else if !line.is_empty() {
                line.push(' ');
                used += space;
            }
            for char in word.chars() {
                let wide = width_of(char, size, weight);
                // A letter wider than the room gets a line of its own, with no empty line before it.
                if !line.is_empty() && (used + wide > room || chars >= CHARS_MAX) {
                    out.push(std::mem::take(&mut line));
                    (used, chars) = (0.0, 0);
                }
                line.push(char);
                used += wide;
                chars += 1;
            }
            // One line more than asked for is enough to know that there is more.
            if out.len() > most {
                break;
            }
        }
        out.push(std::mem::take(&mut line));
        (used, chars) = (0.0, 0);
        if out.len() > most {
            break;
        }
    }
    if out.len() > most {
        out.truncate(most);
        if let Some(last) = out.last_mut() {
            *last = fit(&format!("{last} …"), size, weight, room);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str, room: f64, most: usize) -> Vec<String> {
        lines(text, 10.0, Weight::Regular, room, most)
    }

    #[test]
    fn a_narrow_space_is_as_wide_as_it_is_drawn() {
        let of = |text: &str| width(text, 10.0, Weight::Regular);
        assert!((of("1\u{202f}234") - of("1\u{a0}234")).abs() < 1e-9);
    }

    #[test]
    fn text_is_cut_and_broken_where_it_has_no_room() {
        assert_eq!(fit("short", 10.0, Weight::Regular, 100.0), "short");
        let cut = fit("a rather long label", 10.0, Weight::Regular, 50.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0, Weight::Regular) <= 50.0, "{cut}");
        assert_eq!(broken("one two", 1_000.0, 5), ["one two"]);
        assert_eq!(broken("one\n\ntwo", 1_000.0, 5), ["one", "", "two"]);
        let words = broken("alpha beta gamma delta", 60.0, 9);
        assert!(words.len() > 1 && words.join(" ") == "alpha beta gamma delta", "{words:?}");
        let word = broken(&"w".repeat(40), 60.0, 99);
        assert!(word.len() > 4 && word.concat() == "w".repeat(40));
        assert!(broken("one two three four five six", 20.0, 2)[1].ends_with('…'));
    }

    #[test]
    fn marks_without_width_take_no_time() {
        let began = std::time::Instant::now();
        let marks = format!("{}{}", "x".repeat(200), "\u{301}".repeat(300_000));
        assert!(broken(&marks, 500.0, 10).len() <= 10);
        assert!(fit(&marks, 10.0, Weight::Regular, 5_000.0).chars().count() <= CHARS_MAX + 1);
        broken(&"x ".repeat(500_000), 500.0, 10);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
}
