//! One card: its edge, its head, and the drawing that belongs to its kind.
//!
//! ```text
//! kind                     drawn by
//! number                   tiles::number           large value, change, sparkline
//! text                     tiles::prose            without an edge, on the page itself
//! line, area               timed::lines
//! stacked_bar              timed::bars
//! bar, with buckets        timed::bars
//! bar, without             ranking::horizontal_bars
//! bar_list donut funnel    ranking
//! any other                table::in_card          a kind of a later version is a table
//! ```
//!
//! Of a card of 6 columns and 4 rows, 572 × 224 px, the drawing has 536 × 154 px from (18, 52): padding
//! of 18 px, a head of 20 px, and 14 px between.
//!
//! Instead of a drawing, a card may say:
//!
//! ```text
//! rows without values, or zeros of a count   Nothing in this period / No events match.
//! a query that failed                        This chart couldn’t load / the message of the query
//! a number whose query failed                Couldn’t load.
//! ```

use super::{
    font::{self, Weight},
    format::{Spec, full},
    model::Card,
    plot::Area,
    ranking::{bar_list, donut, funnel, horizontal_bars},
    series::is_empty,
    svg::{Style, Svg},
    table::in_card,
    theme::Ink,
    tiles::{number, prose, state},
    timed::{bars, lines},
    words::words,
};

const PADDING: f64 = 18.0;
const RADIUS: f64 = 12.0;
const TITLE: Style = Style::new(13.5, Weight::SemiBold, Ink::Text);
const SUBTITLE: Style = Style::new(12.5, Weight::Regular, Ink::Muted);
const NUMBER_TITLE: Style = Style::new(13.0, Weight::Medium, Ink::Text2);
const PROSE_TITLE: Style = Style::new(15.0, Weight::SemiBold, Ink::PageText);

/// Draws a card; whether its table has more than it shows. What a small card has no room for is cut at
/// its edge.
/// The clip path has an id of its own, so that the cards of one drawing do not share it:
///
/// ```text
/// <clipPath id="i1"><rect x="0.0" y="0.0" width="278.0" height="164.0" rx="12"/></clipPath><g clip-path="url(#i1)">…</g>
/// ```
pub fn draw(svg: &mut Svg, area: Area, card: &Card) -> bool {
    let id = svg.new_id();
    let Area { x, y, w, h } = area;
    svg.raw(format_args!(
        r#"<clipPath id="{id}"><rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" rx="{RADIUS}"/></clipPath><g clip-path="url(#{id})">"#
    ));
    let is_cut = draw_inside(svg, area, card);
    svg.raw(format_args!("</g>"));
    is_cut
}

/// As [`draw()`], without the clip path. Only tables return true: other kinds name the rest by a count, which
/// no page repeats.
fn draw_inside(svg: &mut Svg, area: Area, card: &Card) -> bool {
    // Prose lies on the page: no edge, and the colours of the page instead of those of a card.
    if card.kind == "text" {
        let head = if card.title.is_empty() { 0.0 } else { 24.0 };
        let title = font::fit(&card.title, PROSE_TITLE.size, PROSE_TITLE.weight, area.w);
        svg.text(area.x + 2.0, area.y + 11.0, PROSE_TITLE, &title);
        let body = Area { x: area.x + 2.0, y: area.y + head, w: area.w - 4.0, h: area.h - head };
        prose(svg, body, card);
        return false;
    }
    let words = words(card.locale);
    edge(svg, area);
    let inner = Area { x: area.x + PADDING, w: area.w - 2.0 * PADDING, ..area };
    // A number that failed has no room for a heading and a sentence.
    if card.kind == "number" {
        let title = font::fit(&card.title, NUMBER_TITLE.size, NUMBER_TITLE.weight, inner.w);
        svg.text(inner.x, area.y + 25.0, NUMBER_TITLE, &title);
        let body = Area { y: area.y + 36.0, h: area.h - 37.0, ..inner };
        match &card.answer {
            Ok(answer) => number(svg, body, card, answer, PADDING - 1.0),
            Err(_) => svg.text(body.x, body.y + 18.0, SUBTITLE, words.number_failed),
        }
        return false;
    }
    head(svg, Area { y: area.y + PADDING, h: 20.0, ..inner }, card);
    let top = area.y + PADDING + 20.0 + 14.0;
    let body = Area { y: top, h: area.y + area.h - PADDING - top, ..inner };
    let answer = match &card.answer {
        // A count of zero everywhere is an empty chart; an average of zero is a value and is drawn.
        Ok(answer) if is_empty(answer, card.metric()) => {
            state(svg, body, words.nothing[0], words.nothing[1]);
            return false;
        }
        Ok(answer) => answer,
        Err(message) => {
            state(svg, body, words.chart_failed, message);
            return false;
        }
    };
    match card.kind.as_str() {
        "line" | "area" => lines(svg, body, card, answer),
        "stacked_bar" => bars(svg, body, card, answer),
        "bar" if answer.rows.iter().any(|row| row.bucket.is_some()) => {
            bars(svg, body, card, answer)
        }
        "bar" => horizontal_bars(svg, body, card, answer),
        "bar_list" => bar_list(svg, body, card, answer),
        "donut" => donut(svg, body, card, answer),
        "funnel" => funnel(svg, body, card, answer),
        // Tables begin 6 px higher and may end 12 px lower than drawings: their rows have a padding of their own.
        _ => return in_card(svg, Area { y: body.y - 6.0, h: body.h + 18.0, ..body }, card, answer),
    }
    false
}

/// The stroke is centred half a pixel inside, where it is one sharp pixel wide.
fn edge(svg: &mut Svg, area: Area) {
    let Area { x, y, w, h } = area;
    let (fill, stroke) = (svg.color(Ink::Card), svg.color(Ink::Border));
    svg.raw(format_args!(
        r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="{RADIUS}" fill="{fill}" stroke="{stroke}"/>"#,
        x + 0.5,
        y + 0.5,
        w - 1.0,
        h - 1.0
    ));
}

/// The title, what is said beside it, and how much of the groups is there when it is not all.
/// `Requests by country  per hour  Top 50 of 120`: the option `subtitle`, then the count of groups. Funnels
/// have no such count: their rows are steps. Beside a long title with at most 40 px left, nothing is written.
fn head(svg: &mut Svg, area: Area, card: &Card) {
    let middle = area.y + 10.0;
    let title = font::fit(&card.title, TITLE.size, TITLE.weight, area.w);
    svg.text(area.x, middle, TITLE, &title);
    let mut beside: Vec<String> = card.option("subtitle").map(str::to_owned).into_iter().collect();
    if let Ok(answer) = &card.answer
        && answer.groups_total > answer.groups_returned
        && card.kind != "funnel"
    {
        let count = |count: usize| full(Some(count as f64), &Spec::plain(card.locale));
        let (shown, all) = (count(answer.groups_returned), count(answer.groups_total));
        beside.push((words(card.locale).top_of)(&shown, &all));
    }
    let left = font::width(&title, TITLE.size, TITLE.weight) + 8.0;
    let text = font::fit(&beside.join("  "), SUBTITLE.size, SUBTITLE.weight, area.w - left);
    if area.w - left > 40.0 && !beside.is_empty() {
        svg.text(area.x + left, middle + 0.5, SUBTITLE, &text);
    }
}
