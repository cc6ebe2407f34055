//! Text that people type, checked once and then trusted.
//!
//! ```text
//! name("name", "  Acme ")            "Acme"
//! name("name", "")                   400 name must not be empty
//! name("name", 201 characters)       400 name must have at most 200 characters
//! email("email", " Ada@Example.com ")   "ada@example.com"
//! email("email", "a@b")              400 email is not an e-mail address: the domain has no dot
//! password("password", "short")      400 password must have 10 to 200 characters
//! ```

use crate::error::{ApiError, Code, Result};

/// Characters of a name, at most.
const NAME_CHARS_MAX: usize = 200;
/// Characters of an e-mail address, at most (RFC 5321).
const EMAIL_CHARS_MAX: usize = 254;
/// A password has at least this many characters, and at most a length that is still quick to hash.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 10..=200;

/// Any text in one line of its own: it makes no lines that we did not write, and turns no direction.
/// `"a\nb"` is `"a b"`. Marks that turn the direction of text are left out: with them a name could show another name.
pub fn one_line(text: &str) -> String {
    let plain = |char: char| match char {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        '\u{2028}' | '\u{2029}' => Some(' '),
        other if other.is_control() => Some(' '),
        other => Some(other),
    };
    text.chars().filter_map(plain).collect()
}

/// A trimmed name of 1 to 200 characters, without control characters. Errors name `field`.
pub fn name(field: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let invalid = |message: String| ApiError::field(Code::InvalidField, field, message);
    if text.is_empty() {
        return Err(invalid(format!("{field} must not be empty")));
    }
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(invalid(format!("{field} must have at most {NAME_CHARS_MAX} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid(format!("{field} must not contain control characters")));
    }
    Ok(text.to_owned())
}

/// An e-mail address in lower case. The test is whether mail could be sent there at all; whether
/// somebody reads it, only mail can tell.
pub fn email(field: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let is_address = text.split_once('@').is_some_and(|(local, domain)| {
        let host = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|char| char.is_alphanumeric() || char == '-')
        };
        !local.is_empty()
            && local.chars().all(|char| {
                !char.is_whitespace() && !char.is_control() && !"()<>[]:;,\\\"@".contains(char)
            })
            && domain.contains('.')
            && domain.split('.').all(host)
    });
    if !is_address || text.chars().count() > EMAIL_CHARS_MAX {
        return Err(ApiError::field(
            Code::InvalidField,
            field,
            format!("{field} is not an e-mail address"),
        ));
    }
    Ok(text.to_lowercase())
}

/// Checks the length of a new password, in characters and not in bytes. Its content is not judged.
pub fn password(field: &str, text: &str) -> Result<()> {
    if PASSWORD_CHARS.contains(&text.chars().count()) {
        return Ok(());
    }
    let (min, max) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    let message = format!("{field} must have {min} to {max} characters");
    Err(ApiError::field(Code::InvalidField, field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_text() {
        assert_eq!(email("email", " Ada@Example.com ").unwrap(), "ada@example.com");
        assert!(email("email", "ada+tag@mail.example.co.uk").is_ok());
        for text in [
            "",
            "ada",
            "ada@",
            "@example.com",
            "a b@example.com",
            "a@b",
            "a@b..c",
            "a@-b.c",
            "a\n@b.c",
            "a@b.c,d@e.f",
        ] {
            assert!(email("email", text).is_err(), "{text}");
        }
    }
}
