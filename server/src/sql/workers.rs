//! Workers that wait, some of them with segments open: whoever has asked is likely to ask again.

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
    memory_pool::MemoryPool,
    places::Places,
    pulse::Pulse,
    starter::{Starter, started},
    template::Settings,
    worker::Worker,
};
use crate::base::memory::has_huge_code;

/// Memory that a worker begins with: the library takes its part of it.
const BASE_BYTES: u64 = 512 << 20;
/// Where there is so much for each, more statements run at once.
const BYTES_OF_EACH: u64 = 1 << 30;
/// Statements that run at once, at most: each computes on two threads.
const AT_ONCE_MAX: u64 = 5;
/// As many run on all but the smallest machines.
const AT_ONCE_MIN: u64 = 3;
/// Where there is less memory than this, one statement runs at a time.
const SMALL: u64 = 1 << 30;

/// Workers that wait with segments open, where the server has at least so much memory, and how long they do: files that
/// were merged away or erased stay on the disk as long.
const AHEAD_MAX: usize = 2;
const AHEAD_MEMORY: u64 = 2 << 30;
const AHEAD_TIME: Duration = Duration::from_secs(30);
/// It takes them about so long.
const OPENING: Duration = Duration::from_millis(300);

/// How many statements run at once, and the bytes of the pool that they share, where the server has so many: all have a quarter of them,
/// which the shares of everything else leave.
fn room(total: u64) -> (usize, u64) {
    let part = total / 4;
    let most = (part / BYTES_OF_EACH).clamp(AT_ONCE_MIN, AT_ONCE_MAX);
    let at_once = if total < SMALL { 1 } else { most };
    (at_once as usize, part.saturating_sub(at_once * BASE_BYTES))
}

/// Workers of this server.
pub struct Workers {
    starter: Starter,
    /// How many wait with segments open, at most.
    ahead_max: usize,
    /// How many wait, once somebody has asked for the first or the server has started.
    idle_count: usize,
    idle: Mutex<Idle>,
    places: Arc<Places>,
    memory: Arc<MemoryPool>,
    pulse: Pulse,
}

/// Workers that wait, and how many are being started.
#[derive(Default)]
struct Idle {
    workers: VecDeque<Worker>,
    starting: usize,
    ahead: Vec<Ahead>,
    /// Namespaces whose segments are being opened.
    opening: Vec<Namespace>,
}

/// A worker that has opened the segments of a namespace, and is of no use for another one.
struct Ahead {
    namespace: Namespace,
    segments: Vec<u8>,
    since: Instant,
    worker: Worker,
}

impl Workers {
    /// Workers that `program` is, of which so many wait, on a server that has so many bytes.
    pub fn new(program: PathBuf, idle_count: usize, total_bytes: u64) -> Self {
        let (at_once, pool_bytes) = room(total_bytes);
        let memory = Arc::new(MemoryPool::new(pool_bytes));
        let places = Arc::new(Places::new(at_once));
        let ahead_max = if total_bytes < AHEAD_MEMORY || idle_count == 0 { 0 } else { AHEAD_MAX };
        let (idle, pulse) = (Mutex::default(), Pulse::default());
        let settings = Settings {
            base_bytes: BASE_BYTES,
            most_bytes: BASE_BYTES + memory.max_of_org(),
            has_huge_code: has_huge_code(total_bytes),
        };
        let starter = Starter::new(program, settings);
        Self { starter, ahead_max, idle_count, idle, places, memory, pulse }
    }

    /// Places among the statements that run.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Memory that statements share.
    pub fn memory(&self) -> &Arc<MemoryPool> {
        &self.memory
    }

    /// Starts workers until enough wait. Starting a process keeps a thread waiting.
    pub fn prepare(&self) {
        let missing = {
            let mut idle = self.idle.lock();
            let before = idle.workers.len();
            idle.workers.retain(Worker::is_there);
            let died = before - idle.workers.len();
            if died > 0 {
                warn!(died, "workers for SQL ended before they were asked");
            }
            let missing = self.idle_count.saturating_sub(idle.workers.len() + idle.starting);
            idle.starting += missing;
            missing
        };
        let _beating = (missing > 0).then(|| self.pulse.beat());
        // Each once: where workers end by themselves, the next statement tries again.
        for _ in 0..missing {
            let started = started(self.starter.start().blocking_recv());
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
            let at = idle.ahead.iter().position(|ahead| ahead.namespace == namespace);
            let ahead = at.map(|at| idle.ahead.swap_remove(at));
            // One with other segments would have to open these all the same.
            let fits = |ahead: &Ahead| ahead.segments == segments && ahead.worker.is_there();
            let waiting = match ahead {
                Some(ahead) if fits(&ahead) => Some(ahead.worker),
                _ => {
                    idle.workers.retain(Worker::is_there);
                    idle.workers.pop_front()
                }
            };
            (waiting, idle.workers.is_empty())
        };
        let beating = self.pulse.beat();
        let mut worker = match waiting {
            Some(worker) => worker,
            None => started(self.starter.start().await)?,
        };
        worker.set_beating(beating);
        // The others can wait until this statement has ended, which needs the processors now.
        if is_last {
            let workers = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || workers.prepare()));
        }
        Ok(worker)
    }

    /// Whether a worker may wait with segments open.
    pub fn opens_ahead(&self) -> bool {
        self.ahead_max > 0
    }

    /// Has a worker open segments of a namespace, for its next statement. It waits for that for a while.
    pub async fn open_ahead(
        self: &Arc<Self>,
        namespace: Namespace,
        directory: &Path,
        segments: Vec<u8>,
    ) {
        let worker = {
            let mut idle = self.idle.lock();
            idle.ahead.retain(|ahead| ahead.worker.is_there());
            // Another one's is left alone until its time is over.
            let others = idle.ahead.iter().filter(|ahead| ahead.namespace != namespace).count();
            let is_known =
                |ahead: &Ahead| ahead.namespace == namespace && ahead.segments == segments;
            if others + idle.opening.len() >= self.ahead_max
                || idle.opening.contains(&namespace)
                || idle.ahead.iter().any(is_known)
            {
                return;
            }
            idle.workers.retain(Worker::is_there);
            let worker = idle.workers.pop_front();
            if worker.is_some() {
                idle.opening.push(namespace);
            }
            worker
        };
        let Some(mut worker) = worker else { return };
        let workers = Arc::clone(self);
        drop(tokio::task::spawn_blocking(move || workers.prepare()));
        let beating = self.pulse.beat();
        let opened = worker.open(directory, &segments).await;
        {
            let mut idle = self.idle.lock();
            idle.opening.retain(|opening| *opening != namespace);
            if let Err(error) = opened {
                return warn!(%error, "a worker for SQL cannot open segments");
            }
            idle.ahead.retain(|ahead| ahead.namespace != namespace);
            let since = Instant::now();
            idle.ahead.push(Ahead { namespace, segments, since, worker });
        }
        tokio::time::sleep(OPENING).await;
        drop(beating);
        tokio::time::sleep(AHEAD_TIME - OPENING).await;
        self.idle.lock().ahead.retain(|ahead| ahead.since.elapsed() < AHEAD_TIME);
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
        assert_eq!(room(8 * GIB), (3, GIB / 2));
        assert_eq!(room(16 * GIB), (4, 2 * GIB));
        assert_eq!(room(64 * GIB), (5, 27 * GIB / 2));
        assert_eq!(room(u64::MAX).0, 5);
    }
}
