//! Calls to other systems from threads that block.
//!
//! The engine blocks, the clients of database and bucket are asynchronous. A call runs on a runtime of this crate, and its caller waits on a channel: that
//! works on any thread, also on one of another runtime.
//!
//! ```text
//! calls.wait(5 s, client.query(…))      Ok(rows), or the error TimedOut after five seconds; the call is cancelled then
//! ```

use std::{
    future::Future,
    io,
    sync::{Arc, mpsc},
    time::Duration,
};

use inlay_engine::Error;
use tokio::runtime::{Builder, Runtime};

/// An error of the machine, of a database or of a bucket as one of the engine; `place` names where it was met.
pub fn error_at(place: &str, error: &io::Error) -> Error {
    Error::Io { place: place.to_owned(), kind: error.kind(), detail: error.to_string() }
}

/// The runtime on which calls run. Clones share it; it ends with the last one.
#[derive(Clone)]
pub struct Calls(Arc<OwnRuntime>);

/// A runtime that ends without being waited for.
struct OwnRuntime(Option<Runtime>);

impl Calls {
    /// A runtime with two threads: one call may encode while another waits.
    ///
    /// Errors: those of starting threads.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("inlay-cluster")
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(OwnRuntime(Some(runtime)))))
    }

    /// Runs a call and waits for it.
    ///
    /// Errors: those of the call; `TimedOut` where it takes longer, and what it has done is not known then.
    pub fn wait<T, E, F>(&self, time_max: Duration, call: F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<io::Error> + Send + 'static,
    {
        let (answer, answered) = mpsc::sync_channel(1);
        self.spawn(async move {
            let timed_out =
                || E::from(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            let result = tokio::time::timeout(time_max, call).await;
            let _ = answer.send(result.unwrap_or_else(|_| Err(timed_out())));
        });
        let ended = || E::from(io::Error::other("the call ended without an answer"));
        answered.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Runs a task for which nobody waits.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0.0 {
            drop(runtime.spawn(task));
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        // A runtime must not be waited for on a thread of another one, which is where the last store may be dropped.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
