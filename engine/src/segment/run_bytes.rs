//! The run directory as bytes: facts of one kind stand together, which are alike, and are compressed.
//!
//! Segments of many small tenants are read through thousands of runs of a few rows each, so what a run
//! takes counts. Bounds are stored within their hours. The hours are a part of their own, which not everybody reads.
//!
//! The directory of `seg/2025-10-31/019a3f49-ea00-77cd-9b44-4516330b8a77.seg` among the golden files, before compression:
//!
//! ```text
//! first block         bytes
//! runs                01
//! names               01  04 74 69 63 6b                   tick
//! whose               02  03 00 00 00  04 6f 6e 6c 79      namespace 3, tenant only
//! its event           00                                   the first name
//! rows                c8 01                                200
//! bounds              00 00 00  59 09 03                   0 ms into its first hour, 199,001 ms into its last
//! hours with rows     01
//! first hour          98 df 3b                             489,420 since 1970: 2025-10-31 12:00
//! last hour           00                                   the same
//!
//! second block        (empty: the run has no hour behind its first)
//! ```
//!
//! Refused, each as `Corrupt`: names or runs that do not rise (`runs are not in order`), bounds and hours that contradict each other
//! (`hours and bounds of a run disagree`), an hour that begins behind the rows (`hours and rows of a run disagree`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::Arc;

use super::{
    run_summaries::{Hours, Owner, RunSummaries, Series},
    runs::{Run, RunDirectory, day_starts},
};
use crate::{
    base::{
        coding::{Cursor, Put, unzigzag, zigzag},
        time::HOUR_MS,
    },
    column::SeriesKey,
    encode::compressed,
    error::Result,
    event::Namespace,
};

/// Level of zstd. A directory is read once, when its segment is opened.
const LEVEL: i32 = 3;
/// Bytes that a run takes at least: whose, name, rows, two times, three numbers about hours.
const RUN_BYTES_MIN: usize = 3 + 2 * TIME_BYTES + 3;
/// Bytes of a time within its hour.
const TIME_BYTES: usize = 3;

/// A run has namespace and tenant of the run before.
const SAME_TENANT: u8 = 0;
/// It has the namespace of the run before; its tenant follows.
const SAME_NAMESPACE: u8 = 1;
/// Its namespace and tenant follow.
const NEW_NAMESPACE: u8 = 2;

impl RunDirectory {
    /// The directory as bytes: its heads, and its hours.
    pub fn write(&self) -> std::io::Result<[Vec<u8>; 2]> {
        let (mut heads, mut hours) = (Vec::new(), Vec::new());
        self.write_heads(&mut heads);
        self.write_hours(&mut hours);
        let mut out = [Vec::new(), Vec::new()];
        for (plain, out) in [heads, hours].iter().zip(&mut out) {
            compressed::write(plain, LEVEL, out)?;
        }
        Ok(out)
    }

    /// Reads a directory back. Errors name `place`.
    pub fn read([heads, hours]: [&[u8]; 2], place: &str) -> Result<Self> {
        let heads = RunSummaries::read(heads, place)?;
        let hours = heads.read_hours(hours, place)?;
        Ok(Self::whole(&heads, &hours))
    }

    /// The directory of these runs with these hours, which were read from the same segment.
    pub fn whole(heads: &RunSummaries, hours: &Hours) -> Self {
        let mut runs = Vec::with_capacity(heads.runs.len());
        for (tenant, owner) in heads.owners.iter().enumerate() {
            let tenant: Arc<str> = heads.tenants.text(tenant).into();
            for at in owner.runs.start as usize..owner.runs.end as usize {
                let Some(run) = heads.runs.get(at) else { continue };
                let Some(name) = heads.names.get(run.name as usize) else { continue };
                let hours = hours.of(at).to_vec();
                runs.push(Run {
                    key: SeriesKey {
                        namespace: owner.namespace,
                        tenant: Arc::clone(&tenant),
                        name: Arc::clone(name),
                    },
                    first_row: run.rows.start,
                    rows: run.rows.len() as u32,
                    ts_min: run.first_ms,
                    ts_max: run.last_ms,
                    day_starts: day_starts(&hours),
                    hours,
                });
            }
        }
        Self::of_runs(runs)
    }

