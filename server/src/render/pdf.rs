//! A sheet on pages, with text that can be selected and tables in full.
//!
//! Pages are A4 across. Cards that stand side by side stay together; a table with more rows than its
//! card shows follows in full behind the cards.
//!
//! ```text
//! page 1 of 841.89 × 595.28 pt, 32 pt free on each side        scale 0.67 pt per px: 1160 × 792 px inside
//!   0 px     heading: title, subtitle
//!   58       cards, 700 px
//!   758      foot
//!   784      Usage                                                                1 / 5
//! page 2
//!   0        cards, 758 px
//! page 3     By customer                    a table of 60 rows that its card cut, 26 rows a page
//! page 4     By customer (continued)
//! page 5     By customer (continued)
//! ```
//!
//! The number of pages at the foot is computed before the first page is written: by then, the cards have their pages,
//! and the rows of tables are counted.

use krilla::{
    Document,
    geom::{Size, Transform},
    metadata::{DateTime, Metadata},
    page::PageSettings,
};
use krilla_svg::{SurfaceExt as _, SvgSettings};

use super::{
    card, font,
    font::Weight,
    layout::pages,
    model::{Card, Sheet},
    plot::Area,
    png::{heading, parse},
    svg::{Style, Svg},
    table::Table,
    theme::{Ink, Palette, WIDTH},
    words::words,
};

/// A4 across, in points.
/// 297 × 210 mm.
const PAGE: (f32, f32) = (841.89, 595.28);
/// Around the page, in points.
const EDGE: f32 = 32.0;
/// Height of the heading on the first page, in pixels.
const HEAD: f64 = 58.0;
/// Height of the foot on each page, in pixels.
const FOOT: f64 = 34.0;
/// Height of a row of a table in full.
/// 26 px; in a card, a row has 36.
const ROW: f64 = 26.0;

/// Points of a pixel.
/// 0.6706: the 1160 px of the grid fill the page between its edges.
fn scale() -> f32 {
    (PAGE.0 - 2.0 * EDGE) / WIDTH as f32
}

/// Height of what a page holds, in pixels.
/// 792.25 px, of which the foot takes 34.
fn page_height() -> f64 {
    f64::from((PAGE.1 - 2.0 * EDGE) / scale())
}

/// The pages with the cards, without their feet; and the cards whose tables follow in full.
/// A wide table is in `in_full` as several, each with its first column.
fn card_pages<'a>(of: &'a Sheet, palette: &Palette) -> (Vec<Svg>, Vec<(&'a Card, Table)>) {
    let height = page_height();
    let (mut out, mut in_full) = (Vec::new(), Vec::new());
    for (number, placed) in pages(&of.cards, height - HEAD - FOOT, height - FOOT).iter().enumerate()
    {
        let mut svg = Svg::with(palette);
        let top = if number == 0 { HEAD } else { 0.0 };
        if number == 0 {
            heading(&mut svg, Area { x: 0.0, y: 0.0, w: WIDTH, h: HEAD }, of);
        }
        for (card, area) in placed {
            let is_cut = card::draw(&mut svg, Area { y: area.y + top, ..*area }, card);
            if let (true, Ok(answer)) = (is_cut, &card.answer) {
                in_full.extend(
                    Table::of(card, answer).parts(WIDTH).into_iter().map(|part| (*card, part)),
                );
            }
        }
        out.push(svg);
    }
    (out, in_full)
}

/// Rows of a table on a page of its own.
/// 26: below the title, 27 rows of 26 px fit, one of which is the head.
fn rows_of_page() -> usize {
    (((page_height() - FOOT - 40.0) / ROW).floor() as usize).saturating_sub(1).max(1)
}

/// A page of a table in full.
/// From row `from`: 0, 26, 52 and so on.
fn table_page(palette: &Palette, card: &Card, table: &Table, from: usize) -> Svg {
    let mut svg = Svg::with(palette);
    let style = Style::new(13.5, Weight::SemiBold, Ink::Text);
    let continued = words(card.locale).continued;
    let more = if from == 0 { String::new() } else { format!(" {continued}") };
    let title = font::fit(&card.title, style.size, style.weight, WIDTH - 120.0);
    svg.text(0.0, 10.0, style, &format!("{title}{more}"));
    let area = Area { x: 0.0, y: 30.0, w: WIDTH, h: page_height() - FOOT - 30.0 };
    table.draw(&mut svg, area, from..table.len().min(from + rows_of_page()), ROW);
    svg
}

/// The sheet as PDF. Pages are drawn one after the other: many of them take no more memory than one, but
/// for what they become.
///
/// The bytes begin with `%PDF`. A sheet without cards is one page with its heading.
///
/// Errors: what the drawing libraries say.
pub fn pdf(of: &Sheet) -> Result<Vec<u8>, String> {
    let size = Size::from_wh(WIDTH as f32 * scale(), page_height() as f32 * scale());
    let size = size.ok_or("a page without a size")?;
    let palette = Palette::paper(&of.theme);
    let (pages, tables) = card_pages(of, &palette);
    let of_table = |(_, table): &(&Card, Table)| table.len().div_ceil(rows_of_page());
    let count = pages.len() + tables.iter().map(of_table).sum::<usize>();
    // Lazy: a page is drawn when its turn comes, and dropped after it.
    let in_full = tables.iter().flat_map(|(card, table)| {
        (0..table.len()).step_by(rows_of_page()).map(|from| table_page(&palette, card, table, from))
    });
    let mut document = Document::new();
    document.set_metadata(metadata(of));
    for (at, mut svg) in pages.into_iter().chain(in_full).enumerate() {
        let style = Style::new(11.5, Weight::Regular, Ink::Muted);
        let y = page_height() - 8.0;
        let title = font::fit(&of.title, style.size, style.weight, WIDTH * 0.7);
        svg.text(0.0, y, style, &title);
        svg.text(WIDTH, y, style.end(), &format!("{} / {count}", at + 1));
        let tree = parse(&svg.finish(WIDTH, page_height()))?;
        let settings = PageSettings::from_wh(PAGE.0, PAGE.1).ok_or("a page without a size")?;
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        surface.push_transform(&Transform::from_translate(EDGE, EDGE));
        surface.draw_svg(&tree, size, SvgSettings::default());
        surface.pop();
        surface.finish();
        page.finish();
    }
    document.finish().map_err(|error| format!("{error:?}"))
}

/// Title of the dashboard, creator `Inlay`, the language, and the date from `made_at` in UTC.
fn metadata(of: &Sheet) -> Metadata {
    let made = jiff::Timestamp::from_millisecond(of.made_at).unwrap_or_default();
    let made = made.to_zoned(jiff::tz::TimeZone::UTC);
    let number = |value: i8| u8::try_from(value).unwrap_or(0);
    // A year before 0 becomes 1970: a wrong date is no reason to have no file.
    let date = DateTime::new(u16::try_from(made.year()).unwrap_or(1970))
        .month(number(made.month()))
        .day(number(made.day()))
        .hour(number(made.hour()))
        .minute(number(made.minute()))
        .second(number(made.second()))
        .utc_offset_hour(0)
        .utc_offset_minute(0);
    Metadata::new()
        .title(of.title.clone())
        .creator("Inlay".to_owned())
        .language(of.locale.name().to_owned())
        .creation_date(date)
}
