//! Reports as files: a sheet of cards as CSV, as a picture, or on pages.
//!
//! The look is that of the embed, drawn here without a browser: `format`, `scale` and `series` follow the
//! same rules as their namesakes under `web/`, and both are held to `web/test/golden.json`. A drawing is
//! SVG, which one library makes a picture of and another one pages. Nothing here dials out or reads
//! files, but for the fonts of the machine.

mod color;
mod number;
mod scale;

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
pub use figures::{Figure, figures};
pub use format::{Grain, Spec, humanize, period};
pub use model::{Answer, Card, Measure, Place, Question, Row, Sheet};
pub use pdf::pdf;
pub use png::{picture, png};
