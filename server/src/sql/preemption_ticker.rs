//! Wakes a thread on each processor every millisecond while workers compute, so that the kernel looks for a more urgent thread.
//!
//! Workers are less urgent than the server. A kernel that is built for throughput may nevertheless let a thread of the
//! server that has something to do wait until its next tick, up to 4 ms, when workers keep all processors busy: that is
//! several times what a quick answer takes. A thread on each processor that sleeps and wakes has it look more often. It
//! costs some microseconds a millisecond, and nothing while no worker computes.
//!
//! ```text
//! a worker starts       holders 1    a thread on each processor sleeps 1 ms, wakes, sleeps, …
//! another starts        holders 2    the same threads
//! both have ended       holders 0    50 ms more, then they wait for the next worker
//! ```

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tracing::warn;

/// Time for which each thread sleeps between two wake-ups.
const BEAT: Duration = Duration::from_millis(1);
/// A worker that has been started gets ready without anybody waiting for it, and one that has ended is taken down.
const LINGER: Duration = Duration::from_millis(50);
/// Where there are more processors, the workers do not keep all of them busy.
/// Statements compute on two threads each, and five run at once at most.
const PROCESSORS_MAX: usize = 10;

/// The threads, which are started when they are needed first and end with this.
#[derive(Default)]
pub struct PreemptionTicker {
    shared: Arc<Shared>,
}

/// As long as somebody holds it, the threads wake up.
///
/// Held by a worker that computes, and while workers are started.
pub struct TickerGuard {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    began: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_threads: bool,
    is_over: bool,
    holders: usize,
    /// End of the time after the last holder, for which the threads go on.
    until: Option<Instant>,
    /// Wake-ups of all threads so far; tests read it.
    ticks: u64,
}

impl State {
    /// Whether the threads are to wake up at `now`.
    fn ticks(&self, now: Instant) -> bool {
        self.holders > 0 || self.until.is_some_and(|until| now < until)
    }
}

impl PreemptionTicker {
    /// Wakes the threads from now on, until the guard is dropped and 50 ms longer. The first call starts them.
    pub fn start(&self) -> TickerGuard {
        let mut state = self.shared.state.lock();
        state.holders += 1;
        if !state.has_threads {
            state.has_threads = true;
            start(&self.shared);
        }
        self.shared.began.notify_all();
        TickerGuard { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for PreemptionTicker {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.began.notify_all();
    }
}

impl Drop for TickerGuard {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.holders -= 1;
        state.until = Some(Instant::now() + LINGER);
    }
}

/// A thread on each processor that this process may use. Where there are none, queries may wait longer for a processor, and nothing else changes.
fn start(shared: &Arc<Shared>) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    if allowed.count() as usize > PROCESSORS_MAX {
        return;
    }
    for processor in processors {
        let shared = Arc::clone(shared);
        let ticker = move || {
            let mut only = CpuSet::new();
            only.set(processor);
            if sched_setaffinity(None, &only).is_ok() {
                shared.run();
            }
        };
        if let Err(error) = thread::Builder::new().name("inlay-ticker".to_owned()).spawn(ticker) {
            warn!(%error, "cannot start a thread beside the workers for SQL");
        }
    }
}

impl Shared {
    /// The loop of one thread: waits while nobody holds a guard, else sleeps a millisecond at a time.
    fn run(&self) {
        loop {
            {
                let mut state = self.state.lock();
                while !state.is_over && !state.ticks(Instant::now()) {
                    self.began.wait(&mut state);
                }
                if state.is_over {
                    return;
                }
                state.ticks += 1;
            }
            thread::sleep(BEAT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ticks_while_somebody_holds_it_and_a_little_longer() {
        let preemption_ticker = PreemptionTicker::default();
        let now = Instant::now();
        assert!(!preemption_ticker.shared.state.lock().ticks(now));
        let (one, two) = (preemption_ticker.start(), preemption_ticker.start());
        drop(one);
        assert!(
            preemption_ticker.shared.state.lock().ticks(now + 10 * LINGER),
            "the other one is held"
        );
        drop(two);
        let after = Instant::now();
        assert!(preemption_ticker.shared.state.lock().ticks(after));
        assert!(!preemption_ticker.shared.state.lock().ticks(after + LINGER));
    }

    fn wait_until(what: &str, is: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is() {
            assert!(Instant::now() < end, "{what}");
            thread::sleep(BEAT);
        }
    }

    #[test]
    fn its_threads_wake_up_again_and_end_with_it() {
        if sched_getaffinity(None).unwrap().count() as usize > PROCESSORS_MAX {
            return;
        }
        let preemption_ticker = PreemptionTicker::default();
        let ticks = || preemption_ticker.shared.state.lock().ticks;
        for _ in 0..2 {
            let (before, ticker) = (ticks(), preemption_ticker.start());
            wait_until("no thread wakes up", || ticks() > before + 3);
            drop(ticker);
            wait_until("threads do not rest", || {
                let before = ticks();
                thread::sleep(2 * LINGER);
                ticks() == before
            });
        }
        let shared = Arc::downgrade(&preemption_ticker.shared);
        drop(preemption_ticker);
        wait_until("threads are left", || shared.strong_count() == 0);
    }
}
