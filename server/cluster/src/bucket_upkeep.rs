//! What processes do about the bucket, and their copies, from time to time.
//!
//! Objects of files that were merged away, and of old checkpoints, are deleted after half an hour to an hour: a database that fails over and lacks its newest rows names
//! them again, and everything before these rows is still there. What the bucket has lost of its own accord is uploaded again from the copy on this disk. And in any
//! process a copy that is damaged is fetched again.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use inlay_engine::{
    Engine, Vfs as _,
    remote::{ObjectVfs, Reconciled},
};
use parking_lot::Mutex;
use tracing::{error, info, warn};

/// How often damaged copies are replaced, at most: where the bucket has no better one, that does not help.
const REPLACE_EVERY: Duration = Duration::from_secs(60);
/// How often. A file's object goes with the second time after the file.
const EVERY: Duration = Duration::from_secs(1_800);

/// How soon again where that failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// An object that nothing has named for so long is of a process that ended before it could be named.
const ORPHAN_AFTER: Duration = Duration::from_secs(86_400);

/// How long a disk may take no writes while this process leads.
const DISK_TIME_MAX: Duration = Duration::from_secs(10);

/// When the bucket was looked after, and what was missing.
#[derive(Default)]
pub struct BucketUpkeep {
    next: Mutex<Option<Instant>>,
    /// Objects that nothing named when that was looked at last, and since when.
    unnamed: Mutex<BTreeMap<String, Instant>>,
    lost: AtomicUsize,
    replaced: Mutex<Option<Instant>>,
    disk_failed: Mutex<Option<Instant>>,
}

impl BucketUpkeep {
    /// Whether it is time to: at the beginning, and then every half an hour, or soon where it failed. The next time begins with the answer.
    pub fn is_due(&self, now: Instant) -> bool {
        let mut next = self.next.lock();
        let is_due = next.is_none_or(|next| now > next);
        if is_due {
            *next = Some(now + RETRY_AFTER);
        }
        is_due
    }

    /// Whether a copy on this disk is damaged, and none was replaced just now. The next time begins with the answer.
    pub fn must_replace(&self, engine: &Engine, now: Instant) -> bool {
        let mut replaced = self.replaced.lock();
        let is_due = replaced.is_none_or(|at| now - at > REPLACE_EVERY) && engine.has_damage();
        if is_due {
            *replaced = Some(now);
        }
        is_due
    }

    /// Whether the disk of this process has taken no writes for so long that another one should lead. It is probed where the store is in trouble.
    pub fn disk_has_failed(&self, files: &ObjectVfs, engine: &Engine, now: Instant) -> bool {
        let failure = engine.trouble().and_then(|_| files.probe_disk().err());
        let mut since = self.disk_failed.lock();
        let Some(failure) = failure else {
            *since = None;
            return false;
        };
        let is_over = now - *since.get_or_insert(now) > DISK_TIME_MAX;
        if is_over {
            error!(error = %failure, "the data directory takes no writes; this process ends, so that another one leads");
        }
        is_over
    }

    /// Fetches damaged copies anew.
    pub fn replace(engine: &Engine) {
        match engine.replace_damaged() {
            Ok(count) => {
                warn!(count, "copies of files on this disk were damaged, and are fetched anew")
            }
            Err(failed) => {
                error!(error = %failed, "a copy of a file is damaged and could not be fetched anew")
            }
        }
    }

    /// Files that are in the bucket no more, and not on this disk either.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Deletes what was removed before the last time, uploads what the bucket has lost, and removes what nothing has named for a day.
    pub fn run(
        &self,
        files: &ObjectVfs,
        engine: &Engine,
        may_change: &dyn Fn() -> bool,
        now: Instant,
    ) {
        if !may_change() {
            return;
        }
        let is_whole = |path: &str| engine.is_whole(path);
        let done = files.sweep().and_then(|swept| {
            let compared = files.reconcile(&engine.files(), &is_whole, may_change)?;
            Ok((swept, compared))
        });
        let (swept, Reconciled { mut lost, unnamed }) = match done {
            Ok(done) => done,
            Err(failed) => {
                return warn!(error = %failed, "the bucket could not be looked after; tried again soon");
            }
        };
        // What was merged away meanwhile is not missing, and what was uploaded meanwhile may be named by now.
        let named = engine.files();
        lost.retain(|path| named.contains(path));
        for path in &lost {
            error!(path, "the bucket has lost an object, and there is no copy here that is whole");
        }
        // What a checkpoint says is in memory.
        if lost.iter().any(|path| path.starts_with("ckpt/")) {
            match engine.replace_checkpoints() {
                Ok(()) => {
                    warn!("checkpoints that were lost are written anew");
                    lost.retain(|path| !path.starts_with("ckpt/"));
                }
                Err(failed) => warn!(error = %failed, "checkpoints could not be written anew"),
            }
        }
        if lost.is_empty() {
            *self.next.lock() = Some(now + EVERY);
        }
        self.lost.store(lost.len(), Ordering::Relaxed);
        let orphans = self.orphans(unnamed.into_iter().filter(|path| !named.contains(path)), now);
        if may_change() {
            // Deleted with the second time from now, as all that is removed.
            orphans.iter().for_each(|path| drop(files.remove(path)));
        }
        info!(swept, orphans = orphans.len(), "the bucket was looked after");
    }

