//! The fonts that text is drawn with, and how wide it becomes.
//!
//! Inter comes with the binary; what it lacks is taken from the fonts of the machine, where there are
//! any.

use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb::Database;
use ttf_parser::Face;

const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("../../fonts/Inter-Medium.ttf");
const SEMIBOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.ttf");

/// How heavy text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// 400
    Regular,
    /// 500
    Medium,
    /// 600
    SemiBold,
}

impl Weight {
    /// As CSS names it.
    pub fn number(self) -> u16 {
        match self {
            Self::Regular => 400,
            Self::Medium => 500,
            Self::SemiBold => 600,
        }
    }

    fn face(self) -> Option<&'static Face<'static>> {
        static FACES: OnceLock<[Option<Face<'static>>; 3]> = OnceLock::new();
        let faces = FACES
            .get_or_init(|| [REGULAR, MEDIUM, SEMIBOLD].map(|bytes| Face::parse(bytes, 0).ok()));
        faces.get(self as usize).and_then(Option::as_ref)
    }
}

/// All fonts, read once.
pub fn database() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        // A font of the same name on the machine may be another one: ours is asked first by its weight.
        for bytes in [REGULAR, MEDIUM, SEMIBOLD] {
            fonts.load_font_data(bytes.to_vec());
        }
        Arc::new(fonts)
    });
    Arc::clone(fonts)
}

/// Width of text of a size.
pub fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let Some(face) = weight.face() else { return text.chars().count() as f64 * size * 0.6 };
    let em = f64::from(face.units_per_em());
    let advance = |char: char| match face.glyph_index(char) {
        Some(glyph) => f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / em,
        // A letter of another font, which may be as wide as it is high.
        None => 1.0,
    };
    text.chars().map(advance).sum::<f64>() * size
}

/// Text that fits into a width, with dots where it was cut.
pub fn fit(text: &str, size: f64, weight: Weight, room: f64) -> String {
    if width(text, size, weight) <= room {
        return text.to_owned();
    }
    let room = room - width("…", size, weight);
    let (mut out, mut used) = (String::new(), 0.0);
    for char in text.chars() {
        used += width(char.encode_utf8(&mut [0; 4]), size, weight);
        if used > room {
            break;
        }
        out.push(char);
    }
    out.trim_end().to_owned() + "…"
}

/// Text in lines that fit into a width, broken at spaces, and within words that are too long.
pub fn lines(text: &str, size: f64, weight: Weight, room: f64) -> Vec<String> {
    let mut out = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if width(&joined, size, weight) <= room {
                line = joined;
                continue;
            }
            if !line.is_empty() {
                out.push(std::mem::take(&mut line));
            }
            for char in word.chars() {
                line.push(char);
                if width(&line, size, weight) > room && line.chars().count() > 1 {
                    line.pop();
                    out.push(std::mem::take(&mut line));
                    line.push(char);
                }
            }
        }
        out.push(line);
    }
    out
}
