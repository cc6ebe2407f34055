//! The pool of idle workers, some of them with segments open: an organisation that has just asked is likely to ask again.
//!
//! ```text
//! start               two idle workers
//! acme asks           takes one; the pool is refilled when none is left, else when the statement has ended
//! acme is answered    an idle worker opens the segments of acme, and waits for 30 s
//! acme asks again     takes that one, if the list of segments is the same: nothing to open
//! globex asks         takes an idle one
//! segments change     a worker with others open is of no use any more, and ends within a second; where somebody asks for the receipt of an erasure, before that is answered
//! 30 s later          the prepared worker ends
//! ```

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use inlay_engine::Namespace;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use super::{
    admission::StatementAdmission,
    memory_pool::MemoryPool,
    preemption_ticker::PreemptionTicker,
    spawner::{WorkerSpawner, started},
    template::TemplateSettings,
    worker::Worker,
};
use crate::base::memory::{Shares, has_huge_code};

/// Memory that a worker begins with, for the library, its plan and small results.
const BASE_BYTES: u64 = 512 << 20;
/// Where there is so much for each, more statements run at once.
const BYTES_OF_EACH: u64 = 1 << 30;
/// Statements that run at once, at most: each computes on two threads.
const AT_ONCE_MAX: u64 = 5;
/// As many run on all but the smallest machines.
const AT_ONCE_MIN: u64 = 3;
/// Where there is less memory than this, one statement runs at a time.
const SMALL: u64 = 1 << 30;

/// Workers that wait with segments open, where the server has at least so much memory, and how long they do.
const AHEAD_MAX: usize = 2;
const AHEAD_MEMORY: u64 = 2 << 30;
const AHEAD_TIME: Duration = Duration::from_secs(30);
/// Time in which a worker has opened its segments, as a rule: for so long the ticker goes on.
const OPENING: Duration = Duration::from_millis(300);

/// How many statements run at once, and the bytes of the pool that they share, where the server has so many bytes.
///
/// Statements have a quarter of them, which the shares of everything else leave. On large machines these shares are bounded, and statements
/// have what is left, up to a half; an eighth is for what nobody counts.
///
/// ```text
/// 512 MiB   one statement, in the 512 MiB that its process begins with
/// 12 GiB    three, which are granted 3.8 GiB beyond that together
/// 64 GiB    five, 29.5 GiB
/// ```
fn room(total: u64) -> (usize, u64) {
    let most = (total / 4 / BYTES_OF_EACH).clamp(AT_ONCE_MIN, AT_ONCE_MAX);
    let at_once = if total < SMALL { 1 } else { most };
    let left = (total - total / 8).saturating_sub(Shares::of(total).sum()).min(total / 2);
    let part = left.max(total / 4);
    (at_once as usize, part.saturating_sub(at_once * BASE_BYTES))
}

/// The workers of this server.
pub struct WorkerPool {
    spawner: WorkerSpawner,
    /// Workers with segments open, at most: 2, or 0 on small servers.
    ahead_max: usize,
    /// Idle workers that [`WorkerPool::refill`] starts: `INLAY_SQL_IDLE_WORKERS`.
    idle_count: usize,
    idle: Mutex<Idle>,
    admission: Arc<StatementAdmission>,
    memory: Arc<MemoryPool>,
    preemption_ticker: PreemptionTicker,
}

/// Idle workers, and how many are being started.
///
/// `starting` keeps two refills at once from starting twice as many.
#[derive(Default)]
struct Idle {
    workers: VecDeque<Worker>,
    starting: usize,
    prepared: Vec<PreparedWorker>,
    /// Namespaces whose segments are being opened.
    opening: Vec<Namespace>,
}

/// A worker that has opened the segments of a namespace, and is of no use for another one.
struct PreparedWorker {
    namespace: Namespace,
    segments: Vec<u8>,
    since: Instant,
    worker: Worker,
}

