//! Threads that queries run on: a short one at the priority of the threads that read and write sockets, a long one
//! below them.
//!
//! A thread may lower its priority, and without a privilege not raise it again. So one that has run a long query ends
//! with it, and the next query that finds no thread starts one, which costs some twenty microseconds.
//!
//! ```text
//! 0 µs      a query takes an idle thread, or starts one, at the niceness of the server
//! 500 µs    at the border of a block its permit calls `lower_priority_and_yield`: niceness 5 from here on
//!           from then on it yields each 200 µs
//! end       a thread of a short query waits for the next one, as one of at most eight; this one ends
//! ```

use std::{
    cell::Cell,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::process::{getpriority_process, setpriority_process};
use tokio::sync::oneshot;

/// Niceness of a thread whose query is a long one: beside a thread of ingest, it has a quarter of a core that both want.
const NICE: i32 = 5;
/// How long such a thread runs before it lets others go first that have become ready: the kernel may leave them waiting
/// for its next tick, up to four milliseconds.
const TURN: Duration = Duration::from_micros(200);
/// Threads that wait for a query, at most.
const IDLE: usize = 8;

/// A query as the thread runs it; its result goes back through a channel inside.
type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// When this thread last yielded, if it has run a long query.
    static YIELDED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lowers the priority of this thread below that of the threads that read and write sockets, for as long as it lives, and
/// lets them run first when they are ready.
pub fn lower_priority_and_yield() {
    let now = Instant::now();
    match YIELDED.get() {
        None => {
            // Where it is not allowed, queries are as quick as before.
            let nice = getpriority_process(None).unwrap_or_default();
            let _ = setpriority_process(None, NICE.max(nice));
        }
        Some(before) if now.duration_since(before) < TURN => return,
        Some(_) => {}
    }
    thread::yield_now();
    YIELDED.set(Some(Instant::now()));
}

/// A pool of threads for queries; at most eight of them are idle.
#[derive(Default)]
pub struct QueryThreads {
    /// Channels of the idle threads; the last one became idle last.
    idle: Mutex<Vec<mpsc::Sender<Job>>>,
}

impl QueryThreads {
    /// Runs work on a thread of the pool. `None` when it panicked, or no thread could be started.
    /// The caller waits without a thread. When it stops waiting, the work goes on to its end, unless it asks whether it must stop.
    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        self.start(Box::new(move || drop(done.send(work()))));
        result.await.ok()
    }

    /// Gives work to the thread that became idle last, whose caches are warm, or to a new thread.
    fn start(self: &Arc<Self>, work: Job) {
        let idle = self.idle.lock().pop();
        // An idle thread takes any work that it is sent.
        let work = match idle {
            Some(idle) => match idle.send(work) {
                Ok(()) => return,
                Err(mpsc::SendError(work)) => work,
            },
            None => work,
        };
        let threads = Arc::clone(self);
        let run = move || threads.serve(work);
        if let Err(error) = thread::Builder::new().name("query".to_owned()).spawn(run) {
            tracing::error!(%error, "no thread for a query");
        }
    }

    /// Runs work, and then further work, until the priority of this thread is lowered or enough
    /// threads are idle.
    fn serve(&self, work: Job) {
        work();
        let (more, wait) = mpsc::channel();
        loop {
            if YIELDED.get().is_some() {
                return;
            }
            {
                let mut idle = self.idle.lock();
                if idle.len() >= IDLE {
                    return;
                }
                idle.push(more.clone());
            }
            let Ok(work) = wait.recv() else { return };
            work();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_query_takes_its_thread_with_it() {
        let threads = Arc::new(QueryThreads::default());
        let of = || thread::current().id();
        let first = threads.run(of).await.unwrap();
        // It is there again in a moment, and takes the next work.
        while threads.idle.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        let nice = |lower: bool| {
            move || {
                if lower {
                    lower_priority_and_yield();
                }
                (thread::current().id(), getpriority_process(None).unwrap())
            }
        };
        let before = getpriority_process(None).unwrap();
        assert_eq!(threads.run(nice(true)).await, Some((first, NICE.max(before))));
        let (next, priority) = threads.run(nice(false)).await.unwrap();
        assert!(next != first && priority == before);
    }

    #[tokio::test]
    async fn a_panic_fails_one_query() {
        let threads = Arc::new(QueryThreads::default());
        assert_eq!(threads.run(|| -> u32 { panic!("as a test wants") }).await, None);
        assert_eq!(threads.run(|| 5).await, Some(5));
    }
}
