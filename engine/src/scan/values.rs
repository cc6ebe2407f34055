//! Values of a column as they are handed out: a row each, in order.

use std::sync::Arc;

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
}

impl Filter {
    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.numbers.is_empty()
    }
}

/// Strings end to end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TextTable {
    /// Where each string ends.
    pub ends: Vec<u32>,
    /// Their bytes, UTF-8.
    pub bytes: Vec<u8>,
}

impl TextTable {
    /// Appends a string. Whoever fills a table sees to it that it stays below 4 GiB.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a string; empty behind the end.
    pub fn at(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or_default();
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or_default() as usize..end as usize).unwrap_or_default()
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