impl WorkerPool {
    /// A pool of processes of `program`, of which so many are idle, on a server that has so many bytes.
    pub fn new(program: PathBuf, idle_count: usize, total_bytes: u64) -> Self {
        let (at_once, pool_bytes) = room(total_bytes);
        let memory = Arc::new(MemoryPool::new(pool_bytes));
        let admission = Arc::new(StatementAdmission::new(at_once));
        let ahead_max = if total_bytes < AHEAD_MEMORY || idle_count == 0 { 0 } else { AHEAD_MAX };
        let (idle, preemption_ticker) = (Mutex::default(), PreemptionTicker::default());
        let settings = TemplateSettings {
            base_bytes: BASE_BYTES,
            most_bytes: BASE_BYTES + memory.max_of_org(),
            has_huge_code: has_huge_code(total_bytes),
        };
        let spawner = WorkerSpawner::new(program, settings);
        Self { spawner, ahead_max, idle_count, idle, admission, memory, preemption_ticker }
    }

    /// Limits on running statements.
    pub fn admission(&self) -> &Arc<StatementAdmission> {
        &self.admission
    }

    /// Memory that statements share.
    pub fn memory(&self) -> &Arc<MemoryPool> {
        &self.memory
    }

    /// Starts workers until enough wait. Starting a process keeps a thread waiting.
    pub fn refill(&self) {
        let missing = {
            let mut idle = self.idle.lock();
            let before = idle.workers.len();
            idle.workers.retain(Worker::is_alive);
            let died = before - idle.workers.len();
            if died > 0 {
                warn!(died, "workers for SQL ended before they were asked");
            }
            let missing = self.idle_count.saturating_sub(idle.workers.len() + idle.starting);
            idle.starting += missing;
            missing
        };
        let _ticker = (missing > 0).then(|| self.preemption_ticker.start());
        // Each once: where workers end by themselves, the next statement tries again.
        for _ in 0..missing {
            let started = started(self.spawner.start().blocking_recv());
            let mut idle = self.idle.lock();
            idle.starting -= 1;
            match started {
                Ok(worker) => idle.workers.push_back(worker),
                Err(error) => warn!(%error, "cannot start a worker for SQL"),
            }
        }
    }

