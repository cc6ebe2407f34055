//! Position of each card: all on one long sheet for a picture, or in bands on pages for paper.
//!
//! ```text
//! grid (x, y, w, h)       area in pixels               twelve columns of 82 px, rows of 44 px, gaps of 16 px
//! A (0, 0, 3, 3)          (0, 0) 278 × 164
//! B (3, 0, 3, 3)          (294, 0) 278 × 164
//! C (0, 3, 8, 6)          (0, 180) 768 × 344
//! D (8, 3, 4, 6)          (784, 180) 376 × 344
//! E (0, 12, 12, 6)        (0, 720) 1160 × 344
//! ```
//!
//! The bands are A B, then C D, then E. On the sheet, the three empty rows above E are closed up, and E begins at
//! 540. On pages of 700 and then 758 px, the first has A to D, 524 px, and E is on the second.

use super::{
    model::{Card, Place},
    plot::Area,
    theme::{COLUMN, GAP, ROW, WIDTH},
};

/// The area of a place on the grid, from its upper left corner.
/// Gaps are between cards only: a card of twelve columns is 1160 px wide, not 1176.
pub fn area_of(place: Place) -> Area {
    let (x, y, w, h) =
        (f64::from(place.x), f64::from(place.y), f64::from(place.w), f64::from(place.h));
    Area {
        x: x * (COLUMN + GAP),
        y: y * (ROW + GAP),
        w: w * (COLUMN + GAP) - GAP,
        h: h * (ROW + GAP) - GAP,
    }
}

/// A card with the area that it takes.
/// Relative to the sheet or to the page, without its margins.
pub type Placed<'a> = (&'a Card, Area);

/// All cards in reading order, rows that no card stands in closed up; and the height of all.
/// No cards are 0 px high; A to E of the example are 884 px.
pub fn sheet(cards: &[Card]) -> (Vec<Placed<'_>>, f64) {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut top = 0.0;
    for band in bands(cards) {
        let (first, height) = extent(&band);
        placed.extend(
            band.into_iter().map(|(card, area)| (card, Area { y: area.y - first + top, ..area })),
        );
        top += height + GAP;
    }
    (placed, (top - GAP).max(0.0))
}

/// Cards in pages of a height: bands of cards that stand side by side stay together. A band higher than
/// a page is taken apart, each card over the whole width.
/// The first page is shorter than the others, as it has the heading. There is a page even without cards.
pub fn pages(cards: &[Card], first_height: f64, height: f64) -> Vec<Vec<Placed<'_>>> {
    let mut pages = Pages { pages: vec![Vec::new()], top: 0.0, first_height, height };
    for band in bands(cards) {
        let (first, tall) = extent(&band);
        if tall <= first_height {
            pages.add(band, first, tall);
            continue;
        }
        for (card, area) in band {
            // A card higher than the first page is drawn as high as that page.
            let whole = Area { x: 0.0, y: 0.0, w: WIDTH, h: area.h.min(first_height) };
            pages.add(vec![(card, whole)], 0.0, whole.h);
        }
    }
    pages.pages
}

/// Pages that are filled from top to bottom.
struct Pages<'a> {
    pages: Vec<Vec<Placed<'a>>>,
    /// Where the next band begins, in pixels from the top of the current page; 0 on an empty one.
    top: f64,
    /// Height of the first page below its heading, in pixels.
    first_height: f64,
    /// Height of the other pages, in pixels.
    height: f64,
}

impl<'a> Pages<'a> {
    /// Adds a band, on a new page if the current one has no room. A page without a band takes it in any case: `first`
    /// and `tall` are its upper edge on the grid and its height.
    fn add(&mut self, band: Vec<Placed<'a>>, first: f64, tall: f64) {
        let room = if self.pages.len() == 1 { self.first_height } else { self.height };
        if self.top > 0.0 && self.top + tall > room {
            self.pages.push(Vec::new());
            self.top = 0.0;
        }
        let top = self.top;
        let moved = |(card, area): Placed<'a>| (card, Area { y: area.y - first + top, ..area });
        if let Some(page) = self.pages.last_mut() {
            page.extend(band.into_iter().map(moved));
        }
        self.top += tall + GAP;
    }
}

/// Groups of cards such that a straight cut parts them from those below, from top to bottom.
/// A card of rows 4 to 8 beside one of rows 3 to 9 belongs to the same band: no straight cut passes between them.
/// Cards of a band are in reading order, those above first, then those on the left.
fn bands(cards: &[Card]) -> Vec<Vec<Placed<'_>>> {
    let mut placed: Vec<Placed<'_>> =
        cards.iter().map(|card| (card, area_of(card.place))).collect();
    placed.sort_by(|(_, a), (_, b)| a.y.total_cmp(&b.y).then(a.x.total_cmp(&b.x)));
    let mut bands: Vec<Vec<Placed<'_>>> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for (card, area) in placed {
        if area.y >= end {
            bands.push(Vec::new());
        }
        if let Some(band) = bands.last_mut() {
            band.push((card, area));
        }
        end = end.max(area.y + area.h);
    }
    bands
}

/// Upper edge and height of a band.
/// `(180.0, 344.0)` for C and D of the example.
fn extent(band: &[Placed<'_>]) -> (f64, f64) {
    let top = band.iter().map(|(_, area)| area.y).fold(f64::INFINITY, f64::min);
    let end = band.iter().map(|(_, area)| area.y + area.h).fold(top, f64::max);
    (top, end - top)
}
