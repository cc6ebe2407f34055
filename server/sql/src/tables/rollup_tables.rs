//! The rows of `events_hourly` and `events_daily`: counts and states of each hour or day.
//!
//! Counts come from the directories of segments, states from their rollups where these are stored; rows that are not
//! sealed yet are added. So a row is exact whenever it is read.
//!
//! ```text
//! SELECT day, count, users FROM events_daily WHERE tenant_id = 't1' AND event_name = 'call' ORDER BY day DESC LIMIT 1
//! 2026-11-20T00:00:00.000Z, 15, 13
//!
//! each source    its hours of that series within the days that are asked for
//! merged         by the start of their day: counts are added, sketches of users and digests of numbers are merged
//! row            tenant, event, start of the day, count; users is the sketch's estimate, users_state its bytes
//! ```
//!
//! A series, one event name of one tenant, is read through all sources by one thread, so that its rows are complete when a batch is made. What is not
//! selected is not read: `SELECT sum(count) …` needs directories alone.

use std::{collections::BTreeMap, fmt, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BinaryBuilder, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
        TimestampMillisecondBuilder,
    },
    datatypes::{DataType, SchemaRef},
};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::{
    ExecutionPlan,
    stream::RecordBatchStreamAdapter,
    streaming::{PartitionStream, StreamingTableExec},
};
use inlay_engine::rows::{Hour, Scan, Series, StateSelection as States, UserState};

use super::{
    arrays::map_array,
    conditions::Conditions,
    errors::broken,
    schema::{Kind, Property, STATES},
};

/// Rows of a batch without states, and with them: a state takes kilobytes.
/// 512 sketches of some kilobytes are a few megabytes.
const BATCH_ROWS: usize = 8_192;
const BATCH_ROWS_WITH_STATES: usize = 512;
const HOUR_MS: i64 = 3_600_000;

/// A tenant's event.
/// `("t1", "call")`; strings are shared by all rows of the series.
type SeriesName = (Arc<str>, Arc<str>);
/// A row: tenant, event, and the start of its hour or day.
/// In milliseconds since 1970: `("t1", "call", 1795132800000)` for the row above.
type RollupKey = (Arc<str>, Arc<str>, i64);

/// A read of `events_hourly` or `events_daily`.
pub struct Sums {
    /// Table that is read: `Hourly` or `Daily`.
    pub kind: Kind,
    /// Snapshot of the events that the table sums up.
    pub scan: Arc<Scan>,
    /// Columns, in the order of the schema.
    pub schema: SchemaRef,
    /// Properties that are columns of their own.
    pub properties: Vec<Property>,
    /// Conditions that rows must meet.
    pub conditions: Conditions,
    /// Number of rows that are enough; `None` is all.
    pub limit: Option<usize>,
}

impl Sums {
    /// Reads them in so many parts beside each other, tenants' events in their order.
    ///
    /// Series are dealt out in turn: of 2 parts the first gets the first, third and fifth. With `LIMIT 10` a batch has ten rows, and a part reads no more
    /// series than it needs for them.
    ///
    /// Errors: damage of a segment.
    pub fn plan(self, partitions: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let names = self.names();
        let (states, numbers) = self.states()?;
        let (schema, limit) = (Arc::clone(&self.schema), self.limit);
        let rows = match states == States::default() {
            true => BATCH_ROWS,
            false => BATCH_ROWS_WITH_STATES,
        };
        // Batches are made as they are asked for: a small limit must not pay for a large batch.
        let batch_rows = limit.map_or(rows, |limit| limit.clamp(1, rows));
        let reading = Arc::new(RollupReading { sums: self, states, numbers, batch_rows });
        let parts = (0..partitions.max(1)).map(|part| {
            let names = names.iter().skip(part).step_by(partitions.max(1)).cloned().collect();
            Arc::new(RollupPart { reading: Arc::clone(&reading), names })
                as Arc<dyn PartitionStream>
        });
        let plan = StreamingTableExec::try_new(schema, parts.collect(), None, [], false, limit)?;
        Ok(Arc::new(plan))
    }

