//! Numbers as people read them, in the language of a report; the examples are English.
//!
//! The same rules as in `web/shared/format.js`, held together by the answers in `web/test/golden.json`:
//! `short` is for places with little room, `full` for tables, and an axis has one unit for all its
//! labels.
//!
//! ```text
//! spec                                   value       short       full
//! {}                                     12345       12.3K       12,345
//! {}                                     3.14159     3.14        3.14
//! {}                                     999950      1M          999,950
//! {"unit": "req"}                        1234.5      1,235 req   1,234.5 req
//! {"decimals": 2}                        0.125       0.13        0.13
//! {"style": "percent"}                   0.125       13%         12.5%
//! {"style": "currency"}                  0.5         $0.50       $0.50
//! {"style": "currency"}                  1234.5      $1,235      $1,235
//! {"currency": "CHF", …}                 12345       CHF 12.3K   CHF 12,345
//! {"style": "duration"}                  1234.5      1.23 s      1.23 s
//! {"unit": "s"}                          99.95       1.67 min    1.67 min
//! {"style": "bytes"}                     1234.5      1.23 KB     1.23 KB
//! {}                                     −12.5       −12.5       −12.5
//! any                                    none        —           —
//! ```
//!
//! A space before a unit is a no-break space, and the minus is U+2212. What rounds to zero has no sign: −0.0004 as
//! percent is `0%`.

use serde::Deserialize;

use super::{
    currencies::Currency,
    number::{self, MINUS, NBSP, compact, fixed, scientific, significant, suffix},
    words::words,
};
use crate::base::locale::Locale;

/// What stands for nothing.
pub const NOTHING: &str = "—";

/// How a widget's values read: `viz.format`. `percent` takes fractions, `duration` milliseconds unless
/// the unit is `s`, `bytes` bytes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// `percent`, `currency`, `duration` or `bytes`; any other is a plain number.
    style: Option<String>,
    /// `ms` and `s` make a duration of the number; other units are written behind a plain number, as `req`.
    unit: Option<String>,
    /// ISO 4217 in any case, such as `eur`; `USD` without one.
    currency: Option<String>,
    /// 0 to 100, cut to a whole number; any other is ignored.
    decimals: Option<f64>,
    /// Language of the signs; not part of `viz.format`.
    #[serde(skip)]
    locale: Locale,
}

impl Spec {
    /// Reads `viz.format`; what cannot be read is plain.
    /// A value of the wrong type, as in `{"style": 7}`, makes the whole format plain: `Spec::default()`.
    pub fn read(format: Option<&serde_json::Value>) -> Self {
        format.and_then(|format| Self::deserialize(format).ok()).unwrap_or_default()
    }

    /// Fractions as percent.
    /// Of the axis of a chart whose stacks add up to 100 %.
    pub fn percent(locale: Locale) -> Self {
        Self { style: Some("percent".to_owned()), locale, ..Self::default() }
    }

    /// A plain number.
    pub fn plain(locale: Locale) -> Self {
        Self { locale, ..Self::default() }
    }

    /// The same with at most so many decimal places.
    pub fn with_decimals(self, places: u8) -> Self {
        Self { decimals: Some(f64::from(places)), ..self }
    }

    /// The same in a language.
    pub fn in_locale(self, locale: Locale) -> Self {
        Self { locale, ..self }
    }

