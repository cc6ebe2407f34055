//! `keys`: metadata of the server, and the engine's own lists.
//!
//! ```text
//! $ inlay-inspect keys
//! space   key                                     bytes
//! engine  f                                           8
//! engine  s 019a6356-6e00-7ec8-b074-7e0b5b63c210     49
//! ------  --------------------------------------  -----
//!         2 keys                                     57
//! ```
//!
//! `--values` adds a column: text as text, other bytes in hexadecimal, 160 characters at most.

use std::io::{self, Write};

use inlay_engine::{Inspection, KeyInfo};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words},
    view::View,
};

/// Characters of a value that fit a line of text; JSON has all of it.
const VALUE_CHARS_MAX: usize = 160;

/// Keys in their order.
pub struct Keys {
    keys: Vec<KeyInfo>,
    with_values: bool,
}

impl Keys {
    /// Reads those that begin with `prefix`, as they are printed: `s` for segments. Values are in memory either way, and shown with
    /// `with_values` alone.
    pub fn of(inspection: &Inspection, prefix: &str, with_values: bool) -> Self {
        Self { keys: inspection.keys(prefix).collect(), with_values }
    }

    fn bytes(&self) -> u64 {
        self.keys.iter().map(|key| key.value.len() as u64).sum()
    }
}

impl View for Keys {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table =
            Table::new([words("space"), words("key"), numbers("bytes"), words("value")]);
        for key in &self.keys {
            let value = if self.with_values { shortened(&key.value) } else { String::new() };
            let bytes = amount::count(key.value.len() as u64);
            table.row([key.space.to_owned(), key.key.clone(), bytes, value]);
        }
        table.rule();
        let keys = format!("{} keys", amount::count(self.keys.len() as u64));
        table.row([String::new(), keys, amount::count(self.bytes()), String::new()]);
        table.write(out)
    }

    fn json(&self) -> Value {
        let describe = |key: &KeyInfo| {
            let mut json = json!({ "space": key.space, "key": key.key, "bytes": key.value.len() });
            if self.with_values {
                json["value"] = std::str::from_utf8(&key.value).ok().into();
                json["value_hex"] = hex(&key.value).into();
            }
            json
        };
        json!({
            "keys": self.keys.iter().map(describe).collect::<Vec<_>>(),
            "bytes": self.bytes(),
        })
    }

    fn damage(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A value on one line: text as text, other bytes in hex.
fn shortened(value: &[u8]) -> String {
    let whole = match std::str::from_utf8(value) {
        Ok(text) if !text.contains('\0') => text.to_owned(),
        _ => hex(value),
    };
    match whole.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// `00ff` for the bytes 0 and 255.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_a_line() {
        assert_eq!(shortened("é".as_bytes()), "é");
        assert_eq!(shortened(&[0, 255]), "00ff");
        let long = shortened("é".repeat(500).as_bytes());
        assert_eq!(long.chars().count(), VALUE_CHARS_MAX + 1);
    }
}
