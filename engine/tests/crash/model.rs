//! What the engine must show after a history: rows, known ids and keys, by the simplest means.

use std::collections::{BTreeMap, BTreeSet};

use inlay_engine::*;

use crate::history::{DAYS, EVENTS, FIRST_DAY_MS, Operation, Row, TENANTS};

const DAY_MS: i64 = 86_400_000;

/// Rows that count, ids that are known, and keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    pub rows: Vec<Row>,
    pub ids: BTreeSet<(usize, u32)>,
    keys: BTreeMap<String, String>,
}

/// What can be seen of a model, or of an engine: rows and their sum by tenant, event, day and user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    cells: BTreeMap<(usize, usize, i64, u32), (u64, f64)>,
    keys: BTreeMap<String, String>,
}

impl Model {
    /// Does what the engine should.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Ingest(rows) => {
                let mut new = 0u32;
                for row in rows {
                    if row.id.is_some_and(|id| !self.ids.insert((row.tenant, id))) {
                        continue;
                    }
                    new += 1;
                    self.rows.push(row.clone());
                }
                if new > 0 {
                    let used = self.keys.get("used").map_or(0, |used| used.parse::<u32>().unwrap());
                    self.keys.insert("used".to_owned(), (used + new).to_string());
                }
            }
            Operation::Keys(writes) => {
                for (key, value) in writes {
                    match value {
                        Some(value) => self.keys.insert(key.clone(), value.clone()),
                        None => self.keys.remove(key),
                    };
                }
            }
            Operation::Erase { tenant, user } => {
                let goes =
                    |row: &Row| row.tenant == *tenant && user.is_none_or(|user| row.user == user);
                for row in self.rows.iter().filter(|row| goes(row)) {
                    if let Some(id) = row.id {
                        self.ids.remove(&(row.tenant, id));
                    }
                }
                self.rows.retain(|row| !goes(row));
            }
            Operation::Flush | Operation::Compact | Operation::Restart => {}
        }
    }

    /// What should be seen.
    pub fn shown(&self) -> Shown {
        let mut shown = Shown { keys: self.keys.clone(), ..Shown::default() };
        for row in &self.rows {
            let cell = shown.cells.entry((row.tenant, row.event, row.day, row.user)).or_default();
            cell.0 += 1;
            cell.1 += row.ms;
        }
        shown
    }
}

impl Shown {
    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.cells.values().map(|(rows, _)| rows).sum()
    }

    /// Whether this is `all` without some of what `rest` does not have: an erasure that is not done.
    pub fn is_between(&self, rest: &Self, all: &Self) -> bool {
        let is_whole = |cell| self.cells.get(cell) == all.cells.get(cell);
        let rows = |shown: &Self, cell| shown.cells.get(cell).map_or(0, |(rows, _)| *rows);
        let is_part = |cell| (rows(rest, cell)..rows(all, cell)).contains(&rows(self, cell));
        let mut cells = all.cells.keys().chain(self.cells.keys());
        self.keys == all.keys && cells.all(|cell| is_whole(cell) || is_part(cell))
    }

    /// What an engine shows.
    pub fn by(engine: &Engine) -> Result<Self> {
        let mut shown = Self::default();
        for (tenant, tenant_name) in TENANTS.iter().enumerate() {
            for (event, event_name) in EVENTS.iter().enumerate() {
                let ask = |metric| {
                    let query = Query {
                        tenant: Some((*tenant_name).to_owned()),
                        metric,
                        number: Some("ms".to_owned()),
                        granularity: Some(Granularity::Day),
                        group_by: Some("user".to_owned()),
                        ..Query::count(
                            Namespace(1),
                            event_name,
                            FIRST_DAY_MS..FIRST_DAY_MS + DAYS * DAY_MS,
                        )
                    };
                    engine.query(&query, &|| false)
                };
                let (counts, sums) = (ask(Metric::Count)?, ask(Metric::Sum)?);
                for (group, values) in counts.groups.iter().zip(&counts.values) {
                    let user: u32 = group.as_deref().unwrap().parse().unwrap();
                    for (day, value) in values.iter().enumerate() {
                        let count = value.as_f64().unwrap() as u64;
                        if count > 0 {
                            shown.cells.entry((tenant, event, day as i64, user)).or_default().0 =
                                count;
                        }
                    }
                }
                for (group, values) in sums.groups.iter().zip(&sums.values) {
                    let user: u32 = group.as_deref().unwrap().parse().unwrap();
                    for (day, value) in values.iter().enumerate() {
                        if let Some(cell) = shown.cells.get_mut(&(tenant, event, day as i64, user))
                        {
                            cell.1 = value.as_f64().unwrap();
                        }
                    }
                }
            }
        }
        for (key, value) in engine.keys().scan(b"") {
            shown.keys.insert(
                String::from_utf8(key).unwrap(),
                String::from_utf8(value.to_vec()).unwrap(),
            );
        }
        Ok(shown)
    }
}
