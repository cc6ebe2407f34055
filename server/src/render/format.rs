//! Numbers and dates as people read them, in English.
//!
//! The same rules as in `web/shared/format.js`, held together by the answers in `web/test/golden.json`:
//! `short` is for places with little room, `full` for tables, and an axis has one unit for all its
//! labels.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::Deserialize;

use super::number::{self, MINUS, NBSP, compact, fixed, scientific, significant, suffix};

/// What stands for nothing.
pub const NOTHING: &str = "—";

/// How a widget's values read: `viz.format`. `percent` takes fractions, `duration` milliseconds unless
/// the unit is `s`, `bytes` bytes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Spec {
    style: Option<String>,
    unit: Option<String>,
    currency: Option<String>,
    decimals: Option<f64>,
}

impl Spec {
    /// Reads `viz.format`; what cannot be read is plain.
    pub fn read(format: Option<&serde_json::Value>) -> Self {
        format.and_then(|format| Self::deserialize(format).ok()).unwrap_or_default()
    }

    /// Fractions as percent.
    pub fn percent() -> Self {
        Self { style: Some("percent".to_owned()), ..Self::default() }
    }

    /// The name of what is counted.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref().filter(|unit| !unit.is_empty())
    }

    /// The same without the name of what is counted.
    pub fn without_unit(&self) -> Self {
        Self { unit: None, ..self.clone() }
    }

    fn style(&self) -> &str {
        self.style.as_deref().unwrap_or_default()
    }

    fn decimals(&self) -> Option<usize> {
        let decimals = self.decimals.filter(|places| (0.0..=100.0).contains(places));
        decimals.map(|places| places as usize)
    }

    /// Unit steps, largest first; none for plain numbers.
    fn steps(&self) -> Option<&'static [(f64, &'static str)]> {
        let is_time = self.style() == "duration" || matches!(self.unit(), Some("ms" | "s"));
        match self.style() {
            "bytes" => Some(&SIZES),
            _ => is_time.then_some(&DURATIONS),
        }
    }
}