    /// The runs without their hours, before they are compressed: facts of one kind stand together, which are alike.
    pub fn write_heads(&self, out: &mut Vec<u8>) {
        out.put_varint(self.runs().len() as u64);
        let mut names: Vec<&str> = self.runs().iter().map(|run| &*run.key.name).collect();
        names.sort_unstable();
        names.dedup();
        out.put_varint(names.len() as u64);
        names.iter().for_each(|name| out.put_bytes(name.as_bytes()));
        let mut before: Option<&SeriesKey> = None;
        for key in self.runs().iter().map(|run| &run.key) {
            let SeriesKey { namespace, tenant, name } = key;
            let same_namespace = before.is_some_and(|before| before.namespace == *namespace);
            if same_namespace && before.is_some_and(|before| before.tenant == *tenant) {
                out.put_u8(SAME_TENANT);
            } else if same_namespace {
                out.put_u8(SAME_NAMESPACE);
                out.put_bytes(tenant.as_bytes());
            } else {
                out.put_u8(NEW_NAMESPACE);
                out.put_u32(namespace.0);
                out.put_bytes(tenant.as_bytes());
            }
            out.put_varint(names.partition_point(|other| *other < &**name) as u64);
            before = Some(key);
        }
        self.runs().iter().for_each(|run| out.put_varint(u64::from(run.rows)));
        for time in self.runs().iter().flat_map(|run| [run.ts_min, run.ts_max]) {
            let within_hour = (time.rem_euclid(HOUR_MS) as u32).to_le_bytes();
            out.extend(within_hour.iter().take(TIME_BYTES));
        }
        self.runs().iter().for_each(|run| out.put_varint(run.hours.len() as u64));
        let mut hour_before = 0;
        for run in self.runs() {
            let first = run.ts_min.div_euclid(HOUR_MS);
            out.put_varint(zigzag(first - hour_before));
            hour_before = first;
        }
        let hours = |run: &Run| run.ts_max.div_euclid(HOUR_MS) - run.ts_min.div_euclid(HOUR_MS);
        self.runs().iter().for_each(|run| out.put_varint(hours(run) as u64));
    }

    /// The hours of the runs behind the first of each, before they are compressed.
    pub fn write_hours(&self, out: &mut Vec<u8>) {
        let pairs =
            || self.runs().iter().flat_map(|run| run.hours.iter().zip(run.hours.iter().skip(1)));
        pairs().for_each(|((before, _), (hour, _))| out.put_varint((hour - before) as u64));
        pairs().for_each(|((_, before), (_, row))| out.put_varint(u64::from(row - before)));
    }
}

impl RunSummaries {
    /// Reads the runs without their hours: the first block alone. Errors name `place`.
    pub fn read(bytes: &[u8], place: &str) -> Result<Self> {
        let plain = compressed::read(Cursor::new(bytes, place), usize::MAX)?;
        Self::read_plain(&plain, place)
    }

    /// Reads back what [`RunDirectory::write_heads`] wrote.
    pub fn read_plain(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let count = cursor.count(RUN_BYTES_MIN)?;
        let mut names: Vec<Arc<str>> = Vec::new();
        for _ in 0..cursor.count(1)? {
            names.push(cursor.text()?.into());
        }
        if !names.is_sorted_by(|a, b| a < b) {
            return Err(cursor.error("names of events are not in order"));
        }
        let mut heads = Self { names, ..Self::default() };
        heads.read_owners(&mut cursor, count)?;
        let mut first_row = 0u32;
        for run in &mut heads.runs {
            let rows = cursor.varint_u32()?;
            let end = first_row.checked_add(rows);
            run.rows = first_row..end.ok_or_else(|| cursor.error("has too many rows"))?;
            first_row = run.rows.end;
        }
        let times = cursor.take(count * 2 * TIME_BYTES)?;
        heads.hours = { 0..count }.map(|_| cursor.varint_u32()).collect::<Result<_>>()?;
        let mut first_hour = 0i64;
        for run in &mut heads.runs {
            first_hour = first_hour.wrapping_add(unzigzag(cursor.varint()?));
            run.first_ms = first_hour;
        }
        let facts = heads.runs.iter_mut().zip(&heads.hours);
        for ((run, &hours), times) in facts.zip(times.chunks_exact(2 * TIME_BYTES)) {
            let (first_hour, more) = (run.first_ms, cursor.varint()?);
            let (first, last) = times.split_at(TIME_BYTES);
            let time = |hour: i64, within: &[u8]| {
                let within = within.iter().rev().fold(0, |sum, byte| sum << 8 | i64::from(*byte));
                let start = hour.checked_mul(HOUR_MS).filter(|_| within < HOUR_MS);
                start.and_then(|start| start.checked_add(within))
            };
            let last_hour = i64::try_from(more).ok().and_then(|more| first_hour.checked_add(more));
            let bounds = time(first_hour, first).zip(last_hour.and_then(|hour| time(hour, last)));
            let Some((first_ms, last_ms)) = bounds else {
                return Err(cursor.error("a run lies outside of time"));
            };
            (run.first_ms, run.last_ms) = (first_ms, last_ms);
            // As many hours as lie between the first and the last, at most; and a row in each.
            let is_possible = hours > 0
                && u64::from(hours) - 1 <= more
                && (hours > 1 || more == 0)
                && hours as usize <= run.rows.len()
                && first_ms <= last_ms;
            if !is_possible {
                return Err(cursor.error("hours and bounds of a run disagree"));
            }
        }
        cursor.finish()?;
        Ok(heads)
    }

