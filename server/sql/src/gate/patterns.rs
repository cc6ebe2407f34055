//! Patterns as the library has them: `LIKE … ESCAPE` with a backslash, `SIMILAR TO` as a regular expression of the whole text.
//!
//! ```text
//! plan LIKE '50!%' ESCAPE '!'      plan LIKE '50\%'
//! plan SIMILAR TO 'pro|team_'      plan ~ '^(?s:pro|team.)$'
//! ```
//!
//! The library takes the pattern of `SIMILAR TO` for a regular expression of any part of a text, and no other character that escapes.
//!
//! What each part of a pattern of `SIMILAR TO` becomes, where `\` escapes:
//!
//! ```text
//! %        .*          any characters
//! _        .           one character
//! . ^ $    \.          themselves: they have no meaning in SQL
//! \%       \%          a percent sign
//! \d       \d          a class of characters: d w s D W S n t r
//! \y                   refused: \y is not answered
//! a{2,5}   a{2,5}      two to five times; {,3} is refused
//! a**                  refused: what is repeated is repeated once more
//! (?i)a                refused: (? has no meaning
//! [a-z&&b] [a-z\&\&b]  a set of characters; what only regular expressions know in one is escaped
//! ```
//!
//! Both ends are anchored, `^(?s:…)$`, and `s` lets `.` be a line feed: a pattern is about the whole string.

use std::{iter::Peekable, ops::ControlFlow, str::Chars};

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Value, ValueWithSpan, VisitMut as _, VisitorMut,
};
use inlay_sql_protocol::Refusal;

use super::literals::{literal, text_of};

/// Writes each pattern as the library reads it.
///
/// `plan LIKE '50!%' ESCAPE '!'` is left as `plan LIKE '50\%'`; without `ESCAPE` a pattern of `LIKE` stays as it is, since the backslash escapes by default.
///
/// Errors: a pattern of `SIMILAR TO` that is no literal (`the pattern of SIMILAR TO is a literal here`) or is not closed, an escape of more than one
/// character, and a pattern that ends with its escape.
pub fn write_patterns(query: &mut Query) -> Result<(), Refusal> {
    // A refusal on the way up would take room on the stack for each part of a long statement.
    let mut write = Write { refusal: None };
    let _: ControlFlow<()> = query.visit(&mut write);
    write.refusal.map_or(Ok(()), Err)
}

/// Visits expressions from the innermost outwards, and keeps the first refusal.
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
///
/// ```text
/// '50!%_!!' ESCAPE '!'     '50\%_\!'      !% is a percent sign, !! an exclamation mark, and _ stays a wildcard
/// 'a\%' ESCAPE ''          'a\\%'         no character escapes: the backslash is one
/// 'x!' ESCAPE '!'          refused: a pattern must not end with the character that escapes
/// ```
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
///
/// In brackets, and with `!~` for `NOT`: `(a !~ '^(?s:.*a\.b)$')`.
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
    let regex = Similar { chars: pattern.chars().peekable(), sign, out: String::new() }.regex()?;
    let op = match negated {
        false => BinaryOperator::PGRegexMatch,
        true => BinaryOperator::PGRegexNotMatch,
    };
    let matched =
        Expr::BinaryOp { left: Box::new(text.clone()), op, right: Box::new(text_of(regex)) };
    Ok(Expr::Nested(Box::new(matched)))
}

/// A pattern of `SIMILAR TO` that is read from left to right.
/// `chars` has what is still to be read, `out` what has been written.
struct Similar<'a> {
    chars: Peekable<Chars<'a>>,
    /// The character that escapes.
    sign: Option<char>,
    out: String,
}

