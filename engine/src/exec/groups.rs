//! Groups of an answer: numbered as they are met, known by their string across segments.

use std::{collections::HashMap, sync::Arc};

use crate::{base::hash::MapHasher, query::Group};

/// The number of a row's group when the row belongs to none that is answered.
pub const NO_GROUP: u32 = u32::MAX;

/// The groups that were met so far.
#[derive(Clone)]
pub struct Groups {
    names: Vec<Group>,
    numbers: HashMap<Arc<str>, u32, MapHasher>,
    /// The group of rows that lack the property.
    absent: Option<u32>,
    fixed: bool,
}

impl Groups {
    /// Any group may appear.
    pub fn open() -> Self {
        Self { names: Vec::new(), numbers: HashMap::default(), absent: None, fixed: false }
    }

    /// Only these groups count.
    pub fn fixed(names: Vec<Group>) -> Self {
        let numbered = || names.iter().zip(0..);
        let numbers = numbered().filter_map(|(name, at)| Some((name.clone()?, at))).collect();
        let absent = numbered().find_map(|(name, at)| name.is_none().then_some(at));
        Self { names, numbers, absent, fixed: true }
    }

    /// Number of a group, [`NO_GROUP`] when it does not count.
    pub fn number(&mut self, group: Option<&str>) -> u32 {
        let known = match group {
            None => self.absent,
            Some(name) => self.numbers.get(name).copied(),
        };
        if let Some(number) = known {
            return number;
        }
        if self.fixed {
            return NO_GROUP;
        }
        let number = self.names.len() as u32;
        let name = group.map(Arc::<str>::from);
        match &name {
            None => self.absent = Some(number),
            Some(name) => drop(self.numbers.insert(Arc::clone(name), number)),
        }
        self.names.push(name);
        number
    }

    /// None yet, of those that may appear here.
    pub fn fresh(&self) -> Self {
        if self.fixed { self.clone() } else { Self::open() }
    }

    /// All groups by number.
    pub fn names(&self) -> &[Group] {
        &self.names
    }
}

/// Translates the codes of one dictionary into group numbers, each once.
pub struct CodeGroups {
    numbers: Vec<u32>,
}

/// A code that was not translated yet.
const UNKNOWN: u32 = u32::MAX - 1;

impl CodeGroups {
    /// A translation of codes up to `codes`, excluded.
    pub fn new(codes: usize) -> Self {
        Self { numbers: vec![UNKNOWN; codes] }
    }

    /// Forgets all numbers.
    pub fn clear(&mut self) {
        self.numbers.fill(UNKNOWN);
    }

    /// Appends the group number of each code; `name` gives the string of one that is new.
    pub fn translate<'a>(
        &mut self,
        codes: impl Iterator<Item = usize> + Clone,
        groups: &mut Groups,
        name: impl Fn(usize) -> Option<&'a str>,
        out: &mut Vec<u32>,
    ) {
        // Nearly always all of them are known.
        let before = out.len();
        let known = |code: usize| self.numbers.get(code).copied().unwrap_or(UNKNOWN);
        out.extend(codes.clone().map(known));
        let new = out.get_mut(before..).unwrap_or_default();
        if new.contains(&UNKNOWN) {
            for (number, code) in
                new.iter_mut().zip(codes).filter(|(number, _)| **number == UNKNOWN)
            {
                *number = self.number(code, groups, || name(code));
            }
        }
    }

    /// Group number of a code; `name` gives its string.
    pub fn number<'a>(
        &mut self,
        code: usize,
        groups: &mut Groups,
        name: impl FnOnce() -> Option<&'a str>,
    ) -> u32 {
        match self.numbers.get_mut(code) {
            Some(number) => {
                if *number == UNKNOWN {
                    *number = groups.number(name());
                }
                *number
            }
            None => groups.number(name()),
        }
    }
}
