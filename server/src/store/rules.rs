//! What alert rules and report rules have in common: numbers, which each organisation counts from 1, and secrets.

use serde::{Deserialize, Serialize};

use super::org::records;

records! {
    Sequence "sequence";
}

/// The number that a rule was given last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sequence {
    /// `alert` or `report`.
    pub id: String,
    /// The last number.
    pub last: u64,
}

/// A secret that another one has replaced. It signs beside its successor until receivers have changed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    /// `whsec_` and Base64.
    pub secret: String,
    /// When it ends.
    pub until: i64,
}

impl PreviousSecret {
    /// Whether it signs at a time, beside the new one.
    pub fn signs(&self, now: i64) -> bool {
        now < self.until
    }
}

/// The id under which a rule with this number is stored: rules are in order of their numbers.
pub fn rule_id(number: u64) -> String {
    format!("{number:020}")
}
