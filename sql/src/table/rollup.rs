//! What events add up to, hour by hour or day by day.
//!
//! Counts come from the directories of segments, states from their rollups where they are kept; what is not
//! sealed yet is added. So a row is what the events of its hour or day are, whenever it is read.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BinaryBuilder, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
        TimestampMillisecondBuilder,
    },
    datatypes::{DataType, SchemaRef},
};
use datafusion::common::{DataFusionError, Result};
use inlay_engine::rows::{Hour, Scan, UserState, Wanted as States};

use super::{
    arrays::map_array,
    condition::Conditions,
    schema::{Kind, Property, STATES},
};

const BATCH_ROWS: usize = 8_192;
const HOUR_MS: i64 = 3_600_000;

/// A row: tenant, event, and the start of its hour or day.
type Key = (Arc<str>, Arc<str>, i64);

/// What is read of a table of sums.
pub struct Sums<'a> {
    /// Which table.
    pub kind: Kind,
    /// The rows that they are of.
    pub scan: &'a Scan,
    /// Columns, in the order of the schema.
    pub schema: SchemaRef,
    /// Properties that are columns of their own.
    pub properties: &'a [Property],
    /// What rows must be like.
    pub conditions: &'a Conditions,
}

impl Sums<'_> {
    /// The rows.
    ///
    /// Errors: damage of a segment.
    pub fn batches(&self) -> Result<Vec<RecordBatch>> {
        let (states, numbers) = self.states();
        let rows = self.rows(&states)?;
        let rows: Vec<_> = rows.into_iter().collect();
        rows.chunks(BATCH_ROWS).map(|rows| self.batch(rows, &numbers)).collect()
    }

    /// Which states are needed, and the numeric properties among them by their places.
    fn states(&self) -> (States, Vec<String>) {
        let has = |name: &str| self.schema.fields().iter().any(|field| field.name() == name);
        let mut numbers: Vec<String> = match has(STATES) {
            true => {
                self.scan.sources().iter().flat_map(|s| s.numbers()).map(str::to_owned).collect()
            }
            false => Vec::new(),
        };
        let single = self.properties.iter().filter(|property| has(property.field().name()));
        numbers.extend(single.map(|property| property.name.clone()));
        numbers.sort_unstable();
        numbers.dedup();
        let users = has("users") || has("users_state");
        (States { users, numbers: numbers.clone() }, numbers)
    }

    fn rows(&self, states: &States) -> Result<BTreeMap<Key, Hour>> {
        let Conditions { tenants, events, .. } = self.conditions;
        let is_among = |list: &Option<Vec<String>>, one: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|other| other == one))
        };
        let times = self.conditions.times();
        let step = self.kind.step_ms();
        // The hours of days that begin in time: a day is asked for as a whole, or not at all.
        let end = times.end.checked_add(step - HOUR_MS).unwrap_or(times.end);
        let mut rows: BTreeMap<Key, Hour> = BTreeMap::new();
        for source in self.scan.sources() {
            for (at, series) in source.series().iter().enumerate() {
                let is_asked = is_among(tenants, &series.tenant) && is_among(events, &series.name);
                if !is_asked || series.last_ms < times.start || series.first_ms >= end {
                    continue;
                }
                let hours = source.hours(at, &(times.start..end), states);
                let hours = hours.map_err(|error| DataFusionError::External(Box::new(error)))?;
                for (hour, state) in hours {
                    let start = hour.saturating_mul(HOUR_MS).div_euclid(step).saturating_mul(step);
                    if !times.contains(&start) {
                        continue;
                    }
                    let key = (Arc::clone(&series.tenant), Arc::clone(&series.name), start);
                    match rows.entry(key) {
                        std::collections::btree_map::Entry::Vacant(slot) => {
                            slot.insert(state);
                        }
                        std::collections::btree_map::Entry::Occupied(mut slot) => {
                            slot.get_mut().merge(&state);
                        }
                    }
                }
            }
        }
        Ok(rows)
    }

    fn batch(&self, rows: &[(Key, Hour)], numbers: &[String]) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for field in self.schema.fields() {
            let name = field.name().as_str();
            arrays.push(match name {
                "tenant_id" => texts(rows.iter().map(|((tenant, ..), _)| &**tenant)),
                "event_name" => texts(rows.iter().map(|((_, event, _), _)| &**event)),
                "count" => integers(rows.iter().map(|(_, state)| state.count)),
                "users" => {
                    let mut all = Vec::with_capacity(rows.len());
                    for (_, state) in rows {
                        all.push(estimate(state)?);
                    }
                    integers(all.into_iter())
                }
                "users_state" => binaries(rows.iter().map(|(_, state)| state.users())),
                STATES => {
                    let of = |at: usize| binaries(rows.iter().map(|(_, state)| state.number(at)));
                    let columns: Vec<(&str, ArrayRef)> = numbers
                        .iter()
                        .enumerate()
                        .map(|(at, name)| (name.as_str(), of(at)))
                        .collect();
                    map_array(&columns, rows.len(), DataType::Binary)?
                }
                _ if name == self.kind.time_column() => {
                    let mut times = TimestampMillisecondBuilder::with_capacity(rows.len());
                    rows.iter().for_each(|((.., start), _)| times.append_value(*start));
                    Arc::new(times.finish())
                }
                _ => {
                    let property = self.properties.iter().find(|one| one.field().name() == name);
                    let at = property
                        .and_then(|property| numbers.iter().position(|one| *one == property.name));
                    binaries(rows.iter().map(|(_, state)| state.number(at?)))
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }
}

fn estimate(state: &Hour) -> Result<u64> {
    let mut users = UserState::default();
    if let Some(bytes) = state.users() {
        users.add(&bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
    }
    Ok(users.estimate())
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    values.for_each(|value| builder.append_value(value));
    Arc::new(builder.finish())
}

fn integers(values: impl Iterator<Item = u64>) -> ArrayRef {
    let mut builder = Int64Builder::new();
    values.for_each(|value| builder.append_value(i64::try_from(value).unwrap_or(i64::MAX)));
    Arc::new(builder.finish())
}

fn binaries(values: impl Iterator<Item = Option<Vec<u8>>>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}
