//! Groups by user as a table that the optimizer puts in the place of `events`: read tenant by tenant through all sources,
//! so that each group is complete and has one row. Where users are counted and not named, groups are by the other keys, and have a row for each
//! chunk.
//!
//! Rows are cut into chunks of whole tenants, in the order of their names; for two threads:
//!
//! ```text
//! acme 1,300,000 rows     chunk 0: users below m      chunk 1: users from m on      both read all rows of acme
//! bolt 50,000             chunk 2
//! cora 60,000             chunk 2, together 110,000
//! dune 40,000             chunk 3: 150,000 would be more than 131,072
//! ```
//!
//! Each chunk is a piece of work that gives batches of its own groups. Users of chunk 2 are numbered from 2 × 2³² on, so no two users of the
//! statement have the same number.

use std::{collections::HashMap, fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, StringViewArray},
    datatypes::SchemaRef,
};
use datafusion_common::{DataFusionError, Result, hash_utils::RandomState};
use datafusion_execution::{TaskContext, memory_pool::MemoryConsumer};
use inlay_engine::rows::{Morsel, Scan, Source, TextTable};

use super::{
    aggregate_spec::{AggregateSpec, GroupKey},
    distinct_values::Distinct,
    group_by_user::{UserAggregator, UserGroupsLayout},
    partitioned_work::{Batches, GroupSource, LearnedFilter, PartitionedWork, Pieces},
    user_range::UserRange,
};
use crate::tables::{Conditions, broken, strings};

/// Rows of tenants that are read together, unless one alone has more: enough that what is unpacked of a segment is needed,
/// few enough that their users stay in the processor's caches.
const CHUNK_ROWS: usize = if cfg!(test) { 300 } else { 131_072 };
/// Bytes for what is counted once in groups of tenants that are read together, at most.
const DISTINCT_BYTES: usize = 32 << 20;
/// No number yet.
const NONE: u32 = u32::MAX;

/// Groups of the users of each tenant, and what they come to.
#[derive(Clone)]
pub struct UserGroupsTable {
    /// Segments and rows in memory: the sources.
    scan: Arc<Scan>,
    /// Which rows count: of which tenants and events, of which times, and with which properties.
    conditions: Conditions,
    /// Keys and measures; the user is one of the keys, unless users are counted.
    spec: AggregateSpec,
}

impl UserGroupsTable {
    /// Of the rows that meet the conditions. Users of different tenants are different ones, so the tenant has to be a key or
    /// the only one.
    pub fn new(scan: Arc<Scan>, spec: AggregateSpec, conditions: Conditions) -> Self {
        Self { scan, conditions, spec }
    }

    /// Whether users and groups can be numbered, and what is counted once in each fits into memory: 4,096 values in groups of 65,536 users take
    /// 32 MiB, which is just as much as there may be.
    ///
    /// Errors: damage of a segment.
    pub fn is_possible(&self) -> Result<bool> {
        let (mut rows, mut users, mut largest) = (0usize, 0usize, 0usize);
        for source in self.scan.sources() {
            let mut of_tenants = vec![0usize; source.tenants().len()];
            for series in source.series() {
                of_tenants[series.tenant as usize] += series.rows.len();
            }
            let here: usize = of_tenants.iter().sum();
            rows += here;
            // A tenant has as many rows at most as its largest parts have together.
            largest += of_tenants.into_iter().max().unwrap_or_default();
            users += source.user_texts().map_err(broken)?.map_or(here, |(_, users)| users + 1);
        }
        let is_by_user_alone =
            self.spec.keys.iter().all(|(_, key)| matches!(key, GroupKey::Tenant | GroupKey::User));
        let groups = if is_by_user_alone { users.min(rows) } else { rows };
        let at_once = groups.min(largest.max(CHUNK_ROWS));
        let words: usize = self.spec.distinct.iter().map(Distinct::words).sum();
        let bytes = at_once.saturating_mul(words * size_of::<u64>());
        Ok(rows < u32::MAX as usize && bytes <= DISTINCT_BYTES)
    }
}

