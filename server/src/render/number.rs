//! Writing numbers down as browsers do: rounded half up, grouped by thousands, with the signs of a language.
//!
//! Source: ECMA-402, `Intl.NumberFormat`; checked against a browser engine's own answers.
//!
//! ```text
//!                                       en             de             fr             ja
//! fixed(1234.5, 0, 2)              1,234.5        1.234,5        1 234,5        1,234.5        at least no places, at most two
//! fixed(1234.5, 2, 2)              1,234.50
//! fixed(1.005, 0, 2)               1.01           its digits are rounded, not the float 1.00499999…
//! percent(0.125, 1)                12.5%          12,5 %         12,5 %         12.5%
//! significant(0.00012345, 3, 0)    0.000123       three digits that count
//! scientific(1.234e18)             1.23E18        1,23E18
//! compact(12345.0, 0, 1)           12.3, K        12.345, –      12,3, k        1.2, 万
//! compact(999950.0, 0, 1)          1, M           and not 1,000 K
//! ```
//!
//! Sizes are not negative here: the sign is added by the caller, which knows whether anything is left after
//! rounding.

use crate::base::locale::Locale;

/// Minus, as wide as a plus.
pub const MINUS: char = '\u{2212}';
/// Keeps a number and its unit on one line.
pub const NBSP: char = '\u{a0}';

/// The signs with which a language writes numbers.
struct Signs {
    /// Before decimal places.
    point: char,
    /// Between groups of three digits.
    group: char,
    /// Behind a part in hundredths, with its space.
    percent: &'static str,
    /// Size of a unit, its power of ten, and what stands behind the number, largest first.
    units: &'static [(f64, i32, &'static str)],
}

const ENGLISH: Signs = Signs {
    point: '.',
    group: ',',
    percent: "%",
    units: &[(1e12, 12, "T"), (1e9, 9, "B"), (1e6, 6, "M"), (1e3, 3, "K"), (1.0, 0, "")],
};
// German has no short word for a thousand.
const GERMAN: Signs = Signs {
    point: ',',
    group: '.',
    percent: "\u{a0}%",
    units: &[
        (1e12, 12, "\u{a0}Bio."),
        (1e9, 9, "\u{a0}Mrd."),
        (1e6, 6, "\u{a0}Mio."),
        (1.0, 0, ""),
    ],
};
const FRENCH: Signs = Signs {
    point: ',',
    group: '\u{202f}',
    percent: "\u{a0}%",
    units: &[
        (1e12, 12, "\u{a0}Bn"),
        (1e9, 9, "\u{a0}Md"),
        (1e6, 6, "\u{a0}M"),
        (1e3, 3, "\u{a0}k"),
        (1.0, 0, ""),
    ],
};
// Units of ten thousand.
const JAPANESE: Signs = Signs {
    units: &[(1e12, 12, "兆"), (1e8, 8, "億"), (1e4, 4, "万"), (1.0, 0, "")],
    ..ENGLISH
};

fn signs(locale: Locale) -> &'static Signs {
    match locale {
        Locale::En => &ENGLISH,
        Locale::De => &GERMAN,
        Locale::Fr => &FRENCH,
        Locale::Ja => &JAPANESE,
    }
}

/// A size as decimal digits: the fewest that name the number, which is what is rounded then. `0.1` and not
/// the sum of halves that stands for it.
///
/// ```text
/// 1234.5     digits [1, 2, 3, 4, 5]   point 4
/// 0.1        digits [1]               point 0
/// 0.012      digits [1, 2]            point −1
/// 0          digits []                point 0
/// ```
struct Decimal {
    digits: Vec<u8>,
    /// Digits before the point; less than none for what is smaller than a tenth.
    point: i32,
}

impl Decimal {
    /// `{:e}` writes the shortest digits that name the number: 1234.5 is `1.2345e3`.
    fn of(size: f64) -> Self {
        if size == 0.0 {
            return Self { digits: Vec::new(), point: 0 };
        }
        let written = format!("{size:e}");
        let (digits, power) = written.split_once('e').unwrap_or((&written, "0"));
        let digits = digits.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
        Self { digits, point: power.parse().unwrap_or(0) + 1 }
    }

    /// Times a power of ten.
    /// `shifted(2)` makes percent of a fraction: only the point moves, so nothing is rounded.
    fn shifted(mut self, power: i32) -> Self {
        // Nothing has no power.
        self.point += if self.digits.is_empty() { 0 } else { power };
        self
    }

    /// Keeps so many digits before which others are cut, half up.
    /// 9995 cut to three digits is `[1]` with the point one further: 10,000. `cut(0)` of 0.7 is 1, and of 0.2 nothing;
    /// a negative number of digits leaves nothing.
    fn cut(&mut self, kept: i32) {
        let Ok(kept) = usize::try_from(kept) else {
            *self = Self { digits: Vec::new(), point: 0 };
            return;
        };
        let rounds_up = self.digits.get(kept).is_some_and(|&next| next >= 5);
        self.digits.truncate(kept);
        if !rounds_up {
            return;
        }
        // A nine that rounds up is dropped, and the digit before it rounds up.
        while let Some(last) = self.digits.pop() {
            if last < 9 {
                self.digits.push(last + 1);
                return;
            }
        }
        self.digits.push(1);
        self.point += 1;
    }

