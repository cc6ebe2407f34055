//! Groups by size: the bar list, horizontal bars, the donut; and the steps of a funnel.
//!
//! The same drawing as in `web/charts/groups.js` and `funnel.js`: as many rows as fit, the rest named by
//! a count.
//!
//! Of a card of 6 × 6 on the grid, a drawing has 536 × 274 px:
//!
//! ```text
//! bar_list           10 groups   7 rows of 35 px, and below them "and 3 more"
//! horizontal bars    10 groups   10 rows of 27 px
//! donut              limit 20    6 parts and "Other", a ring of 200 px, and a list of rows of 30 px
//! funnel             6 steps     5 rows of 45 px, and "and 1 more · Independent steps"
//! ```
//!
//! ```text
//! gpt-4o                          6   60%     ████████████████████████
//! claude-sonnet                   2   20%     ████████
//! Other                           2   20%     ████████                     grey
//! ```
//!
//! Bars are relative to the largest shown, shares to the total of all groups. Averages and quantiles have no total:
//! neither shares nor `Other`, and nothing in the middle of the ring.

use std::f64::consts::TAU;

use super::{
    font::{self, Weight},
    format::{humanize, share, short},
    model::{Answer, Card},
    plot::Area,
    series::{Ranked, group_label, paint, ranked},
    svg::{Style, Svg},
    theme::Ink,
    words::words,
};
use crate::base::locale::Locale;

// Height of a row of the bar list, in pixels: a bar of 32 and a gap of 3.
const LIST_ROW: f64 = 35.0;
// Rows of horizontal bars share the height within these limits, in pixels.
const BAR_ROW_MIN: f64 = 26.0;
const BAR_ROW_MAX: f64 = 44.0;
// Height of the line `and 3 more`, in pixels.
const MORE: f64 = 24.0;
// Parts of a donut besides `Other`, at most.
const PARTS_MAX: usize = 6;
// Height of an entry of the list beside the ring, in pixels.
const LEGEND_ROW: f64 = 30.0;
/// Wide cards put the list beside the ring, narrow ones below it.
const SIDE_WIDTH_MIN: f64 = 400.0;
// Room for a share such as `60%`, in pixels.
const SHARE_WIDTH: f64 = 36.0;

const NAME: Style = Style::new(13.0, Weight::Regular, Ink::Text);
const VALUE: Style = Style::new(13.0, Weight::SemiBold, Ink::Text).end();
const SHARE: Style = Style::new(13.0, Weight::Regular, Ink::Muted).end();
const NOTE: Style = Style::new(11.5, Weight::Regular, Ink::Muted);

/// The groups of a list, with `Other` where values add up. `{"order": "none"}` leaves the order of the query; a
/// widget without a limit shows as many as have room.
fn items_of(card: &Card, answer: &Answer) -> Vec<Ranked> {
    let limit = card.query.limit.filter(|limit| *limit > 0).unwrap_or(1_000);
    let keeps_order = card.option("order") == Some("none");
    let (mut items, _) = ranked(answer, limit, card.metric(), keeps_order, card.locale);
    paint(items.iter_mut().map(|item| &mut item.color), card.first_color());
    items
}

/// How many rows fit, and how many do not.
/// `fit_rows(7, 274.0, 35.0)` is `(7, 0)`, and `fit_rows(8, 274.0, 35.0)` is `(7, 1)`: the line that counts the rest
/// needs room as well. At least one row is drawn.
fn fit_rows(count: usize, height: f64, row: f64) -> (usize, usize) {
    if count as f64 * row <= height + 4.0 {
        return (count, 0);
    }
    let room = (((height - MORE) / row).floor().max(1.0)) as usize;
    (room.min(count), count - room.min(count))
}

/// `and 3 more` below the rows, and nothing where all are shown.
fn note_more(svg: &mut Svg, area: Area, y: f64, more: usize, locale: Locale) {
    if more > 0 {
        svg.text(area.x, y + 14.0, NOTE, &(words(locale).more)(more));
    }
}

/// The length of a bar is relative to this; 0 where all values are zero.
fn largest(items: &[Ranked]) -> f64 {
    items.iter().map(|item| item.value.abs()).fold(0.0, f64::max)
}

/// From 0.005 to 1, so that a small value has a visible bar. Negative values have the length of their size.
fn part_of(item: &Ranked, largest: f64) -> f64 {
    if largest > 0.0 { (item.value.abs() / largest).max(0.005) } else { 0.0 }
}

