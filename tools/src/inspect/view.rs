//! What every command gives: one view of the directory, which can be shown in two ways.

use std::io::{self, Write};

use serde_json::Value;

/// What a command found.
pub trait View {
    /// For people: aligned text.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;

    /// For programs: one object with plain numbers. Names are those of the engine's types.
    fn json(&self) -> Value;

    /// Everything that was noticed to be wrong, as sentences that name the place.
    fn damage(&self) -> Vec<String>;
}
