//! Cards that are mostly text: the number, prose, and what is said instead of a drawing.
//!
//! ```text
//! a number of 3 × 3, 278 × 164 px            prose                    state
//! Requests                                   Notes                        (dashed chart)
//! 12.3K                                      As many lines        Nothing in this period
//! ▲ 8.1%  vs previous 7 days                 of 20 px as fit        No events match.
//! ▁▂▃▅▆▇  60 px down to the edge
//! ```
//!
//! The colour of a change says whether it is good, its arrow where it went: errors with `{"good_direction": "down"}`
//! that rise have a red arrow up.

use super::{
    font::{self, Weight},
    format::{Direction, change, change_text, period, short},
    model::{Answer, Card},
    plot::Area,
    scale::{domain, linear},
    series::{is_additive, is_whole, runs},
    svg::{Style, Svg},
    theme::Ink,
    words::words,
};

const SMALL: Style = Style::new(12.5, Weight::Regular, Ink::Muted);
/// Less height than this shows no course, only noise.
/// A tile of two rows is 104 px high: below the change, nothing is left for it.
const SPARK_HEIGHT_MIN: f64 = 22.0;

/// Draws a number with its change and its course. `edge` is what lies between the area and the edge of
/// its card, which the course fills.
/// A count or a sum without events is 0. An average is `—`, with `No events in this period` below. The sparkline is as
/// high as what is left, and at least 22 px or not there.
pub fn number(svg: &mut Svg, area: Area, card: &Card, answer: &Answer, edge: f64) {
    let (metric, spec) = (card.metric(), card.spec());
    let row = answer.rows.first();
    let value = row.and_then(|row| row.value);
    let value = value.or((is_additive(metric) || is_whole(metric)).then_some(0.0));
    let color = if value.is_some() { Ink::Text } else { Ink::Muted };
    let style = Style::new(30.0, Weight::SemiBold, color);
    let text = font::fit(&short(value, &spec), style.size, style.weight, area.w);
    svg.text(area.x, area.y + 18.0, style, &text);
    let y = area.y + 36.0 + 3.0 + 10.0;
    let previous = row.and_then(|row| row.previous);
    match (value, previous) {
        (None, _) => svg.text(area.x, y, SMALL, words(card.locale).no_events),
        (Some(_), Some(previous)) => delta(svg, (area.x, y, area.w), card, answer, value, previous),
        (Some(_), None) => {}
    }
    // A value that is not compared has no line below it, which leaves the sparkline 23 px more.
    let has_delta = value.is_none() || previous.is_some();
    let top = area.y + 36.0 + if has_delta { 23.0 } else { 0.0 } + 8.0;
    let room = Area { x: area.x - edge, y: top, w: area.w + 2.0 * edge, h: area.y + area.h - top };
    if answer.spark.len() > 1 && room.h >= SPARK_HEIGHT_MIN {
        spark(svg, room, &answer.spark, Ink::Series(card.first_color()));
    }
}

/// `▲ 8.1%  vs previous 7 days`; the words at the end are left out where they have no room. Nothing where one of the
/// values is missing.
fn delta(
    svg: &mut Svg,
    (x, y, w): (f64, f64, f64),
    card: &Card,
    answer: &Answer,
    value: Option<f64>,
    previous: Option<f64>,
) {
    let Some((direction, _)) = change(value, previous) else { return };
    // `up` without one, `down`, or `neutral`, which has no colour.
    let good = card.option("good_direction").unwrap_or("up");
    let is_good = match direction {
        Direction::Up => Some(good == "up"),
        Direction::Down => Some(good == "down"),
        Direction::Flat => None,
    };
    let color = match is_good.filter(|_| good != "neutral") {
        Some(true) => Ink::Good,
        Some(false) => Ink::Bad,
        None => Ink::Text2,
    };
    let mut left = x;
    // Base of the triangle, counted from 3 px above the middle of the line, and from there to its tip; up is negative.
    let arrow = match direction {
        Direction::Up => Some((6.0, -6.0)),
        Direction::Down => Some((0.0, 6.0)),
        Direction::Flat => None,
    };
    if let Some((foot, rise)) = arrow {
        let base = y - 3.0 + foot;
        svg.fill(&format!("M{left:.1} {base:.1}h8l-4 {rise}Z"), color);
        left += 12.0;
    }
    let text = change_text(value, previous, card.locale);
    let style = Style::new(12.5, Weight::SemiBold, color);
    svg.text(left, y, style, &text);
    left += font::width(&text, style.size, style.weight) + 6.0;
    let period = answer.period.as_deref().map(|name| period(name, card.locale));
    let versus = (words(card.locale).versus)(period.as_deref());
    if left + font::width(&versus, SMALL.size, SMALL.weight) <= x + w {
        svg.text(left, y, SMALL, &versus);
    }
}

