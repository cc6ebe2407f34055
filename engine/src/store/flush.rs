//! Flush: the memtable becomes a segment and an id run.
//!
//! Rows are put into the segment's order once; then each column is gathered in that order. One log
//! record makes segment and run live and moves the flushed LSN, so no reader and no restart ever
//! sees the rows twice or not at all.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{TEMPORARY, edit::Edit, memtable::Memtable, sequencer::Sequencer};
use crate::{
    base::hash::{HashMap128, HashSet128, MapHasher},
    column::{Rows, SeriesKey},
    encode::numbers,
    error::{Error, IoContext, Result},
    ids::{self, IdRun, IdRunMeta, NewRun},
    index::bitmaps::ROLLUP_DIMENSIONS,
    segment::{self, Database, NewSegment, RunDirectory, Segment, SegmentWriter, source_of},
    vfs::Vfs,
};

/// The disk, names and settings of a flush.
pub struct FlushContext<'a> {
    /// Disk with the data directory.
    pub vfs: &'a dyn Vfs,
    /// Identity and hash seed of the database.
    pub database: Database,
    /// Name for the new segment.
    pub segment_uuid: uuid::Uuid,
    /// Name for the new id run.
    pub ids_uuid: uuid::Uuid,
    /// Week of the flush: the generation of the id run, unless an event is later.
    pub generation: u32,
    /// Rows from which on a series has rollups.
    pub rollup_rows_min: u32,
}

/// Writes a frozen memtable and makes it live. Returns the bytes that were written. When writing
/// fails, nothing of it stays behind.
pub fn flush(
    sequencer: &Sequencer,
    context: &FlushContext<'_>,
    memtable: &Memtable,
    frozen_ids: &HashSet128,
    lsn: u64,
) -> Result<u64> {
    let mut paths = Vec::new();
    let written = write_files(context, memtable, frozen_ids, lsn, &mut paths);
    let edit = written.inspect_err(|_| remove_files(context, &paths))?;
    let segments = edit.segments_in.iter().map(|segment| segment.meta().len);
    let bytes = segments.chain(edit.runs_in.iter().map(|run| run.meta().len)).sum();
    sequencer.publish_edit(edit, |_| ()).map(|()| bytes).inspect_err(|error| {
        // After a fatal failure the record may be in the log all the same: then the files stay.
        if matches!(error, Error::Limit { .. }) {
            remove_files(context, &paths);
        }
    })
}

/// Files that cannot be removed now are removed at the next start.
fn remove_files(context: &FlushContext<'_>, paths: &[String]) {
    let temporary = format!("{TEMPORARY}/{}.seg", context.segment_uuid);
    for path in paths.iter().chain([&temporary]) {
        let _ = context.vfs.remove_new(path);
    }
}

/// Segment and id run, durable under their final names, which are also put into `paths`.
fn write_files(
    context: &FlushContext<'_>,
    memtable: &Memtable,
    frozen_ids: &HashSet128,
    lsn: u64,
    paths: &mut Vec<String>,
) -> Result<Edit> {
    let vfs = context.vfs;
    memtable.check()?;
    let meta = write_segment(context, memtable.chunks())?;
    paths.push(meta.path());
    let ts_max = meta.ts_max;
    let segment = Segment::open(vfs.map(&meta.path()).at(&meta.path())?, meta, context.database)?;
    vfs.sync_dir(segment::FRESH_DIRECTORY).at(segment::FRESH_DIRECTORY)?;
    let mut edit =
        Edit { segments_in: vec![Arc::new(segment)], flushed: Some(lsn), ..Edit::default() };
    if !frozen_ids.is_empty() {
        let mut hashes: Vec<u128> = frozen_ids.iter().copied().collect();
        hashes.sort_unstable();
        let new = NewRun {
            uuid: context.ids_uuid,
            db: context.database.id,
            // Ids must not expire before the events that they belong to.
            generation: context.generation.max(ids::generation_at(ts_max)),
        };
        let meta = ids::write(vfs, new, source_of(&hashes))?;
        paths.push(meta.path());
        edit.runs_in.push(Arc::new(open_run(vfs, meta, context.database.id)?));
    }
    Ok(edit)
}