    /// The name of what is counted.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref().filter(|unit| !unit.is_empty())
    }

    /// The same without the name of what is counted.
    /// For the middle of a donut, where the unit has a line of its own: `12.3K` over `req`.
    pub fn without_unit(&self) -> Self {
        Self { unit: None, ..self.clone() }
    }

    fn style(&self) -> &str {
        self.style.as_deref().unwrap_or_default()
    }

    /// `{"decimals": 2.9}` is 2; −1 and 101 are `None`, so the number decides.
    fn decimals(&self) -> Option<usize> {
        let decimals = self.decimals.filter(|places| (0.0..=100.0).contains(places));
        decimals.map(|places| places as usize)
    }

    fn currency(&self) -> Currency {
        let code = self.currency.as_deref().filter(|code| !code.is_empty()).unwrap_or("USD");
        Currency::of(code, self.locale)
    }

    /// Unit steps, largest first; none for plain numbers.
    /// In milliseconds for durations, in bytes for sizes: `[(3600000.0, "h"), (60000.0, "min"), …]`.
    fn steps(&self) -> Option<&'static [(f64, &'static str)]> {
        let is_time = self.style() == "duration" || matches!(self.unit(), Some("ms" | "s"));
        match self.style() {
            "bytes" => Some(&SIZES),
            _ => is_time.then_some(&DURATIONS),
        }
    }
}