/// A line through the values and a fade below it, from the smallest to the largest value. Equal values are a line
/// in the middle; a gap in the values is one in the line.
fn spark(svg: &mut Svg, area: Area, values: &[Option<f64>], color: Ink) {
    let (min, max) = domain(values.iter().copied(), true);
    let flat = area.h / 2.0;
    let scale = linear(min, max, area.h - 6.0, 3.0);
    let y = |value: f64| area.y + if min == max { flat } else { scale(value) };
    let x = linear(0.0, (values.len() - 1) as f64, area.x, area.x + area.w);
    for run in runs(values) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
        let points: Vec<String> = run
            .iter()
            .map(|&at| format!("{:.1} {:.1}", x(at as f64), y(values[at].unwrap_or_default())))
            .collect();
        let (line, floor) = (points.join("L"), area.y + area.h);
        let (from, to) = (x(first as f64), x(last as f64));
        let area = format!("M{from:.1} {floor:.1}L{line}L{to:.1} {floor:.1}Z");
        svg.fade(&area, color, 0.16);
        svg.stroke(&format!("M{line}"), color, 1.5, "");
    }
}

/// Draws prose, as many lines as fit.
/// The option `text`, in lines of 20 px; the last ends in dots where there is more.
pub fn prose(svg: &mut Svg, area: Area, card: &Card) {
    let style = Style::new(14.0, Weight::Regular, Ink::PageText);
    let room = (area.h / 20.0).floor().max(1.0) as usize;
    let text = card.option("text").unwrap_or_default();
    let lines = font::lines(text, style.size, style.weight, area.w, room);
    for (at, line) in lines.iter().enumerate() {
        svg.text(area.x, area.y + (at as f64 + 0.5) * 20.0, style, line);
    }
}

/// Says in the middle of a card why there is no drawing.
/// A dashed chart above the heading, where the area is at least 110 px high, and up to three lines below it:
///
/// ```text
/// Nothing in this period       No events match.
/// This chart couldn’t load     the query took too long
/// ```
pub fn state(svg: &mut Svg, area: Area, heading: &str, sentence: &str) {
    let middle = (area.x + area.w / 2.0, area.y + area.h / 2.0);
    if area.h >= 110.0 {
        let (x, y) = (middle.0 - 15.0, middle.1 - 50.0);
        let bars = format!(
            "M{x} {0}h30M{1} {2}v-3M{3} {2}v-7M{4} {2}v-8",
            y + 24.0,
            x + 5.0,
            y + 19.0,
            x + 11.0,
            x + 17.0
        );
        svg.stroke(&bars, Ink::BorderStrong, 1.5, "3 3");
    }
    let style = Style::new(14.0, Weight::SemiBold, Ink::Text).middle();
    svg.text(middle.0, middle.1, style, &font::fit(heading, 14.0, Weight::SemiBold, area.w));
    let lines = font::lines(sentence, 13.0, Weight::Regular, area.w - 16.0, 3);
    for (at, line) in lines.iter().enumerate() {
        let style = Style::new(13.0, Weight::Regular, Ink::Muted).middle();
        svg.text(middle.0, middle.1 + 21.0 + at as f64 * 18.0, style, line);
    }
}