/// Makes a new run's name durable and opens it.
pub fn open_run(vfs: &dyn Vfs, meta: IdRunMeta, db: [u8; 16]) -> Result<IdRun> {
    let (path, directory) = (meta.path(), meta.directory());
    vfs.sync_dir(&directory).at(&directory)?;
    vfs.sync_dir(ids::DIRECTORY).at(ids::DIRECTORY)?;
    IdRun::open(vfs.map(&path).at(&path)?, meta, db)
}

/// Writes the rows of `chunks`, oldest first, as a segment.
pub fn write_segment(
    context: &FlushContext<'_>,
    chunks: &[Arc<Rows>],
) -> Result<segment::SegmentMeta> {
    let gather = Gather::new(chunks);
    let times = gather.times();
    let new = NewSegment {
        uuid: context.segment_uuid,
        db: context.database,
        level: segment::FRESH,
        rows: times.len() as u32,
        rollup_rows_min: context.rollup_rows_min,
    };
    let mut writer = SegmentWriter::new(context.vfs, new)?;
    writer.runs(&gather.run_directory(&times))?;
    writer.times(source_of(&times))?;
    let mut ids = gather.event_ids();
    writer.event_ids(|rows, out| {
        ids.by_ref().take(rows).for_each(|id| out.push(id));
        Ok(())
    })?;
    let (users, codes) = gather.users();
    let mut users = users.into_iter();
    writer.users(|count, tenants, texts| {
        for (tenant, text) in users.by_ref().take(count) {
            tenants.push(tenant);
            texts.push(text);
        }
        Ok(())
    })?;
    writer.user_codes(source_of(&codes))?;
    for name in gather.names(|rows| rows.strings.keys()) {
        let text = gather.text(&name);
        let mut rest = text.values.iter();
        writer.text_values(&name, |count, out| {
            rest.by_ref().take(count).for_each(|value| out.push(value.as_bytes()));
            Ok(())
        })?;
        let values = text.values.len();
        match text.codes {
            Placed::Listed(codes) => writer.listed_text_codes(&name, values, &codes)?,
            Placed::All(codes) => writer.text_codes(&name, values, source_of(&codes))?,
        }
    }
    for name in gather.names(|rows| rows.numbers.keys()) {
        match gather.numbers(&name) {
            Placed::Listed(listed) => {
                let values: Vec<f64> = listed.iter().map(|&(_, number)| number).collect();
                let exponent = numbers::choose_exponent_listed(&values);
                writer.listed_numbers(&name, exponent, &listed)?;
            }
            Placed::All(values) => {
                let exponent = numbers::choose_exponent(&values);
                writer.numbers(&name, exponent, source_of(&values))?;
            }
        }
    }
    writer.finish()
}

/// Series rank, chunk and row of all rows, in the order of a segment; `ranks` has the rank of each series of a chunk.
fn order_of(
    chunks: &[Arc<Rows>],
    ranks: &[Vec<usize>],
    series_count: usize,
) -> Vec<(u32, u32, u32)> {
    // Rows are counted by series first, so that only those of one series are sorted, with their times beside them.
    let mut ends = vec![0usize; series_count];
    for (chunk, ranks) in chunks.iter().zip(ranks) {
        chunk.series_codes.iter().for_each(|&code| ends[ranks[code as usize]] += 1);
    }
    let mut count = 0;
    for end in &mut ends {
        (count, *end) = (count + *end, count);
    }
    let mut rows = vec![(0i64, 0u32, 0u32); count];
    for (at, (chunk, ranks)) in (0..).zip(chunks.iter().zip(ranks)) {
        for (row, (&code, &time)) in (0..).zip(chunk.series_codes.iter().zip(&chunk.timestamps)) {
            let end = &mut ends[ranks[code as usize]];
            rows[*end] = (time, at, row);
            *end += 1;
        }
    }
    let (mut order, mut start) = (Vec::with_capacity(count), 0);
    for (rank, &end) in (0..).zip(&ends) {
        // Chunk and row are the order of arrival, which decides between equal times.
        let of_series = &mut rows[start..end];
        of_series.sort_unstable();
        order.extend(of_series.iter().map(|&(_, chunk, row)| (rank, chunk, row)));
        start = end;
    }
    order
}

/// A column in the order of a segment.
enum Placed<T> {
    /// The rows that have a value, rising: a column of few rows costs what those do.
    Listed(Vec<(u32, T)>),
    /// A value for each row.
    All(Vec<T>),
}