    /// The owner of each run, and the index of its event among the names.
    ///
    /// Errors: `Corrupt` when tenants or, within one, events do not rise, or an index has no name.
    fn read_owners(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<()> {
        self.runs.reserve_exact(count);
        let names = self.names.len();
        for at in 0..count as u32 {
            let (namespace, tenant) = match (cursor.u8()?, self.owners.last_mut()) {
                (SAME_TENANT, Some(last)) => {
                    last.runs.end = at + 1;
                    let name = cursor.varint_u32()?;
                    if self.runs.last().is_none_or(|before| before.name >= name) {
                        return Err(cursor.error("runs are not in order"));
                    }
                    self.push(name);
                    continue;
                }
                (SAME_NAMESPACE, Some(last)) => (last.namespace, cursor.text()?),
                (NEW_NAMESPACE, _) => (Namespace(cursor.u32()?), cursor.text()?),
                _ => return Err(cursor.error("a run has no tenant")),
            };
            if let Some(last) = self.owners.last() {
                let before = self.tenants.at(self.tenants.len() - 1);
                if (last.namespace, before) >= (namespace, tenant.as_bytes()) {
                    return Err(cursor.error("runs are not in order"));
                }
            }
            self.owners.push(Owner { namespace, runs: at..at + 1 });
            self.tenants.push(tenant.as_bytes());
            let name = cursor.varint_u32()?;
            self.push(name);
        }
        if self.runs.iter().any(|run| run.name as usize >= names) {
            return Err(cursor.error("a run has no name"));
        }
        Ok(())
    }

    /// A run of the last owner, of which no more is known yet.
    fn push(&mut self, name: u32) {
        let tenant = (self.owners.len() - 1) as u32;
        self.runs.push(Series { tenant, name, rows: 0..0, first_ms: 0, last_ms: 0 });
    }

    /// Reads the hours of these runs: the second block. Errors name `place`.
    pub fn read_hours(&self, bytes: &[u8], place: &str) -> Result<Hours> {
        let plain = compressed::read(Cursor::new(bytes, place), usize::MAX)?;
        self.read_plain_hours(&plain, place)
    }

    /// Reads back what [`RunDirectory::write_hours`] wrote.
    pub fn read_plain_hours(&self, bytes: &[u8], place: &str) -> Result<Hours> {
        let mut cursor = Cursor::new(bytes, place);
        // An hour behind the first of a run takes a byte, and one for its row: before room is made for them.
        let more: u64 = self.hours.iter().map(|hours| u64::from(*hours) - 1).sum();
        if more.saturating_mul(2) > cursor.remaining() as u64 {
            return Err(cursor.error("runs have more hours than there are bytes"));
        }
        let count = more as usize + self.runs.len();
        let mut starts: Vec<u32> = Vec::with_capacity(self.runs.len() + 1);
        let mut list: Vec<(i64, u32)> = Vec::with_capacity(count);
        let is_countable = u32::try_from(count).is_ok();
        for (run, &hours) in self.runs.iter().zip(&self.hours) {
            starts.push(list.len() as u32);
            let mut hour = run.first_ms.div_euclid(HOUR_MS);
            list.push((hour, 0));
            for _ in 1..hours {
                let step = cursor.varint()?;
                let next = i64::try_from(step).ok().and_then(|step| hour.checked_add(step));
                let next = next.filter(|_| step > 0);
                hour = next.ok_or_else(|| cursor.error("hours of a run do not rise"))?;
                list.push((hour, 0));
            }
            if hour != run.last_ms.div_euclid(HOUR_MS) || !is_countable {
                return Err(cursor.error("hours and bounds of a run disagree"));
            }
        }
        starts.push(list.len() as u32);
        let mut hours = list.iter_mut();
        for (run, &count) in self.runs.iter().zip(&self.hours) {
            let mut row = 0u32;
            hours.next();
            for _ in 1..count {
                let step = cursor.varint_u32()?;
                let next = row
                    .checked_add(step)
                    .filter(|row| step > 0 && (*row as usize) < run.rows.len());
                row = next.ok_or_else(|| cursor.error("hours and rows of a run disagree"))?;
                if let Some((_, here)) = hours.next() {
                    *here = row;
                }
            }
        }
        cursor.finish()?;
        Ok(Hours { starts, list })
    }
}