const DURATIONS: [(f64, &str); 4] =
    [(3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s"), (1.0, "ms")];
const SIZES: [(f64, &str); 5] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")];

/// Symbols of currencies in English; others are named by their code.
const SYMBOLS: [(&str, &str); 17] = [
    ("USD", "$"),
    ("EUR", "€"),
    ("GBP", "£"),
    ("JPY", "¥"),
    ("INR", "₹"),
    ("CNY", "CN¥"),
    ("KRW", "₩"),
    ("BRL", "R$"),
    ("CAD", "CA$"),
    ("AUD", "A$"),
    ("MXN", "MX$"),
    ("NZD", "NZ$"),
    ("HKD", "HK$"),
    ("TWD", "NT$"),
    ("ILS", "₪"),
    ("VND", "₫"),
    ("PHP", "₱"),
];

/// Places that keep about three digits that count.
fn digits(value: f64) -> usize {
    match value.abs() {
        _ if value.fract() == 0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.01.. => 3,
        _ => 5,
    }
}

fn step_for(steps: &[(f64, &'static str)], value: f64) -> (f64, &'static str) {
    let reached = steps.iter().find(|(size, _)| value.abs() >= *size);
    reached.or(steps.last()).copied().unwrap_or((1.0, ""))
}

/// A written size with the sign of its value. What reads as nothing has none.
fn signed(value: f64, text: String) -> String {
    let is_nothing = !text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if value < 0.0 && !is_nothing { format!("{MINUS}{text}") } else { text }
}

fn plain(value: f64, places: Option<usize>) -> String {
    let size = value.abs();
    let text = match places {
        Some(places) => fixed(size, 0, places),
        None if size != 0.0 && size < 0.001 => significant(size, 3, 0),
        None => fixed(size, 0, digits(value)),
    };
    signed(value, text)
}

fn percent(value: f64, places: usize) -> String {
    signed(value, number::percent(value.abs(), places) + "%")
}

fn money(symbol: &str, text: &str) -> String {
    let is_code = symbol.len() == 3 && symbol.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { format!("{symbol}{NBSP}{text}") } else { format!("{symbol}{text}") }
}

fn symbol_of(spec: &Spec) -> (String, usize) {
    let code = spec.currency.as_deref().filter(|code| !code.is_empty()).unwrap_or("USD");
    let code = code.to_ascii_uppercase();
    let own = if ["JPY", "KRW", "VND", "CLP", "ISK", "XAF", "XOF"].contains(&code.as_str()) {
        0
    } else {
        2
    };
    let known = SYMBOLS.iter().find(|(known, _)| *known == code);
    (known.map_or(code, |(_, symbol)| (*symbol).to_owned()), own)
}

fn value(value: Option<f64>, spec: &Spec, short: bool) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return NOTHING.to_owned() };
    let size = value.abs();
    if let Some(steps) = spec.steps() {
        let base = if spec.unit() == Some("s") { value * 1_000.0 } else { value };
        let (step, name) = step_for(steps, base);
        return format!("{}{NBSP}{name}", plain(base / step, spec.decimals()));
    }
    if size >= if short { 1e15 } else { 1e21 } {
        return signed(value, scientific(size));
    }
    let large = short && size >= 10_000.0;
    match spec.style() {
        "percent" => {
            let own = match (size < 0.1, short) {
                (true, true) | (false, false) => 1,
                (true, false) => 2,
                (false, true) => 0,
            };
            percent(value, spec.decimals().unwrap_or(own))
        }
        "currency" => {
            let (symbol, own) = symbol_of(spec);
            let usual = if size < 1_000.0 {
                2
            } else if large {
                1
            } else {
                0
            };
            let most = spec.decimals().unwrap_or(own.min(usual));
            let is_round = value.fract() == 0.0 && spec.decimals().is_none();
            let least = if large || is_round { 0 } else { most };
            let text = match large {
                true => compact(size, least, most),
                false => (fixed(size, least, most), ""),
            };
            signed(value, money(&symbol, &(text.0 + text.1)))
        }
        _ => {
            let text = if large {
                let (text, letter) = compact(size, 0, 1);
                signed(value, text + letter)
            } else if spec.decimals().is_some() || short || size < 0.001 {
                plain(value, spec.decimals())
            } else {
                let places = if value.fract() == 0.0 { 0 } else { digits(value).max(2) };
                plain(value, Some(places))
            };
            spec.unit().map_or(text.clone(), |unit| format!("{text}{NBSP}{unit}"))
        }
    }
}

/// A value where there is little room.
pub fn short(number: Option<f64>, spec: &Spec) -> String {
    value(number, spec, true)
}

/// A value in full.
pub fn full(number: Option<f64>, spec: &Spec) -> String {
    value(number, spec, false)
}

/// One unit for a whole axis, chosen by its largest value: what values are divided by, and how a tick
/// reads that was divided.
pub struct Axis {
    /// What values are divided by.
    pub divisor: f64,
    unit: AxisUnit,
}

enum AxisUnit {
    Scientific,
    Step(&'static str),
    Percent,
    Plain { symbol: Option<String>, letter: &'static str },
}

impl Axis {
    /// The unit for values up to `max`.
    pub fn of(max: f64, spec: &Spec) -> Self {
        if max >= 1e15 {
            return Self { divisor: 1.0, unit: AxisUnit::Scientific };
        }
        if let Some(steps) = spec.steps() {
            let scale = if spec.unit() == Some("s") { 1_000.0 } else { 1.0 };
            let (size, name) = step_for(steps, max * scale);
            return Self { divisor: size / scale, unit: AxisUnit::Step(name) };
        }
        if spec.style() == "percent" {
            return Self { divisor: 1.0, unit: AxisUnit::Percent };
        }
        let symbol = (spec.style() == "currency").then(|| symbol_of(spec).0);
        let mut divisor = 1.0;
        if max >= 10_000.0 {
            while suffix(divisor) != suffix(max) {
                divisor *= 10.0;
            }
        }
        let letter = if divisor > 1.0 { suffix(divisor) } else { "" };
        Self { divisor, unit: AxisUnit::Plain { symbol, letter } }
    }

    /// How a tick reads.
    pub fn label(&self, tick: f64) -> String {
        match &self.unit {
            AxisUnit::Scientific if tick == 0.0 => "0E0".to_owned(),
            AxisUnit::Scientific => signed(tick, scientific(tick.abs())),
            AxisUnit::Step(_) if tick == 0.0 => "0".to_owned(),
            AxisUnit::Step(name) => format!("{}{NBSP}{name}", plain(tick, None)),
            AxisUnit::Percent => signed(tick, significant(tick.abs(), 3, 2) + "%"),
            AxisUnit::Plain { symbol, letter } => {
                let number = plain(tick.abs(), None) + if tick == 0.0 { "" } else { letter };
                let text = symbol.as_ref().map_or(number.clone(), |symbol| money(symbol, &number));
                signed(tick, text)
            }
        }
    }
}

/// Direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The value rose by at least 0.05 %, or from zero.
    Up,
    /// The value fell by at least 0.05 %, or from zero.
    Down,
    /// The value changed by less than 0.05 %.
    Flat,
}

/// Direction of the change from one value to another, and its ratio to the size of the previous
/// one: 0.5 for half as much again. No ratio for a change from zero; `None` where a value is
/// missing.
pub fn change(current: Option<f64>, previous: Option<f64>) -> Option<(Direction, Option<f64>)> {
    let (current, previous) = (current?, previous?);
    let towards = |way: f64| if way > 0.0 { Direction::Up } else { Direction::Down };
    if previous == 0.0 && current != 0.0 {
        return Some((towards(current), None));
    }
    let ratio = if previous == 0.0 { 0.0 } else { (current - previous) / previous.abs() };
    let direction = if ratio.abs() < 0.0005 { Direction::Flat } else { towards(ratio) };
    Some((direction, Some(ratio)))
}

/// The words for a change: `33%`, `9.4%`, `>999%`, `New`.
pub fn change_text(current: Option<f64>, previous: Option<f64>) -> String {
    match change(current, previous) {
        None => NOTHING.to_owned(),
        Some((_, None)) => "New".to_owned(),
        Some((direction, Some(ratio))) => {
            let size = if direction == Direction::Flat { 0.0 } else { ratio.abs() };
            if size > 9.995 {
                return ">999%".to_owned();
            }
            percent(size, if size < 0.0995 { 1 } else { 0 })
        }
    }
}

/// A part of a whole.
pub fn share(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.005 { "<1%".to_owned() } else { percent(ratio, 0) }
}

/// A length of time: `30 days`.
pub fn period(name: &str) -> String {
    let (count, letter) = name.split_at(name.len().saturating_sub(1));
    let unit = match letter {
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "m" => "month",
        _ => return name.to_owned(),
    };
    format!("{count} {unit}{}", if count == "1" { "" } else { "s" })
}

/// Length of the buckets of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Buckets of one hour.
    Hour,
    /// Buckets of one calendar day.
    Day,
    /// Buckets of one calendar week.
    Week,
    /// Buckets of one calendar month.
    Month,
}

impl Grain {
    /// The grain with this name; a day for any other name and for none.
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("hour") => Self::Hour,
            Some("week") => Self::Week,
            Some("month") => Self::Month,
            _ => Self::Day,
        }
    }
}

