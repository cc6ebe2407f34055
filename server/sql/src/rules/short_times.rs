//! Rule of the analyzer: times that are written without seconds.
//!
//! ```text
//! timestamp >= '2026-11-11 10:00'                 is       timestamp >= '2026-11-11 10:00:00'
//! TIMESTAMP '2026-11-13T00:00Z'                            TIMESTAMP '2026-11-13T00:00:00Z'
//! user_id = '2026-11-11 10:00'                    stays    a string that becomes no time
//! ```
//!
//! PostgreSQL reads both; the library's parser wants seconds. What becomes a time is known once types are: the library has cast the string then.

use arrow::datatypes::DataType;
use datafusion_common::{ScalarValue, tree_node::Transformed};
use datafusion_expr::{Cast, Expr, lit};

use super::rewrite::ExprRule;

/// `2026-11-11 10:00`, of which a digit stands for any.
const SHAPE: &[u8; 16] = b"0000-00-00 00:00";

/// Adds the seconds that a time lacks.
pub const SECONDS_OF_TIMES: ExprRule = ExprRule {
    name: "seconds_of_times",
    changes: |part| with_seconds(part).is_some(),
    rewrite: |part, _| {
        Ok(match with_seconds(&part) {
            Some(new) => Transformed::yes(new),
            None => Transformed::no(part),
        })
    },
};

/// The cast of a longer string, if a time without seconds is cast.
fn with_seconds(part: &Expr) -> Option<Expr> {
    let Expr::Cast(Cast { expr, field }) = part else { return None };
    let Expr::Literal(text, _) = &**expr else { return None };
    if !matches!(field.data_type(), DataType::Timestamp(..)) {
        return None;
    }
    let longer = longer(text.try_as_str().flatten()?)?;
    Some(Expr::Cast(Cast { expr: Box::new(lit(ScalarValue::from(longer))), field: field.clone() }))
}

/// `2026-11-11 10:00:00+01` of `2026-11-11 10:00+01`; nothing for a string of another form.
fn longer(text: &str) -> Option<String> {
    let (time, zone) = text.split_at_checked(SHAPE.len())?;
    let is_like = |(byte, like): (u8, &u8)| match like {
        b'0' => byte.is_ascii_digit(),
        b' ' => matches!(byte, b' ' | b'T' | b't'),
        like => byte == *like,
    };
    let is_time = time.bytes().zip(SHAPE).all(is_like);
    let is_zone = matches!(zone.bytes().next(), None | Some(b' ' | b'+' | b'-' | b'Z' | b'z'));
    (is_time && is_zone).then(|| format!("{time}:00{zone}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_added_to_times_that_have_none() {
        for (written, expected) in [
            ("2026-11-11 10:00", Some("2026-11-11 10:00:00")),
            ("2026-11-11T10:00Z", Some("2026-11-11T10:00:00Z")),
            ("2026-11-11 10:00+01:00", Some("2026-11-11 10:00:00+01:00")),
            ("2026-11-11 10:00:30", None),
            ("2026-11-11 10:00.5", None),
            ("2026-11-11", None),
            ("2026-11-11x10:00", None),
            ("", None),
        ] {
            assert_eq!(longer(written).as_deref(), expected, "{written}");
        }
    }
}
