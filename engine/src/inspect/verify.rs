//! Checking a data directory or a backup: every checksum, and every reference between its parts.
//!
//! ```text
//! $ inlay-inspect --data-dir broken verify
//! …
//! Damage:
//!   seg/2025-11-04/019a….seg: offset 3840: checksum mismatch in section 2
//!
//! other problems      SUPER.a: …                                       twice damaged, so not just being written
//!                     keyspace key of the flushed LSN: is ahead of the log
//!                     seg/…: 12 event ids are in no id run             such an event would count twice if it were sent again
//!                     ids/…: the filter's checksum does not match      the start builds it again; still a byte has changed
//!                     ckpt/…, wal/…: differs from the backup's list    in a backup alone
//! ```
//!
//! A running server replaces files under a verification: problems of files that the state no longer names are dropped at the end.

use std::collections::BTreeSet;

use super::Inspection;
use crate::{
    base::hash::{self, HashSet128},
    error::{Error, IoContext, Result},
    ids::{self, IdRun},
    keyspace::checkpoint,
    segment::{self, Segment},
    store::{BackupList, FLUSHED_KEY, LIST, flushed_lsn, id_hashes, measure, rows_of, writes_of},
    wal::RecordKind,
};

/// A damaged file, or a reference that does not hold: printed as `place: detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File, and offset where known.
    pub place: String,
    /// The invariant that does not hold.
    pub detail: String,
}

/// Numbers of checked objects, and all problems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Number of live segments, damaged ones included.
    pub segments: u64,
    /// Those among them whose rollups were not computed again: a build of another minor version chose them, and would have to verify
    /// them.
    pub of_other_minor: u64,
    /// Rows in them.
    pub rows: u64,
    /// Live id runs.
    pub id_runs: u64,
    /// Ids in them.
    pub ids: u64,
    /// Number of checkpoints that the superblock names, damaged ones included.
    pub checkpoints: u64,
    /// Records of the log.
    pub records: u64,
    /// Files of the backup's list, where it is a backup.
    pub backup_files: Option<u64>,
    /// Files that nothing names: leftovers that the next start removes.
    pub unnamed: Vec<String>,
    /// All problems, in the order in which they were found.
    pub problems: Vec<Problem>,
}

impl VerifyReport {
    fn add(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), detail: detail.into() });
    }

    /// The value, or `None` with the error noted as a problem of the place that it names, else of `place`.
    fn note<T>(&mut self, place: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Error::Corrupt { place, detail }) => {
                self.add(place, detail);
                None
            }
            Err(error) => {
                self.add(place, error.to_string());
                None
            }
        }
    }
}

impl Inspection {
    /// Checks everything. `report` is called with the name of each file before it is read.
    ///
    /// Never fails: a file that cannot be read is a problem, and the rest is checked. Takes a read of all files, and memory for the ids of
    /// one segment and those in the log.
    pub fn verify(&self, report: &mut dyn FnMut(&str)) -> VerifyReport {
        let mut found = VerifyReport::default();
        self.verify_superblock(&mut found);
        self.verify_list(report, &mut found);
        self.verify_checkpoints(report, &mut found);
        self.verify_log(&mut found);
        let runs = self.verify_runs(report, &mut found);
        self.verify_segments(&runs, report, &mut found);
        self.list_unnamed(&mut found);
        self.forget_replaced(&mut found);
        found
    }

    /// A running server merges and deletes: a file that it no longer names is gone, not damaged.
    fn forget_replaced(&self, found: &mut VerifyReport) {
        if found.problems.is_empty() && found.unnamed.is_empty() {
            return;
        }
        // The state as of now: files that it does not name were replaced while they were read.
        let Ok(now) = Self::read(&self.vfs, &self.log) else { return };
        let named = now.named();
        let is_file = |place: &str| {
            [segment::DIRECTORY, ids::DIRECTORY, checkpoint::DIRECTORY]
                .iter()
                .any(|directory| place.starts_with(&format!("{directory}/")))
        };
        found.problems.retain(|one| !is_file(&one.place) || named.contains(&one.place));
        let vfs = &self.vfs;
        found.unnamed.retain(|path| !named.contains(path) && vfs.open(path).is_ok());
    }

    /// Every segment, id run and checkpoint that the state names, by path.
    pub fn named(&self) -> BTreeSet<String> {
        let mut named: BTreeSet<String> = BTreeSet::new();
        named.extend(self.segment_metas().unwrap_or_default().iter().map(|meta| meta.path()));
        named.extend(self.run_metas().unwrap_or_default().iter().map(|meta| meta.path()));
        named.extend(self.checkpoints().into_iter().map(|(lsn, _)| checkpoint::path(lsn)));
        named
    }

    /// A backup has a list, and each file is as it says.
    fn verify_list(&self, report: &mut dyn FnMut(&str), found: &mut VerifyReport) {
        let exists = self.vfs.list("").is_ok_and(|names| names.iter().any(|name| name == LIST));
        if !exists {
            return;
        }
        report(LIST);
        let Some(list) = found.note(LIST, BackupList::load(&*self.vfs, "")) else { return };
        found.backup_files = Some(list.files.len() as u64);
        if list.db != self.db() {
            found.add(LIST, "is of another database");
        }
        for file in &list.files {
            report(&file.path);
            let measured = self
                .vfs
                .open(&file.path)
                .at(&file.path)
                .and_then(|open| measure(&*open, |_| Ok(())));
            if let Some(measured) = found.note(&file.path, measured)
                && measured != (file.len, file.crc)
            {
                found.add(&file.path, "differs from the backup's list");
            }
        }
    }

