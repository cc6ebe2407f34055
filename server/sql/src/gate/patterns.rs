//! Patterns as the library has them: `LIKE … ESCAPE` with a backslash, `SIMILAR TO` as a regular expression of the whole text.
//!
//! ```text
//! plan LIKE '50!%' ESCAPE '!'      plan LIKE '50\%'
//! plan SIMILAR TO 'pro|team_'      plan ~ '^(?s:pro|team.)$'
//! ```
//!
//! The library takes the pattern of `SIMILAR TO` for a regular expression of any part of a text, and no other character that escapes.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Value, ValueWithSpan, VisitMut as _, VisitorMut,
};
use inlay_sql_protocol::Refusal;

/// Writes each pattern as the library reads it.
///
/// Errors: a pattern of `SIMILAR TO` that is no literal, and an escape of more than one character.
pub fn write_patterns(query: &mut Query) -> Result<(), Refusal> {
    // A refusal on the way up would take room on the stack for each part of a long statement.
    let mut write = Write { refusal: None };
    let _: ControlFlow<()> = query.visit(&mut write);
    write.refusal.map_or(Ok(()), Err)
}

struct Write {
    refusal: Option<Refusal>,
}

impl VisitorMut for Write {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let written = match expr {
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                like(pattern, escape_char)
            }
            Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
                similar(*negated, text, pattern, escape_char.as_ref()).map(|new| *expr = new)
            }
            _ => return ControlFlow::Continue(()),
        };
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => {
                self.refusal = Some(refusal);
                ControlFlow::Break(())
            }
        }
    }
}

/// Puts the backslash in the place of another character that escapes. A pattern that is computed stays, and the library refuses it.
fn like(pattern: &mut Box<Expr>, escape: &mut Option<ValueWithSpan>) -> Result<(), Refusal> {
    let (Some(sign), Some(text)) = (&*escape, literal(pattern)) else { return Ok(()) };
    let sign = escape_sign(sign)?;
    let mut written = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if Some(char) == sign {
            let escaped = chars.next().ok_or_else(ends_with_escape)?;
            written.extend(['\\', escaped]);
        } else if char == '\\' {
            written.push_str("\\\\");
        } else {
            written.push(char);
        }
    }
    **pattern = text_of(written);
    *escape = None;
    Ok(())
}

/// The regular expression of a pattern of `SIMILAR TO`.
fn similar(
    negated: bool,
    text: &Expr,
    pattern: &Expr,
    escape: Option<&ValueWithSpan>,
) -> Result<Expr, Refusal> {
    let Some(pattern) = literal(pattern) else {
        return Err(Refusal::invalid("the pattern of SIMILAR TO is a literal here"));
    };
    let sign = escape.map_or(Ok(Some('\\')), escape_sign)?;
    let mut regex = "^(?s:".to_owned();
    let mut is_in_brackets = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if Some(char) == sign {
            let escaped = chars.next().ok_or_else(ends_with_escape)?;
            if !escaped.is_alphanumeric() && escaped != '_' && escaped.is_ascii() {
                regex.push('\\');
            }
            regex.push(escaped);
            continue;
        }
        match char {
            '[' => is_in_brackets = true,
            ']' => is_in_brackets = false,
            _ => {}
        }
        match char {
            '%' if !is_in_brackets => regex.push_str(".*"),
            '_' if !is_in_brackets => regex.push('.'),
            '.' | '$' if !is_in_brackets => regex.extend(['\\', char]),
            '^' if !is_in_brackets => regex.push_str("\\^"),
            '\\' => regex.push_str("\\\\"),
            _ => regex.push(char),
        }
    }
    regex.push_str(")$");
    let op = match negated {
        false => BinaryOperator::PGRegexMatch,
        true => BinaryOperator::PGRegexNotMatch,
    };
    let matched =
        Expr::BinaryOp { left: Box::new(text.clone()), op, right: Box::new(text_of(regex)) };
    Ok(Expr::Nested(Box::new(matched)))
}

/// The character that escapes; nothing where none does.
fn escape_sign(escape: &ValueWithSpan) -> Result<Option<char>, Refusal> {
    let text = match &escape.value {
        Value::SingleQuotedString(text) => text.as_str(),
        _ => "  ",
    };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(Refusal::invalid("ESCAPE names one character, or none")),
    }
}

fn ends_with_escape() -> Refusal {
    Refusal::invalid("a pattern must not end with the character that escapes")
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

fn text_of(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn patterns_are_written_as_the_library_reads_them() {
        for (written, meant) in [
            ("a LIKE '50!%_!!' ESCAPE '!'", r"a LIKE '50\%_\!'"),
            (r"a LIKE 'a\%' ESCAPE ''", r"a LIKE 'a\\%'"),
            (r"a NOT ILIKE 'x!_\' ESCAPE '!'", r"a NOT ILIKE 'x\_\\'"),
            ("a SIMILAR TO 'pro|team_'", "(a ~ '^(?s:pro|team.)$')"),
            (r"a NOT SIMILAR TO '%a.b\%[%_]'", r"(a !~ '^(?s:.*a\.b\%[%_])$')"),
            ("a SIMILAR TO '1#%' ESCAPE '#'", r"(a ~ '^(?s:1\%)$')"),
        ] {
            let statement = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap();
            let Statement::Query(query) = statement else { panic!("a query") };
            let text = query.to_string();
            assert!(text.ends_with(&format!("WHERE {meant}")), "{written}: {text}");
        }
        for (written, why) in [
            ("a SIMILAR TO b", "literal"),
            ("a LIKE 'x' ESCAPE 'ab'", "one character"),
            ("a LIKE 'x!' ESCAPE '!'", "must not end"),
        ] {
            let refusal = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap_err();
            assert!(refusal.message.contains(why), "{written}: {}", refusal.message);
        }
    }
}