const DAY_MS: i64 = 86_400_000;

fn zoned(ms: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(zone.clone())
}

/// A bucket's start on an axis.
pub fn bucket_short(ms: i64, grain: Grain, dated: bool, zone: &TimeZone) -> String {
    let at = zoned(ms, zone);
    match grain {
        Grain::Month => {
            let is_january = zoned(ms + DAY_MS, &TimeZone::UTC).month() == 1;
            at.strftime(if is_january { "%b %Y" } else { "%b" }).to_string()
        }
        Grain::Hour if !dated => at.strftime("%-I %p").to_string(),
        _ => at.strftime("%b %-d").to_string(),
    }
}

/// A bucket in full.
pub fn bucket_long(ms: i64, grain: Grain, zone: &TimeZone) -> String {
    let at = zoned(ms, zone);
    let pattern = match grain {
        Grain::Month => "%B %Y",
        Grain::Week => "Week of %b %-d, %Y",
        Grain::Day => "%A, %b %-d",
        Grain::Hour => "%a, %b %-d, %-I:%M %p",
    };
    at.strftime(pattern).to_string()
}

/// Whether an instant begins a day.
pub fn starts_day(ms: i64, zone: &TimeZone) -> bool {
    let at = zoned(ms, zone);
    at.hour() == 0 && at.minute() == 0
}

/// When a bucket ends.
pub fn bucket_end(ms: i64, grain: Grain) -> i64 {
    match grain {
        Grain::Hour => ms + DAY_MS / 24,
        Grain::Day => ms + DAY_MS,
        Grain::Week => ms + 7 * DAY_MS,
        Grain::Month => {
            // A month of any time zone is well begun half a month after its start.
            let inside = zoned(ms + 15 * DAY_MS, &TimeZone::UTC);
            ms + i64::from(inside.days_in_month()) * DAY_MS
        }
    }
}

/// A name from the data as a label: `error_code` becomes `Error code`.
pub fn humanize(name: &str) -> String {
    let mut spaced = String::new();
    for char in name.chars() {
        match char {
            '_' | '-' if spaced.ends_with(' ') => {}
            '_' | '-' => spaced.push(' '),
            other => spaced.push(other),
        }
    }
    let mut chars = spaced.trim().chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}