    /// A worker that waits, or a new one: the one that has opened these segments of the namespace if there is one.
    ///
    /// Errors: when none can be started.
    pub async fn take(
        self: &Arc<Self>,
        namespace: Namespace,
        segments: &[u8],
    ) -> io::Result<Worker> {
        let (waiting, is_last) = {
            let mut idle = self.idle.lock();
            let at = idle.prepared.iter().position(|prepared| prepared.namespace == namespace);
            let prepared = at.map(|at| idle.prepared.swap_remove(at));
            // One with other segments would have to open these all the same.
            let fits = |prepared: &PreparedWorker| {
                prepared.segments == segments && prepared.worker.is_alive()
            };
            let waiting = match prepared {
                Some(prepared) if fits(&prepared) => Some(prepared.worker),
                _ => {
                    idle.workers.retain(Worker::is_alive);
                    idle.workers.pop_front()
                }
            };
            (waiting, idle.workers.is_empty())
        };
        let ticker = self.preemption_ticker.start();
        let mut worker = match waiting {
            Some(worker) => worker,
            None => started(self.spawner.start().await)?,
        };
        worker.set_ticker(ticker);
        // The others can wait until this statement has ended, which needs the processors now.
        if is_last {
            let workers = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || workers.refill()));
        }
        Ok(worker)
    }

    /// Whether a worker may wait with segments open.
    pub fn prepares_workers(&self) -> bool {
        self.ahead_max > 0
    }

    /// Ends workers that wait with segments open which are not those that a namespace has now: they could read what was erased. Returns when they
    /// have ended.
    pub async fn retire(&self, now: impl Fn(Namespace) -> Vec<u8>) {
        let stale = {
            let mut idle = self.idle.lock();
            let is_stale =
                |prepared: &mut PreparedWorker| prepared.segments != now(prepared.namespace);
            idle.prepared.extract_if(.., is_stale).collect::<Vec<_>>()
        };
        for prepared in stale {
            prepared.worker.end().await;
        }
    }

    /// Has a worker open segments of a namespace, for its next statement. It waits for that for a while, unless `now` gives others when it
    /// has opened them.
    pub async fn prepare_for(
        self: &Arc<Self>,
        namespace: Namespace,
        directory: &Path,
        segments: Vec<u8>,
        now: impl Fn(Namespace) -> Vec<u8>,
    ) {
        let worker = {
            let mut idle = self.idle.lock();
            idle.prepared.retain(|prepared| prepared.worker.is_alive());
            // Another one's is left alone until its time is over.
            let others =
                idle.prepared.iter().filter(|prepared| prepared.namespace != namespace).count();
            let is_known = |prepared: &PreparedWorker| {
                prepared.namespace == namespace && prepared.segments == segments
            };
            if others + idle.opening.len() >= self.ahead_max
                || idle.opening.contains(&namespace)
                || idle.prepared.iter().any(is_known)
            {
                return;
            }
            idle.workers.retain(Worker::is_alive);
            idle.opening.push(namespace);
            idle.workers.pop_front()
        };
        let workers = Arc::clone(self);
        drop(tokio::task::spawn_blocking(move || workers.refill()));
        let ticker = self.preemption_ticker.start();
        let opened = self.opened(worker, directory, &segments).await;
        {
            let mut idle = self.idle.lock();
            idle.opening.retain(|opening| *opening != namespace);
            let worker = match opened {
                Ok(worker) => worker,
                Err(error) => return warn!(%error, "a worker for SQL cannot open segments"),
            };
            // With the lock, so that none is missed by `retire`.
            if segments != now(namespace) {
                return;
            }
            idle.prepared.retain(|prepared| prepared.namespace != namespace);
            let since = Instant::now();
            idle.prepared.push(PreparedWorker { namespace, segments, since, worker });
        }
        tokio::time::sleep(OPENING).await;
        drop(ticker);
        tokio::time::sleep(AHEAD_TIME - OPENING).await;
        self.idle.lock().prepared.retain(|prepared| prepared.since.elapsed() < AHEAD_TIME);
    }

    /// This idle worker, or a new one where statements that ran at once left none, with segments open.
    async fn opened(
        &self,
        idle: Option<Worker>,
        directory: &Path,
        segments: &[u8],
    ) -> io::Result<Worker> {
        let mut worker = match idle {
            Some(worker) => worker,
            None => started(self.spawner.start().await)?,
        };
        worker.open(directory, segments).await?;
        Ok(worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_room_on_machines_of_all_sizes() {
        const GIB: u64 = 1 << 30;
        assert_eq!(room(0), (1, 0));
        assert_eq!(room(GIB / 2), (1, 0));
        assert_eq!(room(GIB), (3, 0));
        // Little by little: no machine has less for statements than a smaller one, and all shares together fit.
        let mut before = 0;
        for gib in 1..200 {
            let (at_once, pool) = room(gib * GIB);
            let all = pool + at_once as u64 * BASE_BYTES;
            assert!(gib < 8 || all >= before.max(gib * GIB / 4), "{gib} GiB: {all}");
            assert!(gib < 8 || all + Shares::of(gib * GIB).sum() <= gib * GIB, "{gib} GiB: {all}");
            assert!(gib < 8 || all <= gib * GIB / 2, "{gib} GiB: {all}");
            before = all;
        }
        assert_eq!(room(4 * GIB), (3, 0));
        assert_eq!(room(12 * GIB).1 >> 20, 3_942);
        assert_eq!(room(64 * GIB), (5, 59 * GIB / 2));
        assert_eq!(room(u64::MAX).0, 5);
    }
}
