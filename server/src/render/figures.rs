//! The numbers of a sheet in words, for mails: `Requests`, `12.3K`, `+8.1% vs previous 7 days`.

use super::{
    format::{Direction, change, change_text, period, short},
    model::{Card, Sheet},
    series::{is_additive, is_whole},
};

/// Numbers of a mail, at most: it shows the rest in its picture.
const FIGURES_MAX: usize = 6;

/// A number of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Title of its widget.
    pub title: String,
    /// The value as the widget shows it.
    pub value: String,
    /// How it changed against the window before; absent where the widget does not compare.
    pub change: Option<String>,
}

/// The first widgets of kind `number` with their values.
pub fn figures(of: &Sheet) -> Vec<Figure> {
    of.cards.iter().filter_map(figure).take(FIGURES_MAX).collect()
}

fn figure(card: &Card) -> Option<Figure> {
    let answer = card.answer.as_ref().ok().filter(|_| card.kind == "number")?;
    let row = answer.rows.first();
    let is_count = is_additive(card.metric()) || is_whole(card.metric());
    // Nothing is no events, or no value.
    let value = row.and_then(|row| row.value).or(is_count.then_some(0.0));
    let previous = row.and_then(|row| row.previous);
    let changed = previous.and_then(|previous| Some((previous, change(value, previous)?)));
    let change = changed.map(|(previous, (direction, ratio))| {
        let before = answer.period.as_deref().map_or("dates before".to_owned(), |name| {
            format!("previous {}", period(name).trim_start_matches("1 "))
        });
        let sign = match direction {
            Direction::Up => "+",
            Direction::Down => "−",
            Direction::Flat => "",
        };
        match ratio {
            Some(_) => format!("{sign}{} vs {before}", change_text(value, previous)),
            None => format!("nothing in the {before}"),
        }
    });
    Some(Figure { title: card.title.clone(), value: short(value, &card.spec()), change })
}
