//! Writing numbers down as browsers do in English: rounded half up, grouped by thousands.
//!
//! Source: ECMA-402, `Intl.NumberFormat`; checked against a browser engine's own answers.

/// Minus, as wide as a plus.
pub const MINUS: char = '\u{2212}';
/// Keeps a number and its unit on one line.
pub const NBSP: char = '\u{a0}';

/// A size as decimal digits: the fewest that name the number, which is what is rounded then. `0.1` and not
/// the sum of halves that stands for it.
struct Decimal {
    digits: Vec<u8>,
    /// Digits before the point; less than none for what is smaller than a tenth.
    point: i32,
}

impl Decimal {
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
    fn shifted(mut self, power: i32) -> Self {
        // Nothing has no power.
        self.point += if self.digits.is_empty() { 0 } else { power };
        self
    }

    /// Keeps so many digits before which others are cut, half up.
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
        while let Some(last) = self.digits.pop() {
            if last < 9 {
                self.digits.push(last + 1);
                return;
            }
        }
        self.digits.push(1);
        self.point += 1;
    }

    /// With at least and at most so many places, half up, grouped.
    fn fixed(mut self, least: usize, most: usize) -> String {
        self.cut(self.point + most as i32);
        let digit = |at: i32| {
            let found = usize::try_from(at).ok().and_then(|at| self.digits.get(at));
            char::from(b'0' + found.copied().unwrap_or(0))
        };
        let whole: String = (0..self.point).map(digit).collect();
        let places: String = (self.point..self.point + most as i32).map(digit).collect();
        let kept = places.trim_end_matches('0').len().max(least);
        let whole = grouped(if whole.is_empty() { "0" } else { &whole });
        match places.get(..kept).filter(|kept| !kept.is_empty()) {
            None => whole,
            Some(places) => whole + "." + places,
        }
    }
}

/// Puts a comma between thousands.
fn grouped(whole: &str) -> String {
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size, grouped, with at least and at most so many places.
pub fn fixed(size: f64, least: usize, most: usize) -> String {
    Decimal::of(size).fixed(least, most)
}

/// A part as percent, without the sign, with at most so many places.
pub fn percent(part: f64, most: usize) -> String {
    Decimal::of(part).shifted(2).fixed(0, most)
}

/// A size with at most so many digits that count, grouped, after it was shifted by a power of ten.
pub fn significant(size: f64, digits: i32, power: i32) -> String {
    let mut decimal = Decimal::of(size).shifted(power);
    decimal.cut(digits);
    let places = (decimal.digits.len() as i32 - decimal.point).max(0);
    decimal.fixed(0, places as usize)
}

/// A size by its power of ten: `1.23E15`.
pub fn scientific(size: f64) -> String {
    let mut decimal = Decimal::of(size);
    decimal.cut(3);
    let power = if size == 0.0 { 0 } else { decimal.point - 1 };
    let digits = Decimal { point: 1, ..decimal }.fixed(0, 2);
    format!("{digits}E{}", power.to_string().replace('-', &MINUS.to_string()))
}

const COMPACT: [(f64, i32, &str); 5] =
    [(1e12, 12, "T"), (1e9, 9, "B"), (1e6, 6, "M"), (1e3, 3, "K"), (1.0, 0, "")];

/// The letter behind a large number, as it is chosen without a wish for places.
pub fn suffix(value: f64) -> &'static str {
    let size = value.abs();
    // What rounds to a thousand of a unit is one of the next.
    let reached =
        |&&(unit, ..): &&(f64, i32, &str)| size >= unit || (unit > 1.0 && size >= unit * 0.9995);
    COMPACT.iter().find(reached).map_or("", |(.., letter)| letter)
}

/// A size in thousands, millions and so on, with at most and at least so many places: the number and
/// its letter.
pub fn compact(size: f64, least: usize, most: usize) -> (String, &'static str) {
    let at = COMPACT.iter().position(|&(unit, ..)| size >= unit).unwrap_or(COMPACT.len() - 1);
    let (_, power, letter) = COMPACT[at];
    let text = Decimal::of(size).shifted(-power).fixed(least, most);
    match at.checked_sub(1).and_then(|above| COMPACT.get(above)) {
        Some(&(.., above)) if text == "1,000" => ("1".to_owned(), above),
        _ => (text, letter),
    }
}
