//! Tables: a table widget in its card, and in full on pages of its own.
//!
//! The same columns as in `web/charts/table.js`.
//!
//! ```text
//! query                         columns
//! by bucket                     Time, Value
//! by group, count               Country, Value, Share
//! by group, avg                 Country, Value                    averages have no total to be a share of
//! by bucket and group           Time, Country, Value
//! with a comparison             …, Value, Previous
//! measures                      Country, Cost, Calls              as the measures are labelled
//! ```
//!
//! A card of 6 × 6 on the grid shows seven rows, or six and a note below them:
//!
//! ```text
//! Country            Value    Share
//! Germany            1,820      41%
//! …
//! and 54 more · 2 columns not shown
//! ```
//!
//! A number is never cut: `123,456…` would read as another one. A column without room is left out instead, and the
//! pages of a PDF show all of them, in parts that repeat the first column.

use super::{
    dates::bucket_long,
    font::{self, Weight},
    format::{Spec, full, humanize, share},
    model::{Answer, Card, Row},
    plot::Area,
    series::{group_label, is_additive, total_of},
    svg::{Style, Svg},
    theme::Ink,
    words::words,
};

const HEAD: Style = Style::new(12.5, Weight::Regular, Ink::Muted);
const CELL: Style = Style::new(13.0, Weight::Regular, Ink::Text);
const FIRST: Style = Style::new(13.0, Weight::Medium, Ink::Text);
const NOTE: Style = Style::new(11.5, Weight::Regular, Ink::Muted);
// Free pixels between two columns.
const PADDING: f64 = 20.0;
// Width of the first column that other columns cannot take from it, in pixels.
const FIRST_MIN: f64 = 110.0;
/// Rows that decide how wide columns are: widths of thousands cost more than they tell.
const ROWS_MEASURED: usize = 200;
/// Characters of a cell that are kept.
/// They are the names of groups: numbers are shorter.
const CELL_CHARS_MAX: usize = 300;

/// The entries at the indexes for which `keep` is true.
fn kept<T: Clone>(list: &[T], keep: &dyn Fn(usize) -> bool) -> Vec<T> {
    let of_kept = list.iter().enumerate().filter(|(at, _)| keep(*at));
    of_kept.map(|(_, one)| one.clone()).collect()
}