// Hours are the largest unit: eleven and a half days are `278 h`.
const DURATIONS: [(f64, &str); 4] =
    [(3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s"), (1.0, "ms")];
// Powers of 1,000: 1,024 bytes are `1.02 KB`.
const SIZES: [(f64, &str); 5] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")];

/// Places that keep about three digits that count.
/// 3.14159 has two places (`3.14`), 41.25 one (`41.3`), 0.0123 three (`0.012`), and 250.4 none; whole numbers have none.
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

/// The largest step that the value reaches: 99 950 ms is in `min`. Below all of them it is the smallest, as `0.5 ms`.
fn step_for(steps: &[(f64, &'static str)], value: f64) -> (f64, &'static str) {
    let reached = steps.iter().find(|(size, _)| value.abs() >= *size);
    reached.or(steps.last()).copied().unwrap_or((1.0, ""))
}

/// A written size with the sign of its value. What reads as nothing has none.
/// `signed(-0.004, "0")` is `0`, `signed(-12.5, "12.5")` is `−12.5`.
fn signed(value: f64, text: String) -> String {
    let is_nothing = !text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if value < 0.0 && !is_nothing { format!("{MINUS}{text}") } else { text }
}

/// A number with so many decimal places, or with about three digits that count: 0.00012345 is `0.000123`.
fn plain(value: f64, places: Option<usize>, locale: Locale) -> String {
    let size = value.abs();
    let text = match places {
        Some(places) => fixed(size, 0, places, locale),
        None if size != 0.0 && size < 0.001 => significant(size, 3, locale),
        None => fixed(size, 0, digits(value), locale),
    };
    signed(value, text)
}

/// `percent(0.0999, 1, En)` is `10%`: 9.99 rounded to one place.
fn percent(value: f64, places: usize, locale: Locale) -> String {
    signed(value, number::percent(value.abs(), places, locale))
}

/// The rules in their order: durations and sizes in their unit, then numbers too large to write out, then the styles.
/// From 1e15 on a short number is `1E15`; a full one is written out up to 1e21.
fn value(value: Option<f64>, spec: &Spec, short: bool) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return NOTHING.to_owned() };
    let (size, locale) = (value.abs(), spec.locale);
    if let Some(steps) = spec.steps() {
        let base = if spec.unit() == Some("s") { value * 1_000.0 } else { value };
        let (step, name) = step_for(steps, base);
        return format!("{}{NBSP}{name}", plain(base / step, spec.decimals(), locale));
    }
    if size >= if short { 1e15 } else { 1e21 } {
        return signed(value, scientific(size, locale));
    }
    // From 10,000 on, a short number has a letter where the language has one: `9,999` and `10K`, in German `12.345` and `1,2 Mio.`.
    let large = short && size >= 10_000.0 && !suffix(size, locale).is_empty();
    match spec.style() {
        "percent" => {
            // Small parts need a place more: `1.2%` next to `13%`, and `1.23%` next to `12.5%` in full.
            let own = match (size < 0.1, short) {
                (true, true) | (false, false) => 1,
                (true, false) => 2,
                (false, true) => 0,
            };
            percent(value, spec.decimals().unwrap_or(own), locale)
        }
        "currency" => {
            let currency = spec.currency();
            // `$0.50` and `$999.50`, then `$1,235`, then `$12.3K`. Whole amounts have no places: `$5`.
            let usual = if size < 1_000.0 {
                2
            } else if large {
                1
            } else {
                0
            };
            let most = spec.decimals().unwrap_or(currency.places.min(usual));
            let is_round = value.fract() == 0.0 && spec.decimals().is_none();
            let least = if large || is_round { 0 } else { most };
            let text = match large {
                true => compact(size, least, most, locale),
                false => (fixed(size, least, most, locale), ""),
            };
            signed(value, currency.around(&(text.0 + text.1)))
        }
        _ => {
            let text = if large {
                let (text, letter) = compact(size, 0, 1, locale);
                signed(value, text + letter)
            } else if spec.decimals().is_some() || short || size < 0.001 {
                plain(value, spec.decimals(), locale)
            } else {
                // In full, two places are allowed even where three digits would need fewer: `12.35`, short `12.3`.
                let places = if value.fract() == 0.0 { 0 } else { digits(value).max(2) };
                plain(value, Some(places), locale)
            };
            spec.unit().map_or(text.clone(), |unit| format!("{text}{NBSP}{unit}"))
        }
    }
}

/// A value where there is little room.
/// `short(Some(41250.0), &Spec::default())` is `41.3K`: in tiles, bars and lists.
pub fn short(number: Option<f64>, spec: &Spec) -> String {
    value(number, spec, true)
}

/// A value in full.
/// `full(Some(41250.0), &Spec::default())` is `41,250`: in tables, and in `Top 50 of 1,200`.
pub fn full(number: Option<f64>, spec: &Spec) -> String {
    value(number, spec, false)
}

/// One unit for a whole axis, chosen by its largest value: what values are divided by, and how a tick
/// reads that was divided.
///
/// ```text
/// max       spec                    divisor   labels
/// 97000     {}                      1000      0, 25K, 50K, 75K, 100K
/// 9999      {}                      1         0, 2,500, 5,000, 7,500, 10,000
/// 1000      {"style": "duration"}   1000      0, 0.25 s, 0.5 s, 0.75 s, 1 s
/// 999       {"unit": "s"}           60        0, 5 min, 10 min, 15 min, 20 min
/// 0.5       {"style": "percent"}    1         0%, 20%, 40%, 60%
/// 1e15      {}                      1         0E0, 2.5E14, 5E14, …
/// ```
pub struct Axis {
    /// What values are divided by.
    pub divisor: f64,
    unit: AxisUnit,
    locale: Locale,
}

/// How the ticks of an axis are written.
enum AxisUnit {
    /// From 1e15 on, `2.5E14`.
    Scientific,
    /// With the name of a unit of time or size, `0.25 s`; zero has none.
    Step(&'static str),
    /// Fractions as percent, `12.5%`.
    Percent,
    /// With a currency and a letter, `$25K`; zero has no letter.
    Plain { currency: Option<Currency>, letter: &'static str },
}

impl Axis {
    /// The unit for values up to `max`.
    pub fn of(max: f64, spec: &Spec) -> Self {
        let locale = spec.locale;
        if max >= 1e15 {
            return Self { divisor: 1.0, unit: AxisUnit::Scientific, locale };
        }
        if let Some(steps) = spec.steps() {
            let scale = if spec.unit() == Some("s") { 1_000.0 } else { 1.0 };
            let (size, name) = step_for(steps, max * scale);
            return Self { divisor: size / scale, unit: AxisUnit::Step(name), locale };
        }
        if spec.style() == "percent" {
            return Self { divisor: 1.0, unit: AxisUnit::Percent, locale };
        }
        let currency = (spec.style() == "currency").then(|| spec.currency());
        let mut divisor = 1.0;
        if max >= 10_000.0 {
            // 1 to 10 to 100 to 1,000, until both have the letter: 999,500 is already in millions, as its label `1M` is.
            while suffix(divisor, locale) != suffix(max, locale) {
                divisor *= 10.0;
            }
        }
        let letter = if divisor > 1.0 { suffix(divisor, locale) } else { "" };
        Self { divisor, unit: AxisUnit::Plain { currency, letter }, locale }
    }

    /// How a tick reads.
    /// `label(0.25)` is `0.25 s` on an axis in seconds, and `label(-5.0)` is `−$5K` on one of thousands of dollars.
    pub fn label(&self, tick: f64) -> String {
        let locale = self.locale;
        match &self.unit {
            AxisUnit::Scientific if tick == 0.0 => "0E0".to_owned(),
            AxisUnit::Scientific => signed(tick, scientific(tick.abs(), locale)),
            AxisUnit::Step(_) if tick == 0.0 => "0".to_owned(),
            AxisUnit::Step(name) => format!("{}{NBSP}{name}", plain(tick, None, locale)),
            AxisUnit::Percent => signed(tick, number::significant_percent(tick.abs(), 3, locale)),
            AxisUnit::Plain { currency, letter } => {
                let letter = if tick == 0.0 { "" } else { letter };
                let number = plain(tick.abs(), None, locale) + letter;
                let around = |currency: &Currency| currency.around(&number);
                let text = currency.as_ref().map_or(number.clone(), around);
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
///
/// ```text
/// change(5, 4)         Up, 0.25          change(5, 0)      Up, no ratio
/// change(4, 5)         Down, −0.2        change(0, 0)      Flat, 0
/// change(-4, -8)       Up, 0.5           change(none, 1)   None
/// change(100, 99.99)   Flat, 0.0001
/// ```
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
/// `—` where a value is missing, and `0%` for a flat one. The direction is drawn as an arrow and not written.
pub fn change_text(current: Option<f64>, previous: Option<f64>, locale: Locale) -> String {
    match change(current, previous) {
        None => NOTHING.to_owned(),
        Some((_, None)) => words(locale).fresh.to_owned(),
        Some((direction, Some(ratio))) => {
            let size = if direction == Direction::Flat { 0.0 } else { ratio.abs() };
            if size > 9.995 {
                return format!(">{}", large_change(locale));
            }
            percent(size, if size < 0.0995 { 1 } else { 0 }, locale)
        }
    }
}

/// The change from which on changes are not written to the digit: `999%`.
pub fn large_change(locale: Locale) -> String {
    percent(9.99, 0, locale)
}

/// A part of a whole.
/// 0.6 is `60%`, 0.014 is `1%`, and 0.001 is `<1%`, so that a small part does not look like none. 0 is `0%`.
pub fn share(ratio: f64, locale: Locale) -> String {
    if ratio > 0.0 && ratio < 0.005 {
        return format!("<{}", percent(0.01, 0, locale));
    }
    percent(ratio, 0, locale)
}

/// A length of time: `30 days`.
/// `1h` is `1 hour`; a name that ends in no letter of `h`, `d`, `w`, `m` comes back as it is.
pub fn period(name: &str, locale: Locale) -> String {
    let Some((count, unit)) = length(name) else { return name.to_owned() };
    let (one, several) = words(locale).lengths[unit];
    let space = words(locale).length_space;
    format!("{count}{space}{}", if count == "1" { one } else { several })
}

/// The number and the unit of a period: `30d` is `("30", 1)`, as days are the second of hours, days, weeks and months.
fn length(name: &str) -> Option<(&str, usize)> {
    let (at, letter) = name.char_indices().next_back()?;
    Some((&name[..at], ['h', 'd', 'w', 'm'].iter().position(|known| *known == letter)?))
}

/// A name from the data as a label: `error_code` becomes `Error code`.
/// `api-call` becomes `Api call`, `__x--y_` becomes `X y`, and an empty name stays empty.
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
