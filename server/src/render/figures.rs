//! The numbers of a sheet in words, for mails: `Requests`, `12.3K`, `+8.1% vs the previous 7 days`.
//!
//! ```text
//! number widgets of the sheet                      figures
//! count 12345, previous 11420, period 7d           Requests   12.3K   +8.1% vs the previous 7 days
//! avg 4, previous 5, format {"unit": "s"}          Latency    4 s     −20% vs the previous 7 days
//! count 5, previous 0                              Errors     5       none in the previous 7 days
//! sum 5, previous 0                                Cost       5       0 in the previous 7 days
//! count 1000, previous 1, period 1d                Signups    1,000   more than 999% up vs the previous day
//! ```
//!
//! The texts of changes differ from those of the card, `New` and `>999%`, which have little room.

use super::{
    format::{Direction, change, change_text, large_change, period, short},
    model::{Card, Sheet},
    series::{is_additive, is_whole},
    words::words,
};
use crate::base::text::one_line;

/// Numbers of a mail, at most: it shows the rest in its picture.
const FIGURES_MAX: usize = 6;

/// A larger change is not told to the digit.
const LARGE: f64 = 9.995;

/// A number of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Title of its widget.
    /// On one line: line breaks become spaces.
    pub title: String,
    /// The value as the widget shows it.
    /// `12.3K`, or `—` where an average has no events.
    pub value: String,
    /// How it changed against the window before; absent where the widget does not compare.
    pub change: Option<String>,
}

/// The first widgets of kind `number` with their values.
/// Widgets of other kinds, and numbers whose query failed, are skipped; the seventh number is not in the mail.
pub fn figures(of: &Sheet) -> Vec<Figure> {
    of.cards.iter().filter_map(figure).take(FIGURES_MAX).collect()
}

/// `None` for other kinds and for failed queries.
fn figure(card: &Card) -> Option<Figure> {
    let answer = card.answer.as_ref().ok().filter(|_| card.kind == "number")?;
    let row = answer.rows.first();
    let is_count = is_additive(card.metric()) || is_whole(card.metric());
    // Nothing is no events, or no value.
    let value = row.and_then(|row| row.value).or(is_count.then_some(0.0));
    let previous = row.and_then(|row| row.previous);
    let changed = previous.and_then(|previous| Some((previous, change(value, previous)?)));
    let change = changed.map(|(previous, (direction, ratio))| {
        let (locale, words) = (card.locale, words(card.locale));
        let period = answer.period.as_deref().map(|name| period(name, locale));
        let versus = (words.versus_in_full)(period.as_deref());
        let sign = match direction {
            Direction::Up => "+",
            Direction::Down => "−",
            Direction::Flat => "",
        };
        match ratio {
            Some(ratio) if ratio.abs() > LARGE => {
                (words.large_change)(ratio > 0.0, &large_change(locale), &versus)
            }
            Some(_) => format!("{sign}{} {versus}", change_text(value, previous, locale)),
            None => (words.none_before)(period.as_deref(), is_whole(card.metric())),
        }
    });
    Some(Figure { title: one_line(&card.title), value: short(value, &card.spec()), change })
}
