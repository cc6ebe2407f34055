//! Where cards stand: all on one long sheet for a picture, or in bands on pages for paper.

use super::{
    model::{Card, Place},
    plot::Area,
    theme::{COLUMN, GAP, ROW, WIDTH},
};

/// The area of a place on the grid, from its upper left corner.
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
pub type Placed<'a> = (&'a Card, Area);

/// All cards in reading order, rows that no card stands in closed up; and the height of all.
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
pub fn pages(cards: &[Card], first_height: f64, height: f64) -> Vec<Vec<Placed<'_>>> {
    let mut pages = Pages { pages: vec![Vec::new()], top: 0.0, first_height, height };
    for band in bands(cards) {
        let (first, tall) = extent(&band);
        if tall <= first_height {
            pages.add(band, first, tall);
            continue;
        }
        for (card, area) in band {
            let whole = Area { x: 0.0, y: 0.0, w: WIDTH, h: area.h.min(first_height) };
            pages.add(vec![(card, whole)], 0.0, whole.h);
        }
    }
    pages.pages
}

/// Pages that are filled from top to bottom.
struct Pages<'a> {
    pages: Vec<Vec<Placed<'a>>>,
    top: f64,
    first_height: f64,
    height: f64,
}

impl<'a> Pages<'a> {
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
fn extent(band: &[Placed<'_>]) -> (f64, f64) {
    let top = band.iter().map(|(_, area)| area.y).fold(f64::INFINITY, f64::min);
    let end = band.iter().map(|(_, area)| area.y + area.h).fold(top, f64::max);
    (top, end - top)
}
