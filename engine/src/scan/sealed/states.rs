//! What the rows of a series in a segment add up to, hour by hour.

use std::ops::Range;

use super::Sealed;
use crate::{
    base::time::{DAY_MS, HOUR_MS},
    encode::VECTOR_ROWS,
    error::Result,
    scan::{
        hours::{Hour, HourStates, StateSelection},
        vectors::{in_block, vectors},
    },
    segment::{RollupAt, Run, RunDay, SectionKind, UserReader},
    sketch::{digest::Digest, hll::Distinct},
};

/// An hour since 1970 of a run: its place among those of its day, and its rows.
type HourRows = (usize, i64, Range<u32>);

/// The days of a run of which hours are listed, each with those.
fn days_of<'h>(
    run: &'h Run,
    hours: &'h [HourRows],
) -> impl Iterator<Item = (RunDay<'h>, &'h [HourRows])> {
    let day_of = |hour: i64| hour.div_euclid(DAY_MS / HOUR_MS);
    let by_day = hours.chunk_by(move |(_, a, _), (_, b, _)| day_of(*a) == day_of(*b));
    by_day.filter_map(move |hours| {
        let (_, hour, _) = hours.first()?;
        Some((run.on_day(day_of(*hour))?, hours))
    })
}

impl Sealed {
    /// What the rows of a series add up to by hour: from rollups where they are kept.
    ///
    /// Errors: `Corrupt`.
    pub fn hours(
        &self,
        series: usize,
        times: &Range<i64>,
        selection: &StateSelection,
    ) -> Result<HourStates> {
        let mut states = HourStates::default();
        let found = self.series().get(series).zip(self.run(series));
        let Some((shown, (position, _))) = found else { return Ok(states) };
        let Some(run) = self.whole()?.runs().runs().get(position) else { return Ok(states) };
        // Each hour that is asked for: its place among those of its day, and its rows.
        let mut hours: Vec<HourRows> = Vec::new();
        for day in run.by_day() {
            for (at, (hour, rows)) in day.hour_rows().enumerate() {
                let rows = run.first_row + rows.start..run.first_row + rows.end;
                let is_asked = times.contains(&hour.saturating_mul(HOUR_MS));
                if is_asked && rows.start >= shown.rows.start {
                    let count = rows.len() as u64;
                    states.insert(hour, Hour { count, ..Hour::empty(selection) });
                    hours.push((at, hour, rows));
                }
            }
        }
        let rollup = self.whole()?.rollup_of(position);
        if selection.users {
            let mut rest: Vec<HourRows> = Vec::new();
            let mut sketches = self.whole()?.rollups(SectionKind::RollupUsers, "");
            for (day, hours) in days_of(run, &hours) {
                let kept = match rollup {
                    Some(index) => {
                        let at = RollupAt { index, day: day.ordinal };
                        sketches.by_hour(at, day.hours.len(), Distinct::read)?
                    }
                    None => None,
                };
                let Some((_, Some(kept))) = kept else {
                    rest.extend_from_slice(hours);
                    continue;
                };
                for (at, hour, _) in hours {
                    if let (Some(state), Some(users)) = (states.get_mut(hour), kept.get(*at)) {
                        state.users = Some(users.clone());
                    }
                }
            }
            if let Some((_, _, rows)) = rest.first() {
                self.add_users(rows.start, &rest, &mut states)?;
            }
        }
        for (number, name) in selection.numbers.iter().enumerate() {
            let mut digests = self.whole()?.rollups(SectionKind::RollupDigests, name);
            for (day, hours) in days_of(run, &hours) {
                let kept = match rollup {
                    Some(index) => {
                        let at = RollupAt { index, day: day.ordinal };
                        digests.by_hour(at, day.hours.len(), Digest::read)?
                    }
                    None => None,
                };
                let kept = kept.and_then(|(_, hours)| hours);
                for (at, hour, rows) in hours {
                    let digest = match &kept {
                        Some(kept) => kept.get(*at).cloned().unwrap_or_default(),
                        None => self.digest(name, rows)?,
                    };
                    if let Some(slot) =
                        states.get_mut(hour).and_then(|state| state.numbers.get_mut(number))
                    {
                        *slot = digest;
                    }
                }
            }
        }
        states.values_mut().for_each(Hour::settle);
        Ok(states)
    }

    fn add_users(&self, row: u32, hours: &[HourRows], states: &mut HourStates) -> Result<()> {
        let tenant = self.file.tenants().of_row(row);
        let hashes = UserReader::default().hashes(&self.file, tenant, &mut |_| Ok(()))?;
        let mut vector = [0; VECTOR_ROWS];
        for (_, hour, rows) in hours {
            let Some(users) = states.get_mut(hour).and_then(|state| state.users.as_mut()) else {
                continue;
            };
            for piece in vectors(rows.clone()) {
                let (here, _) = vector.split_at_mut(piece.len());
                let block = self.file.user_codes(Self::block_of(piece.start))?;
                block.read_rows(in_block(piece.start), here)?;
                let hash = |code: &i64| hashes.get((*code as usize).wrapping_sub(1)).copied();
                here.iter().filter_map(hash).for_each(|hash| {
                    users.insert(hash);
                });
            }
        }
        Ok(())
    }

    fn digest(&self, name: &str, rows: &Range<u32>) -> Result<Digest> {
        let mut digest = Digest::default();
        let Some(reader) = self.file.numbers(name)? else { return Ok(digest) };
        let mut vector = [0.0; VECTOR_ROWS];
        for piece in vectors(rows.clone()) {
            let (here, _) = vector.split_at_mut(piece.len());
            reader.block(Self::block_of(piece.start))?.read_rows(in_block(piece.start), here)?;
            here.iter().filter(|value| !value.is_nan()).for_each(|&value| {
                digest.insert(value);
            });
        }
        Ok(digest)
    }
}
