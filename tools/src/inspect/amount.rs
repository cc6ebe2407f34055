//! Amounts for people: counts with separators, bytes in binary units, ratios.
//!
//! ```text
//! count(1_234_567)     1,234,567
//! bytes(1_023)         1023 B
//! bytes(1_048_575)     1.0 MiB       not 1024.0 KiB
//! ratio(per(1, 3))     0.333
//! ratio(per(1, 0))     -             nothing to divide by
//! share(1, 8)          12.5 %
//! ```
//!
//! JSON has none of this: there, amounts are plain numbers.

/// A count with a comma every three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in the largest unit of which there is at least one, with one decimal: `739.1 KiB`. The largest is TiB.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut amount = number as f64 / 1024.0;
    let mut unit = 0;
    // What would be shown as 1024.0 is one of the next unit.
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Bytes per thing, a row or an id; `None` when there is no thing.
pub fn per(bytes: u64, things: u64) -> Option<f64> {
    (things > 0).then(|| bytes as f64 / things as f64)
}

/// A ratio with three decimals: a column of 0.075 bytes an event is not 0.1. `-` without one.
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// A part of a whole in percent.
pub fn share(part: u64, whole: u64) -> String {
    per(part, whole).map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_exact_where_it_matters() {
        let counts = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes = [0, 1_023, 1_024, 1_048_575, 1_048_576, u64::MAX].map(bytes);
        assert_eq!(sizes[..4], ["0 B", "1023 B", "1.0 KiB", "1.0 MiB"]);
        assert_eq!(sizes[4..], ["1.0 MiB", "16777216.0 TiB"]);
        assert_eq!([ratio(per(1, 3)), ratio(per(1, 0))], ["0.333", "-"]);
        assert_eq!([share(1, 8), share(0, 0)], ["12.5 %", "-"]);
    }
}
