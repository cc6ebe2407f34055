//! Values of a column as they are handed out: a row each, in order.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

pub use crate::base::texts::TextTable;
use crate::{
    error::{Error, Limit, Result},
    query::{NumberFilter, TextFilter},
};

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

/// Says of each string of a table whether it passes, or why that cannot be told.
pub type Accepts = dyn Fn(&TextTable) -> std::result::Result<Vec<bool>, String> + Send + Sync;

/// Which values of a string property pass, and whether rows without the property do.
///
/// `plan LIKE 'p%'` is one of values alone; of `plan <> 'pro' OR plan IS NULL` rows without a plan pass, too.
#[derive(Clone)]
pub struct TextMatch {
    /// Name of the property.
    pub name: String,
    accepts: Arc<Accepts>,
    accepts_absent: bool,
    /// What it says of every value, if that is the same: no string is looked at then.
    of_all: Option<bool>,
    /// Dictionaries that were looked at, and what was found. They stay, so that their addresses stay theirs.
    known: Arc<Mutex<Vec<KnownMatches>>>,
}

type KnownMatches = (Arc<TextTable>, Arc<[bool]>);

impl TextMatch {
    /// By what `accepts` says; rows without the property do not pass.
    pub fn new(
        name: String,
        accepts: impl Fn(&TextTable) -> std::result::Result<Vec<bool>, String> + Send + Sync + 'static,
    ) -> Self {
        let accepts = Arc::new(accepts);
        Self { name, accepts, accepts_absent: false, of_all: None, known: Arc::default() }
    }

    /// All values, or none.
    pub fn of_all(name: String, passes: bool) -> Self {
        let accepts = move |table: &TextTable| Ok(vec![passes; table.len()]);
        Self { of_all: Some(passes), ..Self::new(name, accepts) }
    }

    /// The same, which rows without the property pass as well.
    pub fn or_absent(self) -> Self {
        Self { accepts_absent: true, ..self }
    }

    /// What passes one of two for the same property.
    pub fn or(self, other: Self) -> Self {
        self.with(other, |one, other| one | other)
    }

    /// What passes both of two for the same property.
    pub fn and(self, other: Self) -> Self {
        self.with(other, |one, other| one & other)
    }

    fn with(self, other: Self, both: fn(bool, bool) -> bool) -> Self {
        let accepts_absent = both(self.accepts_absent, other.accepts_absent);
        let name = self.name.clone();
        let accepts = move |table: &TextTable| {
            let pairs = (self.accepts)(table)?.into_iter().zip((other.accepts)(table)?);
            Ok(pairs.map(|(one, other)| both(one, other)).collect())
        };
        Self { accepts_absent, ..Self::new(name, accepts) }
    }

    /// Which strings of a table pass.
    ///
    /// Errors: when it cannot be told.
    pub fn accepted(&self, table: &TextTable) -> Result<Vec<bool>> {
        (self.accepts)(table).map_err(|error| Error::limit(Limit::QueryMemory, error))
    }

    /// Takes the mark from rows whose codes stand for values that do not pass. A dictionary is looked at once; where it has
    /// more values than there are rows, the rows' values are.
    ///
    /// Errors: when it cannot be told.
    pub fn mark(&self, codes: &[u32], table: &Arc<TextTable>, marks: &mut [bool]) -> Result<()> {
        if table.is_empty() {
            marks.iter_mut().for_each(|mark| *mark &= self.accepts_absent);
            return Ok(());
        }
        if let Some(passes) = self.of_all {
            let marks = marks.iter_mut().zip(codes);
            marks.for_each(|(mark, code)| {
                *mark &= if *code > 0 { passes } else { self.accepts_absent };
            });
            return Ok(());
        }
        let accepts =
            |table: &TextTable| -> Result<Arc<[bool]>> { self.accepted(table).map(Arc::from) };
        let at = |code: &u32| (*code as usize).checked_sub(1);
        if table.len() > codes.len() {
            let mut of_rows = TextTable::default();
            codes.iter().for_each(|code| of_rows.push(at(code).map_or(&[], |at| table.at(at))));
            let accepted = accepts(&of_rows)?;
            let rows = codes.iter().zip(accepted.iter()).zip(marks);
            rows.for_each(|((code, accepted), mark)| {
                *mark &= if *code > 0 { *accepted } else { self.accepts_absent };
            });
            return Ok(());
        }
        let known = self.known.lock().iter().find(|(known, _)| Arc::ptr_eq(known, table)).cloned();
        let accepted = match known {
            Some((_, accepted)) => accepted,
            None => {
                let accepted = accepts(table)?;
                self.known.lock().push((Arc::clone(table), Arc::clone(&accepted)));
                accepted
            }
        };
        let passes = |code: &u32| match at(code) {
            Some(at) => accepted.get(at) == Some(&true),
            None => self.accepts_absent,
        };
        marks.iter_mut().zip(codes).for_each(|(mark, code)| *mark &= passes(code));
        Ok(())
    }
}

impl fmt::Debug for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextMatch").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for TextMatch {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.accepts_absent == other.accepts_absent
            && Arc::ptr_eq(&self.accepts, &other.accepts)
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