/// A string column in the order of a segment.
struct PlacedText<'a> {
    /// Sorted distinct values.
    values: Vec<&'a Arc<str>>,
    /// Code 0 is "absent" and n the n-th value.
    codes: Placed<i64>,
}

/// The place of a user's tenant, and the user's id.
type PlacedUser<'a> = (u32, &'a [u8]);

/// Rows of several chunks in the order of a segment.
struct Gather<'a> {
    chunks: &'a [Arc<Rows>],
    series: Vec<&'a SeriesKey>,
    /// Series rank, chunk and row, in order.
    order: Vec<(u32, u32, u32)>,
    /// For each chunk, where its rows come to stand: a column is gathered from the chunks that
    /// have it, and the others cost nothing.
    places: Vec<Vec<u32>>,
}

impl<'a> Gather<'a> {
    fn new(chunks: &'a [Arc<Rows>]) -> Self {
        let keys = || chunks.iter().flat_map(|chunk| &chunk.series);
        // Chunks have most series in common: they are compared by hashes, and only the distinct ones are sorted.
        let mut ranks: HashMap<&SeriesKey, usize, MapHasher> = keys().map(|key| (key, 0)).collect();
        let mut series: Vec<&SeriesKey> = ranks.keys().copied().collect();
        series.sort_unstable();
        for (rank, key) in series.iter().enumerate() {
            ranks.insert(key, rank);
        }
        let rank = |key: &SeriesKey| ranks.get(key).copied().unwrap_or_default();
        let ranks: Vec<Vec<usize>> =
            chunks.iter().map(|chunk| chunk.series.iter().map(rank).collect()).collect();
        let order = order_of(chunks, &ranks, series.len());
        let mut places: Vec<Vec<u32>> = chunks.iter().map(|chunk| vec![0; chunk.len()]).collect();
        for (place, &(_, chunk, row)) in order.iter().enumerate() {
            places[chunk as usize][row as usize] = place as u32;
        }
        Self { chunks, series, order, places }
    }

    fn rows(&self) -> impl Iterator<Item = (&'a Rows, usize)> {
        self.order.iter().map(|&(_, chunk, row)| (&*self.chunks[chunk as usize], row as usize))
    }

    fn times(&self) -> Vec<i64> {
        self.rows().map(|(rows, row)| rows.timestamps[row]).collect()
    }

    fn run_directory(&self, times: &[i64]) -> RunDirectory {
        let mut runs = RunDirectory::default();
        let mut start = 0;
        for same in self.order.chunk_by(|a, b| a.0 == b.0) {
            let key = self.series[same[0].0 as usize].clone();
            runs.push(key, &times[start..start + same.len()]);
            start += same.len();
        }
        runs
    }

    fn event_ids(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        self.rows().map(|(rows, row)| rows.event_ids.value(row))
    }

    /// Distinct users of each tenant, sorted, and a code for each row.
    fn users(&self) -> (Vec<PlacedUser<'a>>, Vec<i64>) {
        let (mut users, mut codes) = (Vec::new(), Vec::with_capacity(self.order.len()));
        let owner = |&(rank, ..): &(u32, u32, u32)| {
            let key = self.series[rank as usize];
            (key.namespace, &key.tenant)
        };
        let mut known: Vec<(&[u8], u128)> = Vec::new();
        for (tenant, order) in (0..).zip(self.order.chunk_by(|a, b| owner(a) == owner(b))) {
            let rows = || {
                order.iter().map(|&(_, chunk, row)| (&*self.chunks[chunk as usize], row as usize))
            };
            let user = |(rows, row): (&'a Rows, usize)| {
                Some((rows.users.value(row)?, rows.user_hashes[row]))
            };
            // Hashes are quicker to compare than ids, of which only the distinct ones are sorted.
            let mut code_of = HashMap128::<i64>::default();
            known.clear();
            known.extend(
                { rows() }.filter_map(user).filter(|&(_, hash)| code_of.insert(hash, 0).is_none()),
            );
            known.sort_unstable();
            for (code, &(_, hash)) in (1..).zip(&known) {
                code_of.insert(hash, code);
            }
            let code = |(rows, row): (&Rows, usize)| code_of.get(&rows.user_hashes[row]).copied();
            codes.extend(rows().map(|row| code(row).unwrap_or_default()));
            users.extend(known.iter().map(|&(text, _)| (tenant, text)));
        }
        (users, codes)
    }