impl fmt::Debug for UserGroupsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserGroupsTable").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl GroupSource for UserGroupsTable {
    type PartitionedWork = Reading;

    fn schema(&self) -> &SchemaRef {
        &self.spec.schema
    }

    fn pieces(&self, partitions: usize) -> Result<(Reading, Pieces<Reading>)> {
        let (layout, chunks) = self.chunks(partitions)?;
        Ok((Reading { of: self.clone(), layout }, chunks))
    }

    /// A user of one event only is rare. Groups in which users are counted have many rows each, of some dozens of users.
    fn rows_of(&self, rows_read: usize) -> Result<usize> {
        Ok(rows_read.div_ceil(if self.spec.counts_users { 64 } else { 2 }))
    }
}

/// Rows that are read together.
#[derive(Clone)]
pub struct Chunk {
    /// Its index among the chunks of the table: the upper half of the numbers of its users.
    number: u32,
    /// Morsels of some tenants, each with the index of its source in the scan.
    morsels: Arc<[(usize, Morsel)]>,
    /// The users whose groups are made of them; not all, only where rows are of one tenant.
    users: UserRange,
}

/// Numbers of texts, in the order in which they are met.
#[derive(Default)]
struct TextNumbers<'a> {
    /// The number of each text.
    known: HashMap<&'a [u8], u32, RandomState>,
    /// The texts by their numbers.
    texts: Vec<&'a [u8]>,
}

impl<'a> TextNumbers<'a> {
    /// The number of a text, which is the next one where it is new.
    fn number(&mut self, text: &'a [u8]) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.known.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }

    fn array(&self) -> Result<ArrayRef> {
        let mut table = TextTable::default();
        self.texts.iter().for_each(|text| table.push(text));
        Ok(Arc::new(StringViewArray::from(&strings(&table)?)))
    }
}

impl UserGroupsTable {
    /// The rows, cut by tenants, and large tenants by users; beside each chunk, how many rows it has.
    fn chunks(&self, partitions: usize) -> Result<(UserGroupsLayout, Pieces<Reading>)> {
        let sources = self.scan.sources();
        let (mut tenants, mut names) = (TextNumbers::default(), TextNumbers::default());
        let (mut tenant_numbers, mut name_numbers) = (Vec::new(), Vec::new());
        let mut rows: Vec<usize> = Vec::new();
        let mut morsels = Vec::new();
        for source in sources {
            let here = self.conditions.morsels(source).map_err(broken)?;
            let mut numbers = vec![NONE; source.tenants().len()];
            for row_range in here.iter().flat_map(|morsel| &morsel.row_ranges) {
                let Some(series) = source.series().get(row_range.series) else { continue };
                let number = &mut numbers[series.tenant as usize];
                if *number == NONE {
                    *number = tenants.number(source.tenants().at(series.tenant as usize));
                    rows.resize(tenants.texts.len(), 0);
                }
                rows[*number as usize] += row_range.rows.len();
            }
            tenant_numbers.push(numbers);
            if self.spec.needs_names() {
                let numbers = source.names().iter().map(|name| names.number(name.as_bytes()));
                name_numbers.push(numbers.collect());
            }
            morsels.push(here);
        }
        // Tenants that stand beside each other in segments are read together: a block is unpacked for all of them at once.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|number| tenants.texts[*number]);
        let mut chunks: Vec<(usize, Vec<(usize, Morsel)>)> = Vec::new();
        let mut chunk_of = vec![0; rows.len()];
        for number in order {
            match chunks.last_mut() {
                Some((taken, _)) if *taken + rows[number] <= CHUNK_ROWS => *taken += rows[number],
                _ => chunks.push((rows[number], Vec::new())),
            }
            chunk_of[number] = chunks.len() - 1;
        }
        for (at, (source, morsels)) in sources.iter().zip(morsels).enumerate() {
            for (chunk, morsel) in morsels
                .into_iter()
                .flat_map(|morsel| cut(source, morsel, &tenant_numbers[at], &chunk_of))
            {
                chunks[chunk].1.push((at, morsel));
            }
        }
        let layout = UserGroupsLayout {
            tenants: tenants.array()?,
            tenant_numbers,
            names: names.array()?,
            name_numbers,
            finest: self.spec.finest(),
        };
        let mut pieces: Pieces<Reading> = Vec::new();
        for (rows, morsels) in chunks {
            // A chunk of more rows is one tenant's.
            let count = (rows / CHUNK_ROWS).clamp(1, partitions);
            let has_places = |at: usize| sources[at].users_of_row(0).is_some();
            let with_places = morsels.iter().filter(|(at, _)| has_places(*at));
            let largest = with_places.max_by_key(|(_, morsel)| morsel.rows());
            let ranges = match largest.filter(|_| count > 1) {
                Some((at, morsel)) => UserRange::ranges(&sources[*at], morsel, count)?,
                None => vec![UserRange::ALL],
            };
            let (share, morsels) = (rows / ranges.len(), Arc::from(morsels));
            for users in ranges {
                let (number, morsels) = (pieces.len() as u32, Arc::clone(&morsels));
                pieces.push((share, Chunk { number, morsels, users }));
            }
        }
        Ok((layout, pieces))
    }
}

/// A morsel by the chunks of its tenants: one piece for each run of row ranges of one chunk.
fn cut(
    source: &Source,
    morsel: Morsel,
    numbers: &[u32],
    chunk_of: &[usize],
) -> Vec<(usize, Morsel)> {
    let mut pieces: Vec<(usize, Morsel)> = Vec::new();
    for row_range in morsel.row_ranges {
        let Some(series) = source.series().get(row_range.series) else { continue };
        let chunk = chunk_of[numbers[series.tenant as usize] as usize];
        match pieces.last_mut() {
            Some((last, piece)) if *last == chunk => piece.row_ranges.push(row_range),
            _ => pieces.push((chunk, Morsel { row_ranges: vec![row_range] })),
        }
    }
    pieces
}

/// The row ranges of a morsel whose series pass.
fn retain_series(morsel: &Morsel, passes: impl Fn(usize) -> bool) -> Morsel {
    let row_ranges = morsel.row_ranges.iter().filter(|row_range| passes(row_range.series));
    Morsel { row_ranges: row_ranges.cloned().collect() }
}

/// What partitions have in common.
pub struct Reading {
    of: UserGroupsTable,
    layout: UserGroupsLayout,
}

impl PartitionedWork for Reading {
    type Piece = Chunk;

