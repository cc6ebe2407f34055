//! A sheet as a picture.
//!
//! ```text
//! 1160 px of the grid, 20 px around it: 1200 px wide
//!
//!   33   Usage                                              title
//!   55   Last 7 days  ·  northwind  ·  Made 2026-11-20 10:17 UTC
//!   76   cards
//!
//! two bands of 164 and 344 px: 56 + 524 + 40 = 620 px high, a file of 2400 × 1240 pixels at scale 2
//! ```
//!
//! A sheet may be as high as its dashboard. Its picture has at most 24 million pixels: up to 5,000 px the scale stays
//! 2, at 20,000 px it is 1, and beyond that letters become smaller than on a screen.

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree},
};

use super::{
    card, font,
    font::Weight,
    layout::sheet,
    model::Sheet,
    plot::Area,
    svg::{Style, Svg},
    theme::{Ink, MARGIN, Palette, WIDTH},
};

/// Pixels of a picture, at most: more memory than four bytes for each is not taken.
/// 96 MB at most.
const PIXELS_MAX: f64 = 24_000_000.0;
/// Twice the size, for screens that have more pixels.
const SCALE: f32 = 2.0;
/// Height of the heading.
const HEAD: f64 = 56.0;

/// The sheet as SVG, with its width and height.
/// `("<svg …>", 1200.0, 620.0)` for the two bands. The colours are those of a screen, with the theme.
pub fn drawing(of: &Sheet) -> (String, f64, f64) {
    let mut svg = Svg::with(&Palette::screen(&of.theme));
    let (placed, tall) = sheet(&of.cards);
    let (width, height) = (WIDTH + 2.0 * MARGIN, HEAD + tall + 2.0 * MARGIN);
    svg.rect((0.0, 0.0, width, height), 0.0, Ink::Page);
    heading(&mut svg, Area { x: MARGIN, y: MARGIN, w: WIDTH, h: HEAD }, of);
    for (card, area) in placed {
        let area = Area { x: area.x + MARGIN, y: area.y + MARGIN + HEAD, ..area };
        card::draw(&mut svg, area, card);
    }
    (svg.finish(width, height), width, height)
}

/// Title, and below it what the sheet is about.
/// Both lines are cut where the width ends. Pages use it too.
pub fn heading(svg: &mut Svg, area: Area, of: &Sheet) {
    let title = Style::new(18.0, Weight::SemiBold, Ink::PageText);
    let text = font::fit(&of.title, title.size, title.weight, area.w);
    svg.text(area.x, area.y + 13.0, title, &text);
    let about = Style::new(12.5, Weight::Regular, Ink::PageMuted);
    let text = font::fit(&of.subtitle, about.size, about.weight, area.w);
    svg.text(area.x, area.y + 35.0, about, &text);
}

/// The sheet as PNG, 2400 pixels wide unless the sheet is very high.
///
/// Errors: what the drawing library says.
pub fn png(of: &Sheet) -> Result<Vec<u8>, String> {
    picture(of, SCALE)
}

/// The sheet as PNG, so many times its size. Long sheets are drawn smaller.
///
/// Mails use a scale of 1: an attachment of a quarter of the pixels.
///
/// Errors: what the drawing library says.
pub fn picture(of: &Sheet, scale: f32) -> Result<Vec<u8>, String> {
    let (drawing, width, height) = drawing(of);
    let tree = parse(&drawing)?;
    let most = (PIXELS_MAX / (width * height)).sqrt() as f32;
    let scale = scale.min(most);
    // At least one pixel each way, however high the sheet.
    let pixels = |length: f64| ((length as f32 * scale) as u32).max(1);
    let mut pixmap =
        Pixmap::new(pixels(width), pixels(height)).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| error.to_string())
}

/// A drawing of ours, read for output. It names no files, and none would be read.
/// `Err` where the markup is broken, which escaped text does not do.
pub fn parse(drawing: &str) -> Result<Tree, String> {
    let options =
        Options { fontdb: font::database(), font_family: "Inter".to_owned(), ..Options::default() };
    Tree::from_str(drawing, &options).map_err(|error| error.to_string())
}
