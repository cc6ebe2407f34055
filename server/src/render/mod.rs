//! Reports as files: a sheet of cards as CSV, as a picture, or on pages.
//!
//! The look is that of the embed, drawn here without a browser: `format`, `scale` and `series` follow the
//! same rules as their namesakes under `web/`, and both are held to `web/test/golden.json`. A drawing is
//! SVG, which one library makes a picture of and another one pages. Nothing here dials out or reads
//! files, but for the fonts of the machine.
//!
//! ```text
//! Sheet { title, subtitle, cards, theme }
//!   csv       every row of every card           text, for spreadsheets
//!   png       one picture, twice its size       layout::sheet → card::draw → Svg → resvg
//!   pdf       A4 pages, whole tables behind     layout::pages → card::draw → Svg → krilla
//!   picture   as png at another scale           the mails of reports and alerts use 1.0
//!   figures   the first six numbers in words    Requests, 12.3K, +8.1% vs the previous 7 days
//! ```
//!
//! From the number to the mark, a chart passes through these modules:
//!
//! ```text
//! model     Row { bucket, group, value, previous }    what the query answered
//! series    buckets and series, or ranked groups      Other, shares, stacks
//! scale     ticks and positions                       [0, 25000, 50000, 75000, 100000]
//! format    labels of values                          25K
//! dates     labels of buckets                         Nov 13
//! words     all that is said beside the data          Top 50 of 120, in German 50 von 120
//! theme     Ink → colour                              Series(0) → #315ed9
//! svg       marks                                     <rect …/>, <path …/>, <text …>
//! ```
//!
//! A card without data does not fail its sheet: it says why, as `This chart couldn’t load` with the message of the query below.

mod color;
mod number;
mod scale;

mod currencies;
mod words;

mod dates;

mod format;

mod font;
mod theme;

mod model;

mod series;
mod svg;

mod plot;

mod csv;
mod figures;
mod ranking;
mod table;
mod threshold;
mod tiles;

mod timed;

mod card;
mod layout;

mod png;

mod pdf;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod odd;

pub use color::is_dark;
pub use csv::csv;
pub use dates::Grain;
pub use figures::{Figure, figures};
pub use font::drawn_locale;
pub use format::{Spec, full, humanize, period};
pub use model::{Answer, Card, Measure, Place, Question, Row, Sheet};
pub use pdf::pdf;
pub use png::{picture, png};
pub use series::course;
pub use words::words;