/// Draws a list whose labels stand on their bars.
/// The bar lies behind the text, pale; share and value are at the right, and the name has the rest.
pub fn bar_list(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) {
    let items = items_of(card, answer);
    let (shown, more) = fit_rows(items.len(), area.h, LIST_ROW);
    let shown = &items[..shown];
    let (most, spec) = (largest(shown), card.spec());
    for (at, item) in shown.iter().enumerate() {
        let y = area.y + at as f64 * LIST_ROW;
        let fill = if item.is_other { Ink::Fill } else { Ink::Soft };
        svg.rect((area.x, y, (area.w * part_of(item, most)).max(3.0), 32.0), 6.0, fill);
        let mut right = area.x + area.w - 10.0;
        if let Some(part) = item.share {
            svg.text(
                right,
                y + 16.0,
                Style { color: Ink::Text2, ..SHARE },
                &share(part, card.locale),
            );
            right -= SHARE_WIDTH + 10.0;
        }
        let value = short(Some(item.value), &spec);
        svg.text(right, y + 16.0, VALUE, &value);
        let room = right - font::width(&value, VALUE.size, VALUE.weight) - 10.0 - (area.x + 10.0);
        let name = font::fit(&item.label, NAME.size, NAME.weight, room);
        svg.text(area.x + 10.0, y + 16.0, NAME, &name);
    }
    note_more(svg, area, area.y + shown.len() as f64 * LIST_ROW, more, card.locale);
}

/// Draws bars that lie beside their labels.
/// The names take three tenths of the width, at least 72 px; the value is behind the end of its bar.
pub fn horizontal_bars(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) {
    let items = items_of(card, answer);
    let row = (area.h / items.len().max(1) as f64).floor().clamp(BAR_ROW_MIN, BAR_ROW_MAX);
    let (shown, more) = fit_rows(items.len(), area.h, row);
    let shown = &items[..shown];
    let (most, spec) = (largest(shown), card.spec());
    let names = (area.w * 0.3).max(72.0);
    let track = (area.w - names - 12.0 - 60.0).max(20.0);
    // A bar is 12 to 22 px thick, about half of its row.
    let thick = (row * 0.56).clamp(12.0, 22.0);
    for (at, item) in shown.iter().enumerate() {
        let middle = area.y + (at as f64 + 0.5) * row;
        let name = font::fit(&item.label, 13.0, Weight::Regular, names);
        svg.text(area.x, middle, Style { color: Ink::Text2, ..NAME }, &name);
        let (left, length) = (area.x + names + 12.0, (track * part_of(item, most)).max(2.0));
        let first = Ink::Series(card.first_color());
        // All bars have the first colour: the names distinguish them.
        let color = if item.is_other { item.color } else { first };
        svg.rect((left, middle - thick / 2.0, length, thick), 3.0, color);
        let style = Style::new(12.5, Weight::Medium, Ink::Text);
        svg.text(left + length + 8.0, middle, style, &short(Some(item.value), &spec));
    }
    note_more(svg, area, area.y + shown.len() as f64 * row, more, card.locale);
}

/// Draws parts of a whole, as a ring and a list.
/// In a narrow card the list is below the ring; a ring of less than 90 px is left out, and its room goes to the list.
pub fn donut(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) {
    let limit = card.query.limit.filter(|limit| *limit > 0).unwrap_or(PARTS_MAX).min(PARTS_MAX);
    let (mut items, total) = ranked(answer, limit, card.metric(), false, card.locale);
    paint(items.iter_mut().map(|item| &mut item.color), card.first_color());
    let rows = items.len() as f64 * LEGEND_ROW;
    let side = area.w >= SIDE_WIDTH_MIN;
    let room = if side { area.h.min(area.w * 0.42) } else { area.w.min(area.h - rows - 18.0) };
    let size = room.clamp(0.0, 200.0);
    let list = if side {
        let wide = (area.w - size - 28.0).min(360.0);
        let left = area.x + (area.w - size - 28.0 - wide) / 2.0;
        ring(svg, (left + size / 2.0, area.y + area.h / 2.0), size, card, &items, total);
        let height = rows.min(area.h);
        Area { x: left + size + 28.0, y: area.y + (area.h - height) / 2.0, w: wide, h: height }
    } else {
        let used = if size >= 90.0 { size + 18.0 } else { 0.0 };
        ring(svg, (area.x + area.w / 2.0, area.y + size / 2.0), size, card, &items, total);
        Area { y: area.y + used, h: area.h - used, ..area }
    };
    let (spec, shown) = (card.spec(), fit_rows(items.len(), list.h, LEGEND_ROW).0);
    let part = |item: &Ranked| item.share.map(|part| share(part, card.locale)).unwrap_or_default();
    for (at, item) in items.iter().take(shown).enumerate() {
        let middle = list.y + (at as f64 + 0.5) * LEGEND_ROW;
        svg.rect((list.x, middle - 5.0, 10.0, 10.0), 3.0, item.color);
        let right = list.x + list.w;
        svg.text(right, middle, SHARE, &part(item));
        let value = short(Some(item.value), &spec);
        svg.text(right - SHARE_WIDTH - 10.0, middle, VALUE, &value);
        let room = list.w - SHARE_WIDTH - 40.0 - font::width(&value, VALUE.size, VALUE.weight);
        svg.text(list.x + 20.0, middle, NAME, &font::fit(&item.label, 13.0, Weight::Regular, room));
    }
}