impl Similar<'_> {
    /// The whole expression.
    ///
    /// Errors: what has no meaning in SQL, although it would be a regular expression.
    fn regex(mut self) -> Result<String, Refusal> {
        self.out.push_str("^(?s:");
        let mut is_repeated = false;
        while let Some(char) = self.chars.next() {
            let repeats = matches!(char, '*' | '+' | '?' | '{') && Some(char) != self.sign;
            if repeats && is_repeated {
                return Err(wrong("what is repeated is repeated once more"));
            }
            is_repeated = repeats;
            if Some(char) == self.sign {
                self.escaped()?;
                continue;
            }
            match char {
                '%' => self.out.push_str(".*"),
                '_' => self.out.push('.'),
                '.' | '$' | '^' | '\\' => self.out.extend(['\\', char]),
                '[' => self.bracket()?,
                '{' => self.bounds()?,
                '(' if self.chars.peek() == Some(&'?') => return Err(wrong("(? has no meaning")),
                _ => self.out.push(char),
            }
        }
        self.out.push_str(")$");
        Ok(self.out)
    }

    /// What follows the character that escapes: itself, or a class of characters.
    ///
    /// Letters and digits with another meaning are refused rather than taken for themselves: `\b` would be a word boundary to the library. `_` and characters
    /// outside of ASCII are written without a backslash.
    fn escaped(&mut self) -> Result<(), Refusal> {
        let char = self.chars.next().ok_or_else(ends_with_escape)?;
        match char {
            'd' | 'w' | 's' | 'D' | 'W' | 'S' | 'n' | 't' | 'r' => self.out.extend(['\\', char]),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '"' => {
                return Err(wrong(&format!("\\{char} is not answered")));
            }
            // To the library `\<` is where a word begins.
            _ if char.is_ascii() && !matches!(char, '_' | '<' | '>') => {
                self.out.extend(['\\', char]);
            }
            _ => self.out.push(char),
        }
        Ok(())
    }

    /// `{3}`, `{3,}` or `{3,5}`.
    /// Read up to `}`, or to the end of the pattern; what is no count is refused, such as `{,3}` and `{a}`.
    fn bounds(&mut self) -> Result<(), Refusal> {
        let mut text = String::new();
        let mut is_closed = false;
        for char in self.chars.by_ref() {
            is_closed = char == '}';
            if is_closed {
                break;
            }
            text.push(char);
        }
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_right = match text.split_once(',') {
            None => is_number(&text),
            Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
        };
        if !is_right || !is_closed {
            return Err(wrong("{ begins how often something is repeated, such as {2} or {2,5}"));
        }
        self.out += &format!("{{{text}}}");
        Ok(())
    }

    /// A set of characters, up to its end. What only this library's expressions know in one is escaped.
    ///
    /// ```text
    /// []%]        [\]%]         a ] that comes first is a character
    /// [^]a-z-]    [^\]a-z\-]    a - between two characters is a range, else a character
    /// [a&&b~~c]   [a\&\&b\~\~c]   no intersection and no difference of sets
    /// [[:alnum:]_]  the same    classes by name are known to both
    /// ```
    fn bracket(&mut self) -> Result<(), Refusal> {
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.chars.next_if_eq(&']').is_some() {
            self.out.push_str("\\]");
        }
        // `]` has been read where it was first, and then `-` is not: `[]-z]` is a range.
        let (mut is_first, mut is_range) = (!self.out.ends_with(']'), false);
        while let Some(char) = self.chars.next() {
            let was_range = std::mem::take(&mut is_range);
            if Some(char) == self.sign {
                self.escaped()?;
            } else {
                match char {
                    ']' => {
                        self.out.push(']');
                        return Ok(());
                    }
                    '[' if self.chars.peek() == Some(&':') => self.class()?,
                    '-' => {
                        is_range = !is_first && !was_range && self.chars.peek() != Some(&']');
                        self.out.push_str(if is_range { "-" } else { "\\-" });
                    }
                    '[' | '&' | '~' | '^' | '\\' => self.out.extend(['\\', char]),
                    _ => self.out.push(char),
                }
            }
            is_first = false;
        }
        Err(wrong("a [ is not closed"))
    }

    /// `[:alpha:]` and the like, behind its first sign.
    fn class(&mut self) -> Result<(), Refusal> {
        let mut name = String::new();
        for char in self.chars.by_ref() {
            name.push(char);
            if name.len() > 2 && name.ends_with(":]") {
                self.out.push('[');
                self.out += &name;
                return Ok(());
            }
        }
        Err(wrong("a [: is not closed"))
    }
}

/// A refusal that says what is wrong with a pattern: `the pattern of SIMILAR TO: a [ is not closed`.
fn wrong(why: &str) -> Refusal {
    Refusal::invalid(format!("the pattern of SIMILAR TO: {why}"))
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

/// The refusal of a pattern whose last character escapes what does not follow.
fn ends_with_escape() -> Refusal {
    Refusal::invalid("a pattern must not end with the character that escapes")
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
            ("a SIMILAR TO '[[:alnum:]_]+'", "(a ~ '^(?s:[[:alnum:]_]+)$')"),
            ("a SIMILAR TO '[]%][^]a-z-]'", r"(a ~ '^(?s:[\]%][^\]a-z\-])$')"),
            ("a SIMILAR TO '[a-z&&b~~[+--]{2,}'", r"(a ~ '^(?s:[a-z\&\&b\~\~\[+-\-]{2,})$')"),
            (r"a SIMILAR TO E'a\\d\\_'", r"(a ~ '^(?s:a\d_)$')"),
            ("a SIMILAR TO '1#%' ESCAPE '#'", r"(a ~ '^(?s:1\%)$')"),
            (r"a SIMILAR TO 'a\<b\>\.'", r"(a ~ '^(?s:a<b>\.)$')"),
        ] {
            let statement = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap();
            let Statement::Query(query) = statement else { panic!("a query") };
            let text = query.to_string();
            assert!(text.ends_with(&format!("WHERE {meant}")), "{written}: {text}");
        }
        for (written, why) in [
            ("a SIMILAR TO b", "literal"),
            ("a SIMILAR TO '[a'", "not closed"),
            ("a SIMILAR TO 'a{3'", "how often"),
            ("a SIMILAR TO 'a{,3}'", "how often"),
            ("a SIMILAR TO 'a**'", "once more"),
            ("a SIMILAR TO '(?i)a'", "no meaning"),
            (r"a SIMILAR TO '\y'", "not answered"),
            ("a LIKE 'x' ESCAPE 'ab'", "one character"),
            ("a LIKE 'x!' ESCAPE '!'", "must not end"),
        ] {
            let refusal = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap_err();
            assert!(refusal.message.contains(why), "{written}: {}", refusal.message);
        }
    }
}
