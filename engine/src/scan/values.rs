//! Values of a column as they are handed out: a row each, in order.

use std::{fmt, sync::Arc};

pub use crate::base::texts::TextTable;
use crate::query::{NumberFilter, TextFilter};

/// A column of events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Column {
    /// Milliseconds since 1970.
    Time,
    /// What its sender calls the event.
    EventId,
    /// Who did it.
    User,
    /// A string property.
    Text(String),
    /// A numeric property.
    Number(String),
}

/// What rows must be like. All parts must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Values of string properties.
    pub texts: Vec<TextFilter>,
    /// Bounds of numeric properties.
    pub numbers: Vec<NumberFilter>,
    /// What values of string properties are like.
    pub alike: Vec<TextMatch>,
}

impl Filter {
    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.numbers.is_empty() && self.alike.is_empty()
    }
}

/// Says of each string of a table whether it passes.
pub type Accepts = dyn Fn(&TextTable) -> Vec<bool> + Send + Sync;

/// Which values of a string property pass; a row without the property does not.
#[derive(Clone)]
pub struct TextMatch {
    /// Name of the property.
    pub name: String,
    /// Says of each string of a table whether it passes.
    pub accepts: Arc<Accepts>,
}

impl fmt::Debug for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextMatch").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for TextMatch {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.accepts, &other.accepts)
    }
}

/// Values of one column.
#[derive(Debug, Clone)]
pub enum Values {
    /// Milliseconds since 1970.
    Times(Vec<i64>),
    /// NaN where the row lacks it.
    Numbers(Vec<f64>),
    /// Code n stands for string n - 1 of the table, 0 for a row that lacks it.
    Codes(Vec<u32>, Arc<TextTable>),
    /// A string a row; empty for a row that lacks it.
    Texts(Arc<TextTable>),
}

impl Values {
    /// Keeps the rows that are marked.
    pub fn retain(&mut self, marks: &[bool]) {
        fn kept<T: Copy>(list: &mut Vec<T>, marks: &[bool]) {
            let mut marks = marks.iter();
            list.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
        match self {
            Self::Times(list) => kept(list, marks),
            Self::Numbers(list) => kept(list, marks),
            Self::Codes(list, _) => kept(list, marks),
            Self::Texts(table) => {
                let mut rest = TextTable::default();
                for (at, _) in marks.iter().enumerate().filter(|(_, mark)| **mark) {
                    rest.push(table.at(at));
                }
                *table = Arc::new(rest);
            }
        }
    }
}
