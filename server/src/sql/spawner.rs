//! Starts workers, on a thread that is less urgent than the others.
//!
//! A process inherits the nice value of the thread that starts it, so it has the lower priority from its first instruction on: the
//! template, which loads the program, then each worker. The thread never exits: unmapping its stack takes locks of the
//! whole process, and a thread of low priority could be preempted while it holds them.
//!
//! ```text
//! start()      Asked → the thread: fork the template         a Worker, which prepares itself
//!              the template has ended                        WARN …; another one is started, and forked
//!              the program cannot be started                 an error, for the statement or the log
//!              nobody waits for the answer any more          nothing is forked
//! ```

use std::{
    io,
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use parking_lot::Mutex;
use rustix::process::setpriority_process;
use tokio::{runtime::Handle, sync::oneshot};
use tracing::warn;

use super::{
    template::{Pipes, Template, TemplateSettings},
    worker::Worker,
};

/// Nice value of workers, a fifteenth of the server's CPU weight. Measured on two cores: with three busy neighbour processes `SELECT 1`
/// takes 36 ms (97 at nice 19), and beside hostile statements the server's quick answers take less than twice their time (more at nice 10).
const NICE: i32 = 13;

/// Starts workers that `program` knows how to be.
pub struct WorkerSpawner {
    program: PathBuf,
    settings: TemplateSettings,
    /// Requests to the thread, which is started by the first.
    asked: Mutex<Option<Sender<Asked>>>,
}

/// A request for a worker, and the runtime that its pipes are registered with.
struct Asked {
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Worker>>,
}

impl WorkerSpawner {
    /// Of workers with these settings.
    ///
    /// `program` is this very binary, which is a template as `inlay sql-worker`. Nothing is started yet.
    pub fn new(program: PathBuf, settings: TemplateSettings) -> Self {
        Self { program, settings, asked: Mutex::default() }
    }

    /// Requests a worker. The receiver gets it once it is forked; it may still be preparing itself.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn start(&self) -> oneshot::Receiver<io::Result<Worker>> {
        let (answer, started) = oneshot::channel();
        let asked = Asked { runtime: Handle::current(), answer };
        let mut thread = self.asked.lock();
        if thread.is_none() {
            *thread = self.thread();
        }
        // Without a thread the request is dropped; the receiver fails, and [`started`] makes an error of it.
        if thread.as_ref().is_some_and(|thread| thread.send(asked).is_err()) {
            *thread = None;
        }
        started
    }

    /// Starts the thread that serves requests. `None` where there is no thread to be had.
    fn thread(&self) -> Option<Sender<Asked>> {
        let (sender, asked) = channel();
        let (program, settings) = (self.program.clone(), self.settings);
        let starting = move || {
            // Without a pid it applies to this thread alone. Where it is not permitted workers keep the server's priority.
            let _ = setpriority_process(None, NICE);
            let mut template = None;
            let start = || Template::start(&program, settings);
            serve(&asked, || Worker::from_pipes(copy(&mut template, &start)?));
        };
        let thread = thread::Builder::new().name("inlay-workers".to_owned()).spawn(starting);
        thread.is_ok().then_some(sender)
    }
}

/// Answers requests until all senders are dropped.
fn serve(asked: &Receiver<Asked>, mut start: impl FnMut() -> io::Result<Worker>) {
    for Asked { runtime, answer } in asked {
        // A cancelled request needs no worker; a worker whose receiver is dropped meanwhile ends.
        if !answer.is_closed() {
            let _entered = runtime.enter();
            let _ = answer.send(start());
        }
    }
}

/// Pipes to a new worker, forked from the template; that is started first where there is none, or it does not answer any more.
fn copy(
    template: &mut Option<Template>,
    start: &impl Fn() -> io::Result<Template>,
) -> io::Result<Pipes> {
    if let Some(there) = template.as_ref().filter(|there| !there.is_unhealthy()) {
        let copied = there.fork();
        if !there.is_unhealthy() {
            return copied;
        }
    }
    // Drop the old one first, which ends its process.
    if template.take().is_some() {
        warn!(
            "the template of workers for SQL has ended or does not answer; there will be another one"
        );
    }
    template.insert(start()?).fork()
}

/// The worker of a request.
///
/// Errors: what kept it from starting.
pub fn started(came: Result<io::Result<Worker>, oneshot::error::RecvError>) -> io::Result<Worker> {
    came.unwrap_or_else(|_| Err(io::Error::other("there is no thread that starts workers")))
}
