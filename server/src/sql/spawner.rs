//! Starts workers, on a thread that is less urgent than the others.
//!
//! A process takes over how urgent the thread is that starts it, and so it is from its first instruction on: first the
//! template, which loads the program, then each of its copies. The thread stays: one that ends takes down its stack under
//! locks of the whole process, and whoever is less urgent may be kept from giving them back.

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

/// A fifteenth of the server's weight: with three busy processes beside it on two cores `SELECT 1` takes 36 ms, which were 97 at the least
/// weight, 19, and the server's own quick answers take less than twice their time beside hostile statements, which they do
/// not at 10.
const NICE: i32 = 13;

/// Starts workers that `program` knows how to be.
pub struct WorkerSpawner {
    program: PathBuf,
    settings: TemplateSettings,
    /// The thread, once somebody asked.
    asked: Mutex<Option<Sender<Asked>>>,
}

/// Who waits for a worker, and the runtime that is to look after it.
struct Asked {
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Worker>>,
}

impl WorkerSpawner {
    /// Of workers with these settings.
    pub fn new(program: PathBuf, settings: TemplateSettings) -> Self {
        Self { program, settings, asked: Mutex::default() }
    }

    /// Has a worker started; what comes says whether it was. It gets ready meanwhile.
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
        // Nobody takes it: nothing comes, which is said where it is waited for.
        if thread.as_ref().is_some_and(|thread| thread.send(asked).is_err()) {
            *thread = None;
        }
        started
    }

    fn thread(&self) -> Option<Sender<Asked>> {
        let (sender, asked) = channel();
        let (program, settings) = (self.program.clone(), self.settings);
        let starting = move || {
            // Said of no process: of the thread that says it. It is a favour, and not given everywhere.
            let _ = setpriority_process(None, NICE);
            let mut template = None;
            let start = || Template::start(&program, settings);
            serve(&asked, || Worker::from_pipes(copy(&mut template, &start)?));
        };
        let thread = thread::Builder::new().name("inlay-workers".to_owned()).spawn(starting);
        thread.is_ok().then_some(sender)
    }
}

/// Until there is nobody who could ask.
fn serve(asked: &Receiver<Asked>, mut start: impl FnMut() -> io::Result<Worker>) {
    for Asked { runtime, answer } in asked {
        // Who does not wait any more needs no worker; one that has been started for him ends.
        if !answer.is_closed() {
            let _entered = runtime.enter();
            let _ = answer.send(start());
        }
    }
}

/// Pipes to a new copy of the template, which is started when there is none, or not any more.
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
    // The one before ends first.
    if template.take().is_some() {
        warn!(
            "the template of workers for SQL has ended or does not answer; there will be another one"
        );
    }
    template.insert(start()?).fork()
}

/// What came of asking.
///
/// Errors: what kept it from starting.
pub fn started(came: Result<io::Result<Worker>, oneshot::error::RecvError>) -> io::Result<Worker> {
    came.unwrap_or_else(|_| Err(io::Error::other("there is no thread that starts workers")))
}
