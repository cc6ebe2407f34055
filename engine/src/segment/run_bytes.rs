//! The run directory as bytes: facts of one kind stand together, which are alike, and are compressed.
//!
//! Segments of many small tenants are read through thousands of runs of a few rows each, so what a run
//! takes counts. Bounds are stored within their hours.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{collections::HashMap, sync::Arc};

use super::runs::{Run, RunDirectory};
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
/// Bytes that a run takes at least: whose, name, rows, two times, two numbers about hours.
const RUN_BYTES_MIN: usize = 3 + 2 * TIME_BYTES + 2;
/// Bytes of a time within its hour.
const TIME_BYTES: usize = 3;

/// What a run has in common with the one before.
const SAME_TENANT: u8 = 0;
const SAME_NAMESPACE: u8 = 1;
const NEW_NAMESPACE: u8 = 2;

impl RunDirectory {
    /// The directory as bytes.
    pub fn write(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let mut plain = Vec::new();
        self.write_plain(&mut plain);
        compressed::write(&plain, LEVEL, out)
    }

    /// Reads a directory back. Errors name `place`.
    pub fn read(bytes: &[u8], place: &str) -> Result<Self> {
        let plain = compressed::read(Cursor::new(bytes, place), usize::MAX)?;
        Self::read_plain(&plain, place)
    }

    /// The directory before it is compressed: facts of one kind stand together, which are alike.
    pub fn write_plain(&self, out: &mut Vec<u8>) {
        out.put_varint(self.runs().len() as u64);
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
            out.put_bytes(name.as_bytes());
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
            let first = run.hours.first().map_or(0, |(hour, _)| *hour);
            out.put_varint(zigzag(first - hour_before));
            hour_before = first;
        }
        let pairs =
            || self.runs().iter().flat_map(|run| run.hours.iter().zip(run.hours.iter().skip(1)));
        pairs().for_each(|((before, _), (hour, _))| out.put_varint((hour - before) as u64));
        pairs().for_each(|((_, before), (_, row))| out.put_varint(u64::from(row - before)));
    }

    /// Reads back what [`RunDirectory::write_plain`] wrote.
    pub fn read_plain(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let count = cursor.count(RUN_BYTES_MIN)?;
        let mut keys: Vec<SeriesKey> = Vec::with_capacity(count);
        let mut names: HashMap<&str, Arc<str>> = HashMap::new();
        for _ in 0..count {
            let (namespace, tenant) = match (cursor.u8()?, keys.last()) {
                (SAME_TENANT, Some(last)) => (last.namespace, Arc::clone(&last.tenant)),
                (SAME_NAMESPACE, Some(last)) => (last.namespace, cursor.text()?.into()),
                (NEW_NAMESPACE, _) => (Namespace(cursor.u32()?), cursor.text()?.into()),
                _ => return Err(cursor.error("a run has no tenant")),
            };
            // Tenants have the same events: one text in memory for all of them.
            let name = cursor.text()?;
            let name = Arc::clone(names.entry(name).or_insert_with(|| name.into()));
            keys.push(SeriesKey { namespace, tenant, name });
        }
        let rows = { 0..count }.map(|_| cursor.varint_u32()).collect::<Result<Vec<_>>>()?;
        let mut time = || {
            let mut four = [0; 4];
            four.iter_mut().zip(cursor.take(TIME_BYTES)?).for_each(|(to, from)| *to = *from);
            Ok(i64::from(u32::from_le_bytes(four)))
        };
        let times =
            { 0..count }.map(|_| Ok((time()?, time()?))).collect::<Result<Vec<(i64, i64)>>>()?;
        let hour_counts = { 0..count }.map(|_| cursor.varint_u32()).collect::<Result<Vec<_>>>()?;
        if hour_counts.contains(&0) {
            return Err(cursor.error("a run has no hour"));
        }
        // An hour takes a byte, and one for its row behind the first: before room is made for them.
        let more: u64 = hour_counts.iter().map(|&hours| 2 * u64::from(hours) - 1).sum();
        if more > cursor.remaining() as u64 {
            return Err(cursor.error("runs have more hours than there are bytes"));
        }
        let mut hours: Vec<Vec<(i64, u32)>> = Vec::with_capacity(count);
        let mut hour = 0i64;
        for &hours_here in &hour_counts {
            hour = hour.wrapping_add(unzigzag(cursor.varint()?));
            let mut here = Vec::with_capacity(hours_here as usize);
            here.push((hour, 0));
            hours.push(here);
        }
        for (hours, &count) in hours.iter_mut().zip(&hour_counts) {
            let (mut hour, _) = hours.first().copied().unwrap_or_default();
            for _ in 1..count {
                hour = hour.wrapping_add(cursor.varint()? as i64);
                hours.push((hour, 0));
            }
        }
        for hours in &mut hours {
            let mut row = 0u32;
            for (_, here) in hours.iter_mut().skip(1) {
                row = row.wrapping_add(cursor.varint_u32()?);
                *here = row;
            }
        }
        cursor.clone().finish()?;
        let mut runs: Vec<Run> = Vec::with_capacity(count);
        let facts = keys.into_iter().zip(rows).zip(times).zip(hours);
        for (((key, rows), (min, max)), hours) in facts {
            let first_row = runs.last().map_or(0, |run| run.first_row + run.rows);
            if first_row.checked_add(rows).is_none() {
                return Err(cursor.error("has too many rows"));
            }
            let at = |hour: Option<&(i64, u32)>, within: i64| {
                let start = hour.map_or(Some(0), |(hour, _)| hour.checked_mul(HOUR_MS));
                start.and_then(|start| start.checked_add(within))
            };
            let (Some(ts_min), Some(ts_max)) = (at(hours.first(), min), at(hours.last(), max))
            else {
                return Err(cursor.error("a run lies outside of time"));
            };
            let run = Run { key, first_row, rows, ts_min, ts_max, hours };
            if !run.is_possible() {
                return Err(cursor.error("hours and bounds of a run disagree"));
            }
            runs.push(run);
        }
        if !runs.is_sorted_by(|a, b| a.key < b.key) {
            return Err(cursor.error("runs are not in order"));
        }
        Ok(Self::of_runs(runs))
    }
}
