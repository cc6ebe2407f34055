//! Written strings in a statement, and expressions without the brackets around them.
//!
//! ```text
//! 'pro', E'pro', $$pro$$, ('pro')      the string pro
//! lower('pro'), plan                   none: its value is not written
//! ((a + 1))                            a + 1 without brackets
//! ```

use datafusion_sql::sqlparser::ast::{Expr, Value, ValueWithSpan};

/// An expression without the brackets around it: `a + 1` of `((a + 1))`.
pub fn without_brackets(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The string that an expression is, in whichever quotes; nothing for one that has to be computed.
pub fn literal(expr: &Expr) -> Option<&str> {
    match without_brackets(expr) {
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            Value::DollarQuotedString(text) => Some(&text.value),
            _ => None,
        },
        _ => None,
    }
}

/// A string as it is written: `'pro'`.
pub fn text_of(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}