    fn schema(&self) -> &SchemaRef {
        &self.of.spec.schema
    }

    fn batches(
        &self,
        chunk: Chunk,
        learned: &LearnedFilter,
        context: &TaskContext,
    ) -> Result<Batches> {
        let passing = self.of.spec.passing_tenants(learned, &self.layout.tenants);
        let memory = MemoryConsumer::new("users").register(context.memory_pool());
        let mut aggregator =
            UserAggregator::new(&self.of.spec, &self.layout, &chunk.users, memory)?;
        let sources = self.of.scan.sources();
        let filter = &self.of.conditions.filter;
        for (at, morsel) in chunk.morsels.iter() {
            let source = sources
                .get(*at)
                .ok_or_else(|| DataFusionError::Internal("no source".to_owned()))?;
            let passing = passing.as_ref().map(|passing| {
                let numbers = &self.layout.tenant_numbers[*at];
                retain_series(morsel, |series| {
                    let series = source.series().get(series);
                    let number = series.map_or(NONE, |series| numbers[series.tenant as usize]);
                    number != NONE && passing.value(number as usize)
                })
            });
            let morsel = passing.as_ref().unwrap_or(morsel);
            let is_empty = morsel.row_ranges.is_empty();
            if !is_empty
                && (filter.is_empty() || !source.excludes(morsel, filter).map_err(broken)?)
            {
                aggregator.add(*at, source, morsel)?;
            }
        }
        // A chunk has fewer users than numbers of this half.
        Ok(Box::new(aggregator.finish(u64::from(chunk.number) << 32)?))
    }
}
