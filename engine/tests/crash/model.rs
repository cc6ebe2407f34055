//! What the engine must show after a history: rows, known ids and keys, by the simplest means.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU64, Ordering},
};

use inlay_engine::*;

use crate::history::{DAYS, DROPPABLE, EVENTS, FIRST_DAY_MS, MODELS, Operation, Row, TENANTS};

const DAY_MS: i64 = 86_400_000;

/// How many answers came from rollups, of all that were asked for.
pub static FROM_ROLLUPS: AtomicU64 = AtomicU64::new(0);

/// Rows that count, ids that are known, and keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    pub rows: Vec<Row>,
    pub ids: BTreeSet<(usize, u32)>,
    /// The second namespace takes nothing any more.
    pub is_dropped: bool,
    /// The first day that the first namespace shows.
    first_day: i64,
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
            Operation::KeepFrom(first_day) => self.first_day = *first_day,
            Operation::Drop => {
                self.is_dropped = true;
                self.rows.retain(|row| row.tenant != DROPPABLE);
                self.ids.retain(|(tenant, _)| *tenant != DROPPABLE);
            }
            Operation::Flush | Operation::Compact | Operation::Restart => {}
        }
    }

    /// What should be seen.
    pub fn shown(&self) -> Shown {
        let mut shown = Shown { keys: self.keys.clone(), ..Shown::default() };
        let is_kept = |row: &&Row| row.tenant == DROPPABLE || row.day >= self.first_day;
        for row in self.rows.iter().filter(is_kept) {
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

    /// Whether this is `all` without some of what `rest` does not have: an erasure that is not done. A
    /// namespace goes as a whole.
    pub fn is_between(&self, rest: &Self, all: &Self) -> bool {
        let is_whole = |cell| self.cells.get(cell) == all.cells.get(cell);
        let rows = |shown: &Self, cell: &_| shown.cells.get(cell).map_or(0, |(rows, _)| *rows);
        let is_part = |cell: &(usize, usize, i64, u32)| {
            cell.0 != DROPPABLE && (rows(rest, cell)..rows(all, cell)).contains(&rows(self, cell))
        };
        let mut cells = all.cells.keys().chain(self.cells.keys());
        self.keys == all.keys && cells.all(|cell| is_whole(cell) || is_part(cell))
    }

    /// What an engine shows: by user, which only rows can answer, and again by day, by model and with all tenants,
    /// which rollups and the run directory answer where they can. An error where the two differ.
    pub fn by(engine: &Engine) -> Result<Self, String> {
        let text = |error: Error| error.to_string();
        let mut shown = Self::default();
        for (tenant, _) in TENANTS.iter().enumerate() {
            for event in 0..EVENTS.len() {
                let asked = Asked { engine, tenant: Some(tenant), event };
                let (counts, sums) = asked.by_user().map_err(text)?;
                for (group, values) in counts.groups.iter().zip(&counts.values) {
                    for (day, count) in (0..).zip(values).filter(|(_, count)| number(count) > 0.0) {
                        let cell = (tenant, event, day, group.as_deref().unwrap().parse().unwrap());
                        shown.cells.entry(cell).or_default().0 = number(count) as u64;
                    }
                }
                for (group, values) in sums.groups.iter().zip(&sums.values) {
                    for (day, sum) in (0..).zip(values) {
                        let cell = (tenant, event, day, group.as_deref().unwrap().parse().unwrap());
                        if let Some(cell) = shown.cells.get_mut(&cell) {
                            cell.1 = number(sum);
                        }
                    }
                }
                let (expected, seen) = (shown.days(tenant, event), asked.by_day().map_err(text)?);
                if expected != seen {
                    let detail = format!("rows give {expected:?}, rollups {seen:?}");
                    return Err(format!("tenant {tenant}, event {event}: {detail}"));
                }
            }
        }
        for event in 0..EVENTS.len() {
            let asked = Asked { engine, tenant: None, event };
            let both = [shown.days(0, event), shown.days(1, event)];
            let expected = (0..DAYS as usize).map(|day| both[0][day].add(&both[1][day]));
            let seen = asked.by_day().map_err(text)?;
            if expected.zip(&seen).any(|(expected, seen)| !expected.is_alike_for_all(seen)) {
                let detail = format!("rows give {both:?}, rollups {seen:?}");
                return Err(format!("all tenants, event {event}: {detail}"));
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

    /// The days of a tenant's event.
    fn days(&self, tenant: usize, event: usize) -> Vec<Day> {
        let mut days = vec![Day::default(); DAYS as usize];
        for (&(whose, what, day, user), &(rows, sum)) in &self.cells {
            if (whose, what) == (tenant, event) {
                let model = user as usize % MODELS.len();
                let day = &mut days[day as usize];
                day.rows += rows as f64;
                day.sum += sum;
                day.users += 1.0;
                day.of_model[model] += rows as f64;
                day.sum_of_model[model] += sum;
            }
        }
        days
    }
}

/// What a day comes to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Day {
    rows: f64,
    sum: f64,
    users: f64,
    of_model: [f64; 2],
    sum_of_model: [f64; 2],
}

impl Day {
    fn add(&self, other: &Self) -> Self {
        let both = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Self {
            rows: self.rows + other.rows,
            sum: self.sum + other.sum,
            users: self.users + other.users,
            of_model: both(self.of_model, other.of_model),
            sum_of_model: both(self.sum_of_model, other.sum_of_model),
        }
    }

    /// The same, but for users, who may be of both tenants.
    fn is_alike_for_all(&self, seen: &Self) -> bool {
        Self { users: seen.users, ..*self } == *seen && seen.users <= self.users
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Questions about an event of a tenant, or of all tenants of the first namespace.
struct Asked<'a> {
    engine: &'a Engine,
    tenant: Option<usize>,
    event: usize,
}

impl Asked<'_> {
    fn ask(&self, metric: Metric, group_by: Option<&str>) -> Result<Answer> {
        let (namespace, _) = TENANTS[self.tenant.unwrap_or(0)];
        let window = FIRST_DAY_MS..FIRST_DAY_MS + DAYS * DAY_MS;
        let query = Query {
            tenant: self.tenant.map(|tenant| TENANTS[tenant].1.to_owned()),
            metric,
            number: Some("ms".to_owned()),
            granularity: Some(Granularity::Day),
            group_by: group_by.map(str::to_owned),
            ..Query::count(namespace, EVENTS[self.event], window)
        };
        let answer = self.engine.query(&query, &|| false)?;
        FROM_ROLLUPS.fetch_add(u64::from(answer.rollup.is_some()), Ordering::Relaxed);
        Ok(answer)
    }

    /// Counts and sums.
    fn by_user(&self) -> Result<(Answer, Answer)> {
        Ok((self.ask(Metric::Count, Some("user"))?, self.ask(Metric::Sum, Some("user"))?))
    }

    /// Each day, and each model of it.
    fn by_day(&self) -> Result<Vec<Day>> {
        let mut days = vec![Day::default(); DAYS as usize];
        let mut put = |metric, place: fn(&mut Day) -> &mut f64| -> Result<()> {
            let answer = self.ask(metric, None)?;
            let values = answer.values.first().into_iter().flatten();
            days.iter_mut().zip(values).for_each(|(day, value)| *place(day) = number(value));
            Ok(())
        };
        put(Metric::Count, |day| &mut day.rows)?;
        put(Metric::Sum, |day| &mut day.sum)?;
        put(Metric::Distinct, |day| &mut day.users)?;
        let mut put = |metric, place: fn(&mut Day) -> &mut [f64; 2]| -> Result<()> {
            let answer = self.ask(metric, Some("model"))?;
            for (group, values) in answer.groups.iter().zip(&answer.values) {
                let model = MODELS.iter().position(|model| group.as_deref() == Some(*model));
                for (day, value) in days.iter_mut().zip(values) {
                    place(day)[model.unwrap()] = number(value);
                }
            }
            Ok(())
        };
        put(Metric::Count, |day| &mut day.of_model)?;
        put(Metric::Sum, |day| &mut day.sum_of_model)?;
        Ok(days)
    }
}
