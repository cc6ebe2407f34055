//! Numbers of alert rules and report rules: each organisation counts from 1.

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

/// The id under which a rule with this number is stored: rules are in order of their numbers.
pub fn rule_id(number: u64) -> String {
    format!("{number:020}")
}