    /// A running server may just be writing a slot, so only a slot that fails twice is damaged.
    fn verify_superblock(&self, found: &mut VerifyReport) {
        if self.log.check_superblock().is_empty() {
            return;
        }
        for damage in self.log.check_superblock() {
            found.note("superblock", Err::<(), _>(damage));
        }
    }

    fn verify_checkpoints(&self, report: &mut dyn FnMut(&str), found: &mut VerifyReport) {
        for (lsn, _) in self.checkpoints() {
            let place = checkpoint::path(lsn);
            report(&place);
            found.checkpoints += 1;
            found.note(&place, checkpoint::read(&*self.vfs, self.superblock.db, lsn));
        }
    }

    /// The log was read on opening; here every record is decoded.
    fn verify_log(&self, found: &mut VerifyReport) {
        for record in &self.records {
            found.records += 1;
            let place = format!("record {}", record.lsn);
            found.note(&place, writes_of(record));
            if record.kind == RecordKind::Events {
                found.note(&place, rows_of(record, self.superblock.hash_seed));
            }
        }
        if flushed_lsn(&self.tree).is_ok_and(|flushed| flushed > self.lsn()) {
            found.add(format!("{FLUSHED_KEY:?}"), "is ahead of the log");
        }
    }

    /// Every live id run; gives those that are whole, for the look-up of event ids.
    fn verify_runs(&self, report: &mut dyn FnMut(&str), found: &mut VerifyReport) -> Vec<IdRun> {
        let mut runs = Vec::new();
        for meta in found.note("keyspace", self.run_metas()).unwrap_or_default() {
            let place = meta.path();
            report(&place);
            found.id_runs += 1;
            found.ids += meta.count;
            let Some(run) = found.note(&place, self.open_run(meta)) else { continue };
            let is_whole = found.note(&place, run.verify()).is_some();
            // The list answers for a damaged filter, so such a run still says which ids are known.
            found.note(&place, run.check_filter());
            if is_whole {
                runs.push(run);
            }
        }
        runs
    }

    /// Every live segment. Its event ids are looked up only if all runs are whole: else the ids of a damaged run would all be missing.
    fn verify_segments(
        &self,
        runs: &[IdRun],
        report: &mut dyn FnMut(&str),
        found: &mut VerifyReport,
    ) {
        let runs_are_whole = runs.len() as u64 == found.id_runs;
        let recent = self.recent_ids();
        for meta in found.note("keyspace", self.segment_metas()).unwrap_or_default() {
            let place = meta.path();
            report(&place);
            found.segments += 1;
            found.rows += u64::from(meta.rows);
            let Some(segment) = found.note(&place, self.open_segment(meta)) else { continue };
            if found.note(&place, segment.verify()).is_none() {
                continue;
            }
            found.of_other_minor += u64::from(!segment.is_of_this_minor());
            if runs_are_whole
                && let Some(unknown) = found.note(&place, self.unknown_ids(&segment, runs, &recent))
                && unknown > 0
            {
                found.add(&place, format!("{unknown} event ids are in no id run"));
            }
        }
    }

    /// Hashes of event ids of rows that no segment holds yet.
    fn recent_ids(&self) -> HashSet128 {
        let mut known = HashSet128::default();
        let mut scratch = Vec::new();
        let seed = self.superblock.hash_seed;
        for record in self.records.iter().filter(|record| record.kind == RecordKind::Events) {
            let Ok(rows) = rows_of(record, seed) else { continue };
            for row in 0..rows.len() {
                if let Some(id) = rows.event_ids.value(row) {
                    let key = rows.series_of(row);
                    let tenant = key.tenant.as_bytes();
                    known.insert(hash::event_id(seed, key.namespace.0, tenant, id, &mut scratch));
                }
            }
        }
        known
    }

    /// How many event ids of a segment the dedup index would not know: neither an id run nor the log has them.
    fn unknown_ids(&self, segment: &Segment, runs: &[IdRun], recent: &HashSet128) -> Result<usize> {
        let mut hashes = HashSet128::default();
        let all = 0..segment.meta().rows;
        let seed = self.superblock.hash_seed;
        id_hashes(segment, std::slice::from_ref(&all), seed, &mut hashes)?;
        let mut unknown = 0;
        for hash in hashes {
            let mut is_known = recent.contains(&hash);
            for run in runs {
                is_known = is_known || run.contains(hash)?;
            }
            unknown += usize::from(!is_known);
        }
        Ok(unknown)
    }

    /// Files below `seg/` and `ids/` that nothing names: left by a crash, or just made by a running server.
    fn list_unnamed(&self, found: &mut VerifyReport) {
        let named = self.named();
        for parent in [segment::DIRECTORY, ids::DIRECTORY] {
            for directory in self.vfs.list_dirs(parent).unwrap_or_default() {
                let directory = format!("{parent}/{directory}");
                for name in self.vfs.list(&directory).unwrap_or_default() {
                    let path = format!("{directory}/{name}");
                    if !named.contains(&path) {
                        found.unnamed.push(path);
                    }
                }
            }
        }
    }
}