    /// The tenants' events that are asked for, in order.
    ///
    /// From the directories of all sources: series whose rows may be within the span of time. Patterns are no conditions of these tables (`conditions.rs`).
    fn names(&self) -> Vec<SeriesName> {
        let Conditions { tenants, events, .. } = &self.conditions;
        let is_among = |list: &Option<Vec<String>>, one: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|other| other == one))
        };
        let (start, end) = self.span();
        let mut names: Vec<SeriesName> = Vec::new();
        for source in self.scan.sources() {
            let is_asked = |series: &&Series| {
                !series.rows.is_empty() && series.last_ms >= start && series.first_ms < end
            };
            // Runs of a tenant follow each other.
            let mut last: Option<(u32, Arc<str>)> = None;
            for series in source.series().iter().filter(is_asked) {
                let tenant = match &last {
                    Some((at, tenant)) if *at == series.tenant => Arc::clone(tenant),
                    _ => {
                        let tenant: Arc<str> = source.tenants().text(series.tenant as usize).into();
                        last = Some((series.tenant, Arc::clone(&tenant)));
                        tenant
                    }
                };
                let Some(name) = source.names().get(series.name as usize) else { continue };
                if is_among(tenants, &tenant) && is_among(events, name) {
                    names.push((tenant, Arc::clone(name)));
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The hours of what begins in time: a day is asked for as a whole, or not at all.
    ///
    /// In milliseconds, the end not included. For days the end is moved by 23 hours, so that a day that begins before it is complete; days that begin later
    /// are dropped by [`rows`](Self::rows).
    fn span(&self) -> (i64, i64) {
        let times = self.conditions.times();
        let whole = times.end.checked_add(self.kind.step_ms() - HOUR_MS);
        (times.start, whole.unwrap_or(times.end))
    }

    /// Which states are needed, and the numeric properties among them by their indexes.
    ///
    /// `SELECT count` needs none; `users` and `users_state` need sketches; `numeric_states` the digests of all properties, and `numeric_states['ms']` alone
    /// that of `ms`. The second part is the list of properties, sorted, in whose order the engine returns digests.
    fn states(&self) -> Result<(States, Vec<String>)> {
        let has = |name: &str| self.schema.fields().iter().any(|field| field.name() == name);
        let mut numbers: Vec<String> = Vec::new();
        if has(STATES) {
            for source in self.scan.sources() {
                numbers.extend(source.numbers().map_err(broken)?.into_iter().map(str::to_owned));
            }
        }
        let single = self.properties.iter().filter(|property| has(property.field().name()));
        numbers.extend(single.map(|property| property.name.clone()));
        numbers.sort_unstable();
        numbers.dedup();
        let users = has("users") || has("users_state");
        Ok((States { users, numbers: numbers.clone() }, numbers))
    }

    /// The rows of a tenant's event.
    ///
    /// Appended to `rows` in the order of time: one for each hour or day that has events.
    fn rows(
        &self,
        name: &SeriesName,
        states: &States,
        rows: &mut Vec<(RollupKey, Hour)>,
    ) -> Result<()> {
        let (start, end) = self.span();
        let (times, step) = (self.conditions.times(), self.kind.step_ms());
        let mut sums: BTreeMap<i64, Hour> = BTreeMap::new();
        for source in self.scan.sources() {
            let all = source.series();
            let Some(at) = source.find(&name.0, &name.1) else { continue };
            if all[at].last_ms < start || all[at].first_ms >= end {
                continue;
            }
            for (hour, state) in source.hours(at, &(start..end), states).map_err(broken)? {
                let start = hour.saturating_mul(HOUR_MS).div_euclid(step).saturating_mul(step);
                if !times.contains(&start) {
                    continue;
                }
                match sums.entry(start) {
                    std::collections::btree_map::Entry::Vacant(slot) => {
                        slot.insert(state);
                    }
                    std::collections::btree_map::Entry::Occupied(mut slot) => {
                        slot.get_mut().merge(&state);
                    }
                }
            }
        }
        let key = |start| (Arc::clone(&name.0), Arc::clone(&name.1), start);
        rows.extend(sums.into_iter().map(|(start, sum)| (key(start), sum)));
        Ok(())
    }

    /// Rows as columns: of each field of the schema the array that it names.
    fn batch(&self, rows: &[(RollupKey, Hour)], numbers: &[String]) -> Result<RecordBatch> {
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

/// Sums and what of them is read.
struct RollupReading {
    sums: Sums,
    /// What the engine is asked for besides counts.
    states: States,
    /// Properties in the order of their digests.
    numbers: Vec<String>,
    /// Rows after which a batch is handed on.
    batch_rows: usize,
}

/// Some tenants' events.
struct RollupPart {
    reading: Arc<RollupReading>,
    /// Tenants' events that this partition reads.
    names: Vec<SeriesName>,
}

impl fmt::Debug for RollupPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl PartitionStream for RollupPart {
    fn schema(&self) -> &SchemaRef {
        &self.reading.sums.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.reading.sums.schema);
        let reading = Arc::clone(&self.reading);
        let batches =
            RollupBatches { reading, names: self.names.clone().into_iter(), rows: Vec::new() };
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

/// Batches of some tenants' events, made as they are wanted.
///
/// One series has at most as many rows as there are hours, which may be more than a batch: the others wait in `rows`.
struct RollupBatches {
    reading: Arc<RollupReading>,
    names: std::vec::IntoIter<SeriesName>,
    /// Rows that no batch has yet.
    rows: Vec<(RollupKey, Hour)>,
}

impl Iterator for RollupBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let RollupReading { sums, states, numbers, batch_rows } = &*self.reading;
        while self.rows.len() < *batch_rows {
            let Some(name) = self.names.next() else { break };
            if let Err(error) = sums.rows(&name, states, &mut self.rows) {
                return Some(Err(error));
            }
        }
        if self.rows.is_empty() {
            return None;
        }
        let later = self.rows.split_off(self.rows.len().min(*batch_rows));
        let now = std::mem::replace(&mut self.rows, later);
        Some(sums.batch(&now, numbers))
    }
}

/// The estimate of a sketch, in users; 0 where no row has a user.
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
