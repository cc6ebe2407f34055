//! What every command gives: one view of the directory, which can be shown in two ways.
//!
//! ```text
//! text      days          2025-11-03 to 2025-11-08
//! json      "day_first": "2025-11-03", "day_last": "2025-11-08"
//! damage    ["seg/2025-11-04/019a….seg: offset 3840: checksum mismatch in section 2"]
//! ```

use std::io::{self, Write};

use serde_json::Value;

/// What a command found.
pub trait View {
    /// For people: aligned text, with amounts in units. Errors: those of `out`.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;

    /// For programs: one object with plain numbers. Names are those of the engine's types.
    fn json(&self) -> Value;

    /// Everything that was noticed to be wrong, as sentences that begin with the file; `main` prints them below either form, and the
    /// exit code is 1 if there are any.
    fn damage(&self) -> Vec<String>;
}