/// A table that can be drawn: heads, and rows of cells as they read.
#[derive(Clone)]
pub struct Table {
    /// Name of each column, and whether it has numbers, which end at its right edge.
    heads: Vec<(String, bool)>,
    /// The cells of each row, one for each head.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The table of a widget's answer.
    /// Cells are written in full: `12,345`, `Thursday, Jan 1`, `—` for a missing value. The column of the groups is named
    /// after the property: `country_code` is `Country code`.
    pub fn of(card: &Card, answer: &Answer) -> Self {
        let mut heads: Vec<(String, bool)> = Vec::new();
        type Cell<'a> = Box<dyn Fn(&Row) -> String + 'a>;
        let mut cells: Vec<Cell<'_>> = Vec::new();
        let has = |test: fn(&Row) -> bool| answer.rows.iter().any(test);
        let has_group = has(|row| row.group.is_some());
        let (spec, locale, words) = (card.spec(), card.locale, words(card.locale));
        if has(|row| row.bucket.is_some()) {
            heads.push((words.time.to_owned(), false));
            let text = move |row: &Row| {
                let text = |at| bucket_long(at, answer.grain, &answer.zone, locale);
                row.bucket.map(text).unwrap_or_default()
            };
            cells.push(Box::new(text));
        }
        if has_group {
            heads.push((humanize(card.query.group_by.as_deref().unwrap_or(words.group)), false));
            // More is never shown of a name, and measuring it again and again takes time.
            let text = move |row: &Row| {
                let label = group_label(row.group.as_ref().and_then(Option::as_deref), locale);
                label.chars().take(CELL_CHARS_MAX).collect()
            };
            cells.push(Box::new(text));
        }
        let number = |spec: Spec, value: fn(&Row) -> Option<f64>| -> Cell<'_> {
            Box::new(move |row| full(value(row), &spec))
        };
        if answer.measures.is_empty() {
            heads.push((card.option("value_label").unwrap_or(words.value).to_owned(), true));
            cells.push(number(spec.clone(), |row| row.value));
            if has(|row| row.previous.is_some()) {
                heads.push((words.previous.to_owned(), true));
                cells.push(number(spec, |row| row.previous.flatten()));
            }
            // A share of the total is of no use where each group has a row for each bucket.
            let is_whole = has_group && !has(|row| row.bucket.is_some());
            let total = total_of(answer).filter(|_| is_whole && is_additive(card.metric()));
            if let Some(total) = total {
                heads.push((words.share.to_owned(), true));
                let part = move |row: &Row| {
                    if total == 0.0 { 0.0 } else { row.value.unwrap_or(0.0) / total }
                };
                cells.push(Box::new(move |row| share(part(row), locale)));
            }
        }
        for (at, measure) in answer.measures.iter().enumerate() {
            heads.push((measure.label.clone(), true));
            let spec = measure.format.clone().in_locale(locale);
            cells.push(Box::new(move |row| full(row.values.get(at).copied().flatten(), &spec)));
        }
        let rows = answer.rows.iter().map(|row| cells.iter().map(|cell| cell(row)).collect());
        let rows = rows.collect();
        Self { heads, rows }
    }

    /// Number of rows.
    /// 60 for sixty groups; the head is not counted.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How wide a column must be for all of its cells.
    /// In pixels, with 20 px of padding. Cells are measured in the medium weight, as wide as any of them is drawn.
    fn need(&self, at: usize) -> f64 {
        let head = self.heads[at].0.as_str();
        let measured = self.rows.iter().take(ROWS_MEASURED).filter_map(|row| row.get(at));
        let widths = measured.map(|text| font::width(text, CELL.size, Weight::Medium));
        widths.fold(font::width(head, HEAD.size, HEAD.weight), f64::max) + PADDING
    }

    /// Left edges and widths of the columns that find room in a width: a number is never cut, so a column
    /// that has none is left out. The first, which has the names, may be narrower than they are.
    /// Of 536 px, a first column of 110 and two of 80 px need 270. The other 266 px are divided: half to the first
    /// column, a quarter to each of the others.
    fn columns(&self, room: f64) -> Vec<(f64, f64)> {
        if self.heads.is_empty() {
            return Vec::new();
        }
        let first = self.need(0);
        let mut widths = vec![first.min(FIRST_MIN.max(room * 0.4))];
        for at in 1..self.heads.len() {
            let width = self.need(at);
            if widths.iter().sum::<f64>() + width > room {
                // The columns behind are left out as well, or their order would change.
                break;
            }
            widths.push(width);
        }
        // What is left goes to the first as far as it needs it, then to all.
        let spare = (room - widths.iter().sum::<f64>()).max(0.0);
        let to_first = spare.min((first - widths[0]).max(0.0));
        widths[0] += to_first;
        let (spare, others) = (spare - to_first, widths.len() - 1);
        let each = if others > 0 { spare / 2.0 / others as f64 } else { 0.0 };
        widths[0] += spare - each * others as f64;
        widths.iter_mut().skip(1).for_each(|width| *width += each);
        let mut left = 0.0;
        let place = |width: f64| {
            let at = left;
            left += width;
            (at, width)
        };
        widths.into_iter().map(place).collect()
    }

    /// The table in parts that each fit into a width, all with the first column.
    /// Twenty measures in 1,160 px are several tables: the first with columns 0 to 8, say, the next with 0 and 9 to 16.
    pub fn parts(self, room: f64) -> Vec<Self> {
        let shown = self.columns(room).len();
        // Where not even a second column fits, splitting would go on for ever.
        if shown >= self.heads.len() || shown < 2 {
            return vec![self];
        }
        let split = |keep: &dyn Fn(usize) -> bool| Self {
            heads: kept(&self.heads, keep),
            rows: self.rows.iter().map(|row| kept(row, keep)).collect(),
        };
        let first = split(&|at| at < shown);
        let rest = split(&|at| at == 0 || at >= shown);
        [vec![first], rest.parts(room)].concat()
    }

    /// Draws the head and some of the rows, each `row` high; returns the lower edge.
    /// `range` are indexes of rows, such as `26..52` on a second page. Below the head is a strong line, between rows a
    /// weak one, and none below the last.
    pub fn draw(&self, svg: &mut Svg, area: Area, range: std::ops::Range<usize>, row: f64) -> f64 {
        let columns = self.columns(area.w);
        let cell = |svg: &mut Svg, at: usize, y: f64, style: Style, text: &str| {
            let (left, width) = columns[at];
            // Only names are cut to the room; a number has the width of its column, which `columns` made wide enough.
            let room = if at == 0 { width - PADDING / 2.0 } else { width };
            let text = font::fit(text, style.size, style.weight, room);
            if self.heads[at].1 {
                svg.text(area.x + left + width, y, style.end(), &text);
            } else {
                svg.text(area.x + left, y, style, &text);
            }
        };
        let line = |svg: &mut Svg, y: f64, color: Ink| {
            svg.line((area.x, y), (area.x + area.w, y), color, 1.0);
        };
        for (at, (head, _)) in self.heads.iter().take(columns.len()).enumerate() {
            cell(svg, at, area.y + row / 2.0, HEAD, head);
        }
        let mut y = area.y + row;
        line(svg, y - 0.5, Ink::Axis);
        let end = range.end;
        for (turn, texts) in self.rows[range.clone()].iter().enumerate() {
            for (at, text) in texts.iter().take(columns.len()).enumerate() {
                let style = if at == 0 { FIRST } else { CELL };
                cell(svg, at, y + row / 2.0, style, text);
            }
            y += row;
            if range.start + turn + 1 < end {
                line(svg, y - 0.5, Ink::Grid);
            }
        }
        y
    }
}

/// Draws a table in its card: as many rows and columns as fit. Whether some do not.
/// The note is `and 54 more`, `2 columns not shown`, or both.
pub fn in_card(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) -> bool {
    const ROW: f64 = 36.0;
    let table = Table::of(card, answer);
    let hidden = table.heads.len() - table.columns(area.w).len().min(table.heads.len());
    let note = if hidden > 0 { 20.0 } else { 0.0 };
    let rows = (((area.h - note) / ROW).floor() as usize).max(1);
    let all_fit = table.len() < rows;
    // The note and the head take their height from the rows.
    let few = (((area.h - 20.0) / ROW).floor() as usize).saturating_sub(1).max(1);
    let shown = if all_fit { table.len() } else { few.min(table.len()) };
    let y = table.draw(svg, area, 0..shown, ROW);
    let words = words(card.locale);
    let mut notes = Vec::new();
    if shown < table.len() {
        notes.push((words.more)(table.len() - shown));
    }
    if hidden > 0 {
        notes.push((words.columns_hidden)(hidden));
    }
    svg.text(area.x, y + 11.0, NOTE, &notes.join(" · "));
    !notes.is_empty()
}
