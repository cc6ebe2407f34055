//! One card: its edge, its head, and the drawing that belongs to its kind.

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
};

const PADDING: f64 = 18.0;
const RADIUS: f64 = 12.0;
const TITLE: Style = Style::new(13.5, Weight::SemiBold, Ink::Text);
const SUBTITLE: Style = Style::new(12.5, Weight::Regular, Ink::Muted);
const NUMBER_TITLE: Style = Style::new(13.0, Weight::Medium, Ink::Text2);
const PROSE_TITLE: Style = Style::new(15.0, Weight::SemiBold, Ink::PageText);

/// Draws a card; whether its table has more than it shows. What a small card has no room for is cut at
/// its edge.
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

fn draw_inside(svg: &mut Svg, area: Area, card: &Card) -> bool {
    if card.kind == "text" {
        let head = if card.title.is_empty() { 0.0 } else { 24.0 };
        let title = font::fit(&card.title, PROSE_TITLE.size, PROSE_TITLE.weight, area.w);
        svg.text(area.x + 2.0, area.y + 11.0, PROSE_TITLE, &title);
        let body = Area { x: area.x + 2.0, y: area.y + head, w: area.w - 4.0, h: area.h - head };
        prose(svg, body, card);
        return false;
    }
    edge(svg, area);
    let inner = Area { x: area.x + PADDING, w: area.w - 2.0 * PADDING, ..area };
    if card.kind == "number" {
        let title = font::fit(&card.title, NUMBER_TITLE.size, NUMBER_TITLE.weight, inner.w);
        svg.text(inner.x, area.y + 25.0, NUMBER_TITLE, &title);
        let body = Area { y: area.y + 36.0, h: area.h - 37.0, ..inner };
        match &card.answer {
            Ok(answer) => number(svg, body, card, answer, PADDING - 1.0),
            Err(_) => svg.text(body.x, body.y + 18.0, SUBTITLE, "Couldn’t load."),
        }
        return false;
    }
    head(svg, Area { y: area.y + PADDING, h: 20.0, ..inner }, card);
    let top = area.y + PADDING + 20.0 + 14.0;
    let body = Area { y: top, h: area.y + area.h - PADDING - top, ..inner };
    let answer = match &card.answer {
        Ok(answer) if is_empty(answer, card.metric()) => {
            state(svg, body, "Nothing in this period", "No events match.");
            return false;
        }
        Ok(answer) => answer,
        Err(message) => {
            state(svg, body, "This chart couldn’t load", message);
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
        _ => return in_card(svg, Area { y: body.y - 6.0, h: body.h + 18.0, ..body }, card, answer),
    }
    false
}

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
fn head(svg: &mut Svg, area: Area, card: &Card) {
    let middle = area.y + 10.0;
    let title = font::fit(&card.title, TITLE.size, TITLE.weight, area.w);
    svg.text(area.x, middle, TITLE, &title);
    let mut beside: Vec<String> = card.option("subtitle").map(str::to_owned).into_iter().collect();
    if let Ok(answer) = &card.answer
        && answer.groups_total > answer.groups_returned
        && card.kind != "funnel"
    {
        let count = |count: usize| full(Some(count as f64), &Spec::default());
        let (shown, all) = (count(answer.groups_returned), count(answer.groups_total));
        beside.push(format!("Top {shown} of {all}"));
    }
    let left = font::width(&title, TITLE.size, TITLE.weight) + 8.0;
    let text = font::fit(&beside.join("  "), SUBTITLE.size, SUBTITLE.weight, area.w - left);
    if area.w - left > 40.0 && !beside.is_empty() {
        svg.text(area.x + left, middle + 0.5, SUBTITLE, &text);
    }
}