    /// With at least and at most so many places, half up, grouped where there are at least `group_from` digits before the point.
    /// Zeros at the end are dropped down to `least` places: `1,234.50` with two, `1,234.5` with none.
    fn fixed(mut self, least: usize, most: usize, signs: &Signs, group_from: usize) -> String {
        self.cut(self.point + most as i32);
        let digit = |at: i32| {
            let found = usize::try_from(at).ok().and_then(|at| self.digits.get(at));
            char::from(b'0' + found.copied().unwrap_or(0))
        };
        let whole: String = (0..self.point).map(digit).collect();
        let places: String = (self.point..self.point + most as i32).map(digit).collect();
        let kept = places.trim_end_matches('0').len().max(least);
        let whole = if whole.is_empty() { "0".to_owned() } else { whole };
        let whole = if whole.len() < group_from { whole } else { grouped(&whole, signs.group) };
        match places.get(..kept).filter(|kept| !kept.is_empty()) {
            None => whole,
            Some(places) => format!("{whole}{}{places}", signs.point),
        }
    }
}

/// Puts a sign between thousands.
/// `1234567` is `1,234,567`; `999` stays.
fn grouped(whole: &str, sign: char) -> String {
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(sign);
        }
        out.push(digit);
    }
    out
}

/// Digits from which numbers are grouped: always, and with a word behind them only from `10,000`.
const GROUPED: usize = 4;
const GROUPED_COMPACT: usize = 5;

/// A size, grouped, with at least and at most so many places.
pub fn fixed(size: f64, least: usize, most: usize, locale: Locale) -> String {
    Decimal::of(size).fixed(least, most, signs(locale), GROUPED)
}

/// A part as percent, with the sign, with at most so many places.
pub fn percent(part: f64, most: usize, locale: Locale) -> String {
    let signs = signs(locale);
    Decimal::of(part).shifted(2).fixed(0, most, signs, GROUPED) + signs.percent
}

/// A part as percent with at most so many digits that count: `significant_percent(0.125, 3, En)` is `12.5%`.
pub fn significant_percent(part: f64, digits: i32, locale: Locale) -> String {
    significant_of(Decimal::of(part).shifted(2), digits, locale) + signs(locale).percent
}

/// A size with at most so many digits that count, grouped.
/// `significant(1234.5, 3, En)` is `1,230`.
pub fn significant(size: f64, digits: i32, locale: Locale) -> String {
    significant_of(Decimal::of(size), digits, locale)
}

fn significant_of(mut decimal: Decimal, digits: i32, locale: Locale) -> String {
    decimal.cut(digits);
    let places = (decimal.digits.len() as i32 - decimal.point).max(0);
    decimal.fixed(0, places as usize, signs(locale), GROUPED)
}

/// A size by its power of ten: `1.23E15`.
/// Powers below zero have a long minus: 0.25 is `2.5E−1`.
pub fn scientific(size: f64, locale: Locale) -> String {
    let mut decimal = Decimal::of(size);
    decimal.cut(3);
    let power = if size == 0.0 { 0 } else { decimal.point - 1 };
    let digits = Decimal { point: 1, ..decimal }.fixed(0, 2, signs(locale), GROUPED);
    format!("{digits}E{}", power.to_string().replace('-', &MINUS.to_string()))
}

/// What stands behind a large number, as it is chosen without a wish for places.
/// `K` for 12,345 and `M` for 999,500; none for 500, and in German none for 12,345.
pub fn suffix(value: f64, locale: Locale) -> &'static str {
    let (size, units) = (value.abs(), signs(locale).units);
    // What rounds to a whole one of the next unit is one of the next: 999,500 is `1M`, and 99,995,000 `1億`.
    let below = units.iter().skip(1).map(|(unit, ..)| unit / 2.0).chain([0.0]);
    let reached = units.iter().zip(below).find(|((unit, ..), half)| size >= unit - half);
    reached.map_or("", |((.., word), _)| word)
}

/// A size in thousands, millions and so on, with at most and at least so many places: the number, and what stands behind it.
/// `compact(12345.0, 0, 3, En)` is `("12.345", "K")`.
pub fn compact(size: f64, least: usize, most: usize, locale: Locale) -> (String, &'static str) {
    let signs = signs(locale);
    let units = signs.units;
    let at = units.iter().position(|&(unit, ..)| size >= unit).unwrap_or(units.len() - 1);
    let (unit, power, word) = units[at];
    let text = |size: f64, power: i32| {
        Decimal::of(size).shifted(-power).fixed(least, most, signs, GROUPED_COMPACT)
    };
    let written = text(size, power);
    match at.checked_sub(1).and_then(|above| units.get(above)) {
        Some(&(above, above_power, above_word)) if written == text(above / unit, 0) => {
            (text(above, above_power), above_word)
        }
        _ => (written, word),
    }
}