    /// Those of the paths that were there a day ago as well: of a process that ended in between.
    fn orphans(&self, unnamed: impl Iterator<Item = String>, now: Instant) -> Vec<String> {
        let mut since = self.unnamed.lock();
        let before = std::mem::take(&mut *since);
        since.extend(unnamed.map(|path| {
            let first = before.get(&path).copied().unwrap_or(now);
            (path, first)
        }));
        let old = since.iter().filter(|(_, first)| now - **first > ORPHAN_AFTER);
        old.map(|(path, _)| path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use inlay_engine::{
        Error, Event, Namespace, Options, SimVfs,
        remote::{Objects as _, SimLog, SimObjects},
    };

    use super::*;

    fn store() -> (SimVfs, SimObjects, Arc<ObjectVfs>, Engine) {
        let (disk, objects) = (SimVfs::new(), SimObjects::default());
        let (below, stored) = (Arc::new(disk.clone()), Arc::new(objects.clone()));
        let files = Arc::new(ObjectVfs::new(below, stored, &["seg", "ids", "ckpt"]));
        let (log, options) =
            (Arc::new(SimLog::default()), Options { background: false, ..Options::default() });
        let engine = Engine::open_with_log(Arc::clone(&files) as _, log, options).unwrap();
        (disk, objects, files, engine)
    }

    fn send(engine: &Engine, id: &str) -> Result<(), Error> {
        let mut batch = engine.batch(Namespace(1));
        let (tenant, name, timestamp_ms) = ("acme", "call", 1_790_000_000_000);
        let event = Event { tenant, name, timestamp_ms, event_id: Some(id), user_id: None };
        batch.push(&event, &[], &[])?;
        engine.ingest(batch, |_, _| Ok::<_, Error>(()))?;
        engine.flush()
    }

    #[test]
    fn what_the_bucket_has_lost_is_there_again_and_what_nothing_names_goes_after_a_day() {
        let (disk, objects, files, engine) = store();
        for id in ["1", "2", "3"] {
            send(&engine, id).unwrap();
        }
        let (upkeep, now) = (BucketUpkeep::default(), Instant::now());
        let run = |now| upkeep.run(&files, &engine, &|| true, now);
        assert!(upkeep.is_due(now) && !upkeep.is_due(now));
        for name in objects.names() {
            objects.remove(&name).unwrap();
        }
        // Copies of checkpoints are read at a start alone, and this disk is another one since.
        for path in disk.files().keys().filter(|path| path.starts_with("ckpt/")) {
            disk.set_file(path, None);
        }
        run(now);
        let there = objects.names();
        assert!(engine.files().iter().all(|path| there.contains(path)), "{there:?}");
        assert_eq!(upkeep.lost(), 0);
        // One of which there is no copy either is counted, and looked for again soon.
        let segment = engine.files().into_iter().find(|path| path.starts_with("seg/")).unwrap();
        objects.remove(&segment).unwrap();
        disk.set_file(&segment, None);
        assert!(!upkeep.is_due(now + RETRY_AFTER * 2), "all was well");
        assert!(upkeep.is_due(now + EVERY * 2));
        run(now + EVERY * 2);
        assert_eq!(upkeep.lost(), 1);
        assert!(upkeep.is_due(now + EVERY * 2 + RETRY_AFTER * 2));

        let orphan = "seg/l0/019a60c3-4000-792b-b293-000000000000.seg";
        disk.set_file("tmp/orphan", Some(b"rows".to_vec()));
        objects.put(orphan, &*disk.open("tmp/orphan").unwrap()).unwrap();
        let is_there = || objects.names().contains(&orphan.to_owned());
        let later = now + EVERY * 3;
        run(later);
        run(later + ORPHAN_AFTER / 2);
        run(later + ORPHAN_AFTER / 2 + EVERY);
        assert!(is_there(), "it may be named yet");
        for rounds in 1..4 {
            run(later + ORPHAN_AFTER + EVERY * rounds);
        }
        assert!(!is_there());
    }

    #[test]
    fn a_disk_that_takes_no_writes_for_ten_seconds_has_failed() {
        let (disk, _, files, engine) = store();
        send(&engine, "1").unwrap();
        let (upkeep, now) = (BucketUpkeep::default(), Instant::now());
        let has_failed =
            |seconds| upkeep.disk_has_failed(&files, &engine, now + Duration::from_secs(seconds));
        assert!(!has_failed(0));
        disk.set_full_for(Some(""));
        assert!(send(&engine, "2").is_err());
        assert!(!has_failed(1) && !has_failed(10));
        assert!(has_failed(12));
        disk.set_full_for(None);
        assert!(!has_failed(13), "it has room again");
        disk.set_full_for(Some(""));
        assert!(!has_failed(30), "ten seconds from now");
    }

    #[test]
    fn a_process_that_does_not_lead_any_more_changes_nothing() {
        let (_, objects, files, engine) = store();
        send(&engine, "1").unwrap();
        let before = objects.names();
        objects.remove(&before[0]).unwrap();
        BucketUpkeep::default().run(&files, &engine, &|| false, Instant::now());
        assert_eq!(objects.names(), before[1..]);
    }
}
