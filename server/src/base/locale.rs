//! The language in which a report or the mail of an alert is written, with its customs for numbers and dates.
//!
//! ```text
//! locale   12345.6 short    in full      0.125     a day             a bucket of an hour
//! en       12.3K            12,345.6     12.5%     Friday, Nov 20    Fri, Nov 20, 2:00 PM
//! de       12.346           12.345,6     12,5 %    Freitag, 20. Nov. Fr., 20. Nov., 14:00
//! fr       12,3 k           12 345,6     12,5 %    vendredi 20 nov.  ven. 20 nov., 14:00
//! ja       1.2万            12,345.6     12.5%     11月20日金曜日   11月20日(金) 14:00
//! ```
//!
//! Rules store it by name (`"locale": "de"`); a rule without one is written in English.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Language and customs of what is written for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    /// English, as in the United States.
    #[default]
    En,
    /// German, as in Germany.
    De,
    /// French, as in France.
    Fr,
    /// Japanese, as in Japan.
    Ja,
}

impl Locale {
    /// All of them, English first.
    #[cfg(test)]
    pub const ALL: [Self; 4] = [Self::En, Self::De, Self::Fr, Self::Ja];

    /// The name in requests and in the `lang` of a document: `de`.
    pub fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Ja => "ja",
        }
    }

    /// The one with this name; `None` for any other, such as `de-CH`.
    #[cfg(test)]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|locale| locale.name() == name)
    }

    /// Whether it is English, which stored rules leave out.
    pub fn is_default(&self) -> bool {
        *self == Self::En
    }
}
