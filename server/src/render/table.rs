//! Tables: a table widget in its card, and in full on pages of its own.
//!
//! The same columns as in `web/charts/table.js`.

use super::{
    font::{self, Weight},
    format::{Spec, bucket_long, full, humanize, share},
    model::{Answer, Card, Row},
    plot::Area,
    series::{group_label, is_additive, total_of},
    svg::{Style, Svg},
    theme::{AXIS, GRID, MUTED, TEXT},
};

const HEAD: Style = Style::new(12.5, Weight::Regular, MUTED);
const CELL: Style = Style::new(13.0, Weight::Regular, TEXT);
const FIRST: Style = Style::new(13.0, Weight::Medium, TEXT);
const NOTE: Style = Style::new(11.5, Weight::Regular, MUTED);
const PADDING: f64 = 20.0;
const COLUMN_MIN: f64 = 56.0;
const FIRST_MIN: f64 = 110.0;
/// Rows that decide how wide columns are: widths of thousands cost more than they tell.
const ROWS_MEASURED: usize = 200;

/// A table that can be drawn: heads, and rows of cells as they read.
pub struct Table {
    heads: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The table of a widget's answer.
    pub fn of(card: &Card, answer: &Answer) -> Self {
        let mut heads: Vec<(String, bool)> = Vec::new();
        type Cell<'a> = Box<dyn Fn(&Row) -> String + 'a>;
        let mut cells: Vec<Cell<'_>> = Vec::new();
        let has = |test: fn(&Row) -> bool| answer.rows.iter().any(test);
        let has_group = has(|row| row.group.is_some());
        let spec = card.spec();
        if has(|row| row.bucket.is_some()) {
            heads.push(("Time".to_owned(), false));
            let text = |row: &Row| {
                row.bucket.map(|at| bucket_long(at, answer.grain, &answer.zone)).unwrap_or_default()
            };
            cells.push(Box::new(text));
        }
        if has_group {
            heads.push((humanize(card.query.group_by.as_deref().unwrap_or("Group")), false));
            let text = |row: &Row| group_label(row.group.as_ref().and_then(Option::as_deref));
            cells.push(Box::new(text));
        }
        let number = |spec: Spec, value: fn(&Row) -> Option<f64>| -> Cell<'_> {
            Box::new(move |row| full(value(row), &spec))
        };
        if answer.measures.is_empty() {
            heads.push((card.option("value_label").unwrap_or("Value").to_owned(), true));
            cells.push(number(spec.clone(), |row| row.value));
            if has(|row| row.previous.is_some()) {
                heads.push(("Previous".to_owned(), true));
                cells.push(number(spec, |row| row.previous.flatten()));
            }
            let is_whole = has_group && !has(|row| row.bucket.is_some());
            let total = total_of(answer).filter(|_| is_whole && is_additive(card.metric()));
            if let Some(total) = total {
                heads.push(("Share".to_owned(), true));
                let part = move |row: &Row| {
                    if total == 0.0 { 0.0 } else { row.value.unwrap_or(0.0) / total }
                };
                cells.push(Box::new(move |row| share(part(row))));
            }
        }
        for (at, measure) in answer.measures.iter().enumerate() {
            heads.push((measure.label.clone(), true));
            let spec = measure.format.clone();
            cells.push(Box::new(move |row| full(row.values.get(at).copied().flatten(), &spec)));
        }
        let rows = answer.rows.iter().map(|row| cells.iter().map(|cell| cell(row)).collect());
        let rows = rows.collect();
        Self { heads, rows }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Left edges and widths of the columns in a width: as wide as they need to be, the first taking
    /// what is left; all of them narrower where that is too much.
    fn columns(&self, room: f64) -> Vec<(f64, f64)> {
        let need = |at: usize| {
            let head = self.heads[at].0.as_str();
            let measured = self.rows.iter().take(ROWS_MEASURED).filter_map(|row| row.get(at));
            let widths = measured.map(|text| font::width(text, CELL.size, Weight::Medium));
            widths.fold(font::width(head, HEAD.size, HEAD.weight), f64::max) + PADDING
        };
        let mut widths: Vec<f64> = (0..self.heads.len()).map(need).collect();
        let Some((first, others)) = widths.split_first_mut() else { return Vec::new() };
        let rest = |others: &[f64]| others.iter().sum::<f64>();
        if FIRST_MIN + rest(others) > room {
            let squeeze = (room - FIRST_MIN).max(0.0) / rest(others);
            others.iter_mut().for_each(|width| *width = (*width * squeeze).max(COLUMN_MIN));
        }
        // What is left goes to all, as they need it; half of it to the first, which has the names.
        let spare = (room - *first - rest(others)).max(0.0);
        let count = others.len().max(1) as f64;
        others.iter_mut().for_each(|width| *width += spare / 2.0 / count);
        *first = (room - rest(others)).max(FIRST_MIN);
        let mut left = 0.0;
        let mut place = |width: f64| {
            let at = left;
            left += width;
            (at, width)
        };
        widths.into_iter().map(&mut place).collect()
    }

    /// Draws the head and some of the rows, each `row` high; returns the lower edge.
    pub fn draw(&self, svg: &mut Svg, area: Area, range: std::ops::Range<usize>, row: f64) -> f64 {
        // What has no room at the right is left out, as a page cannot be scrolled.
        let columns: Vec<(f64, f64)> = self.columns(area.w);
        let fits = |&&(left, width): &&(f64, f64)| left + width <= area.w + 0.5;
        let columns: Vec<&(f64, f64)> = columns.iter().filter(fits).collect();
        let cell = |svg: &mut Svg, at: usize, y: f64, style: Style, text: &str| {
            let (left, width) = *columns[at];
            let text = font::fit(text, style.size, style.weight, width - PADDING / 2.0);
            if self.heads[at].1 {
                svg.text(area.x + left + width, y, style.end(), &text);
            } else {
                svg.text(area.x + left, y, style, &text);
            }
        };
        let line = |svg: &mut Svg, y: f64, color: &str| {
            svg.line((area.x, y), (area.x + area.w, y), color, 1.0);
        };
        for (at, (head, _)) in self.heads.iter().take(columns.len()).enumerate() {
            cell(svg, at, area.y + row / 2.0, HEAD, head);
        }
        let mut y = area.y + row;
        line(svg, y - 0.5, AXIS);
        let end = range.end;
        for (turn, texts) in self.rows[range.clone()].iter().enumerate() {
            for (at, text) in texts.iter().take(columns.len()).enumerate() {
                let style = if at == 0 { FIRST } else { CELL };
                cell(svg, at, y + row / 2.0, style, text);
            }
            y += row;
            if range.start + turn + 1 < end {
                line(svg, y - 0.5, GRID);
            }
        }
        y
    }
}

/// Draws a table in its card: as many rows as fit. Whether some do not.
pub fn in_card(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) -> bool {
    const ROW: f64 = 36.0;
    let table = Table::of(card, answer);
    let rows = (area.h / ROW).floor() as usize;
    if table.len() < rows {
        table.draw(svg, area, 0..table.len(), ROW);
        return false;
    }
    let shown =
        (((area.h - 20.0) / ROW).floor() as usize).saturating_sub(1).max(1).min(table.len());
    let y = table.draw(svg, area, 0..shown, ROW);
    if shown < table.len() {
        svg.text(area.x, y + 11.0, NOTE, &format!("and {} more", table.len() - shown));
    }
    shown < table.len()
}