/// Parts go clockwise from the top. The total is in the middle, with the unit below: `12.3K` over `api call`.
/// The unit needs a ring of 120 px.
fn ring(
    svg: &mut Svg,
    (x, y): (f64, f64),
    size: f64,
    card: &Card,
    items: &[Ranked],
    total: Option<f64>,
) {
    // Less shows no parts.
    if size < 90.0 {
        return;
    }
    let (outer, inner) = (size / 2.0, size / 2.0 * 0.66);
    let sum: f64 = items.iter().map(|item| item.value.max(0.0)).sum();
    // Without a total the shown groups are the whole ring.
    let known = total.filter(|total| *total != 0.0).or((sum != 0.0).then_some(sum));
    let whole = known.unwrap_or(1.0);
    // A gap of 2 px at the outer edge between two parts; a single part is closed.
    let inset = if items.len() > 1 { 1.0 / (TAU * outer) } else { 0.0 };
    let mut turn = 0.0;
    for item in items {
        let from = turn;
        turn += item.value.max(0.0) / whole;
        if turn - from > inset * 2.0 {
            svg.fill(&arc((x, y), from + inset, turn - inset, outer, inner), item.color);
        }
    }
    let Some(total) = total else { return };
    let spec = card.spec();
    let counted = card.query.event_name.as_deref().filter(|_| card.metric() == Some("count"));
    // The name of what is counted: the label of the widget, else the unit of its format, else the event.
    let unit = card.option("value_label").map(str::to_owned);
    let unit = unit.or_else(|| spec.unit().map(str::to_owned));
    let unit =
        unit.or_else(|| counted.map(|event| humanize(event).to_lowercase())).unwrap_or_default();
    let up = if unit.is_empty() { 0.0 } else { 4.0 };
    let style = Style::new(18.0, Weight::SemiBold, Ink::Text).middle();
    svg.text(x, y - up, style, &short(Some(total), &spec.without_unit()));
    if !unit.is_empty() && size >= 120.0 {
        let text = font::fit(&unit, NOTE.size, NOTE.weight, inner * 1.7);
        svg.text(x, y + 14.0, NOTE.middle(), &text);
    }
}

/// A part of a ring between two turns, from 12 o'clock on.
/// The first quarter of a ring of radius 100 about (100, 100), with a hole of radius 66:
///
/// ```text
/// M100.00 0.00A100 100 0 0 1 200.00 100.00L166.00 100.00A66 66 0 0 0 100.00 34.00Z
/// ```
fn arc((x, y): (f64, f64), from: f64, to: f64, outer: f64, inner: f64) -> String {
    // A whole turn has no start and end to draw between.
    let end = to.min(from + 0.9999);
    let at = |turn: f64, r: f64| {
        format!("{:.2} {:.2}", x + (turn * TAU).sin() * r, y - (turn * TAU).cos() * r)
    };
    let large = u8::from(end - from > 0.5);
    format!(
        "M{}A{outer} {outer} 0 {large} 1 {}L{}A{inner} {inner} 0 {large} 0 {}Z",
        at(from, outer),
        at(end, outer),
        at(end, inner),
        at(from, inner)
    )
}

/// Draws how many get to each step.
/// Steps count independently: of `signup` 100, `invite` 40, `pay` 60, the shares are `100%`, `40%` and `60%` of the
/// first step. Bars are relative to the largest step, which need not be the first.
pub fn funnel(svg: &mut Svg, area: Area, card: &Card, answer: &Answer) {
    const ROW: f64 = 45.0;
    let values: Vec<f64> = answer.rows.iter().map(|row| row.value.unwrap_or(0.0)).collect();
    let first = values.first().copied().unwrap_or(0.0);
    let most = values.iter().copied().fold(0.0, f64::max);
    let (shown, more) = fit_rows(values.len(), area.h - MORE, ROW);
    let top = area.y + ((area.h - MORE - shown as f64 * ROW) / 2.0).max(0.0);
    let spec = card.spec();
    for (at, row) in answer.rows.iter().take(shown).enumerate() {
        let y = top + at as f64 * ROW;
        let right = area.x + area.w;
        let part =
            if first > 0.0 { share(values[at] / first, card.locale) } else { "—".to_owned() };
        svg.text(right, y + 10.0, SHARE, &part);
        let value = short(row.value.or(Some(0.0)), &spec);
        svg.text(right - 50.0, y + 10.0, VALUE, &value);
        let label = group_label(row.group.as_ref().and_then(Option::as_deref), card.locale);
        let room = area.w - 70.0 - font::width(&value, VALUE.size, VALUE.weight);
        svg.text(area.x, y + 10.0, NAME, &font::fit(&label, 13.0, Weight::Regular, room));
        svg.rect((area.x, y + 25.0, area.w, 8.0), 4.0, Ink::Fill);
        if most > 0.0 && values[at] > 0.0 {
            svg.rect((area.x, y + 25.0, area.w * (values[at] / most), 8.0), 4.0, Ink::PRIMARY);
        }
    }
    let words = words(card.locale);
    let note = if more > 0 {
        format!("{} · {}", (words.more)(more), words.steps)
    } else {
        words.steps.to_owned()
    };
    svg.text(area.x, top + shown as f64 * ROW + 12.0, NOTE, &note);
}