    fn names<'n, I: Iterator<Item = &'n Arc<str>>>(
        &self,
        of: impl Fn(&'a Rows) -> I,
    ) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> =
            self.chunks.iter().flat_map(|chunk| of(chunk).cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn text(&self, name: &str) -> PlacedText<'a> {
        let columns = || {
            let both = self.chunks.iter().zip(&self.places);
            both.filter_map(|(chunk, places)| Some((chunk.strings.get(name)?, places)))
        };
        let mut ranks: BTreeMap<&Arc<str>, i64> =
            columns().flat_map(|(column, _)| &column.values).map(|value| (value, 0)).collect();
        for (rank, code) in ranks.values_mut().enumerate() {
            *code = rank as i64 + 1;
        }
        let present = columns().map(|(column, _)| column.codes.present()).sum();
        let cells = columns().flat_map(|(column, places)| {
            let map: Vec<i64> = column.values.iter().map(|value| ranks[value]).collect();
            column.codes.iter().map(move |(row, code)| (places[row as usize], map[code as usize]))
        });
        let has_bitmaps = ROLLUP_DIMENSIONS.contains(&name);
        let codes = self.placed(if has_bitmaps { usize::MAX } else { present }, cells, 0);
        PlacedText { values: ranks.into_keys().collect(), codes }
    }

    fn numbers(&self, name: &str) -> Placed<f64> {
        let columns = || {
            let both = self.chunks.iter().zip(&self.places);
            both.filter_map(|(chunk, places)| Some((chunk.numbers.get(name)?, places)))
        };
        let present = columns().map(|(numbers, _)| numbers.present()).sum();
        let cells = columns().flat_map(|(numbers, places)| {
            numbers.iter().map(|(row, number)| (places[row as usize], number))
        });
        self.placed(present, cells, f64::NAN)
    }

    fn placed<T: Copy>(
        &self,
        present: usize,
        cells: impl Iterator<Item = (u32, T)>,
        absent: T,
    ) -> Placed<T> {
        if present.saturating_mul(numbers::LISTED_FROM) < self.order.len() {
            let mut listed: Vec<(u32, T)> = cells.collect();
            listed.sort_unstable_by_key(|&(place, _)| place);
            return Placed::Listed(listed);
        }
        let mut all = vec![absent; self.order.len()];
        cells.for_each(|(place, value)| all[place as usize] = value);
        Placed::All(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Namespace;

    fn key(number: u32) -> SeriesKey {
        let (tenant, name) = (format!("tenant {}", number % 3), format!("event {}", number / 3));
        SeriesKey { namespace: Namespace(1), tenant: tenant.into(), name: name.into() }
    }

    /// A chunk that lists its series as their first rows come.
    fn chunk(rows: &[(u32, i64)]) -> Arc<Rows> {
        let mut chunk = Rows::default();
        for &(number, time) in rows {
            let key = key(number);
            let known = chunk.series.iter().position(|known| *known == key);
            let code = known.unwrap_or(chunk.series.len());
            if known.is_none() {
                chunk.series.push(key);
            }
            chunk.series_codes.push(code as u32);
            chunk.timestamps.push(time);
            chunk.event_ids.push(None);
        }
        Arc::new(chunk)
    }

    proptest! {
        /// By series, time, and arrival where times are equal.
        #[test]
        fn rows_are_ordered_as_one_sort_orders_them(
            chunks in prop::collection::vec(prop::collection::vec((0u32..5, -3i64..4), 1..200), 1..6),
        ) {
            let mut expected = Vec::new();
            for (at, rows) in (0u32..).zip(&chunks) {
                for (row, &(number, time)) in (0u32..).zip(rows) {
                    expected.push((key(number), time, at, row));
                }
            }
            expected.sort();
            let chunks: Vec<Arc<Rows>> = chunks.iter().map(|rows| chunk(rows)).collect();
            let gather = Gather::new(&chunks);
            let found: Vec<_> = gather.order.iter().map(|&(rank, chunk, row)| {
                let time = chunks[chunk as usize].timestamps[row as usize];
                (gather.series[rank as usize].clone(), time, chunk, row)
            }).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
