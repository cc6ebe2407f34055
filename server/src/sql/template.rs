//! The process that workers are copies of, as the server sees it.
//!
//! ```text
//! /proc/self/exe sql-worker 536870912 24293408768 true     bytes at first, at most; whether code is in huge pages: with 64 GiB
//!     stdin      a socket: a message with four descriptors is a request for a worker
//!     fork()     the server keeps stdin, stdout, memory and control of the new worker; the template forks, and closes its copies
//! ```
//!
//! Environment, directory and output of the server are not handed on: a worker knows nothing of it but what it is sent.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use inlay_sql_protocol::WorkerPipes;

/// The command of this program that is a template.
const COMMAND: &str = "sql-worker";
/// Time in which a template must take a request from its socket; one that does not is unhealthy.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// The process. Dropped, it ends, and the kernel ends its copies with it.
pub struct Template {
    process: Child,
    control: UnixStream,
    is_unhealthy: Arc<AtomicBool>,
}

/// Freed blocks that a thread has at hand, of each of 64 sizes up to a kilobyte. A plan is made of thousands of small blocks, which come and go
/// in waves; beyond seven of a size the C library would sort each one into its heap. It looks for this setting when a program starts and takes it in no
/// other way; other libraries do not know it.
const MALLOC_TUNABLES: &str = "glibc.malloc.tcache_count=4000";

/// Limits of the workers that are forked from a template.
#[derive(Debug, Clone, Copy)]
pub struct TemplateSettings {
    /// Bytes of memory that each begins with.
    pub base_bytes: u64,
    /// Bytes that each may write to when it has got all the memory that it can.
    pub most_bytes: u64,
    /// Whether code is in huge pages.
    pub has_huge_code: bool,
}

/// The server's ends of a worker's pipes.
pub struct Pipes {
    /// Requests: the statement with the list of segments, rows in memory, grants of memory.
    pub stdin: OwnedFd,
    /// Frames of the answer, after a `+` that says that the worker is ready.
    pub stdout: OwnedFd,
    /// Socket over which descriptors of shared memory are passed to it.
    pub memory: UnixStream,
    /// Socket of its life: when the server closes it the template kills the worker, and when the worker ends its exit status arrives here.
    pub control: UnixStream,
    /// Set where a worker does not get ready in time: the template is replaced then.
    pub is_unhealthy: Arc<AtomicBool>,
}

impl Template {
    /// Starts the process, which loads the library in some milliseconds; requests wait in its socket until then.
    ///
    /// Errors: when the program cannot be started.
    pub fn start(program: &Path, settings: TemplateSettings) -> io::Result<Self> {
        let TemplateSettings { base_bytes, most_bytes, has_huge_code } = settings;
        let (control, theirs) = UnixStream::pair()?;
        control.set_write_timeout(Some(TAKEN_WITHIN))?;
        let process = Command::new(program)
            .arg(COMMAND)
            .args([base_bytes.to_string(), most_bytes.to_string(), has_huge_code.to_string()])
            .env_clear()
            .env("GLIBC_TUNABLES", MALLOC_TUNABLES)
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What a terminal sends to the server is the server's business.
            .process_group(0)
            .spawn()?;
        Ok(Self { process, control, is_unhealthy: Arc::default() })
    }

    /// Sends a request for a worker, and gives the server's ends of its pipes. The worker is forked meanwhile.
    ///
    /// Errors: when there are no descriptors left; what the kernel says. It may have ended or not listen: then it
    /// [is unhealthy](Self::is_unhealthy).
    pub fn fork(&self) -> io::Result<Pipes> {
        let (statement, stdin) = io::pipe()?;
        let (stdout, answer) = io::pipe()?;
        let (memory, memory_there) = UnixStream::pair()?;
        let (control, life_there) = UnixStream::pair()?;
        let (statement, answer) = (statement.into(), answer.into());
        let ends = WorkerPipes { statement, answer, memory: memory_there, control: life_there };
        ends.send(&self.control).inspect_err(|error| {
            use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, WouldBlock};
            if matches!(error.kind(), BrokenPipe | ConnectionReset | TimedOut | WouldBlock) {
                self.is_unhealthy.store(true, Ordering::Relaxed);
            }
        })?;
        let is_unhealthy = Arc::clone(&self.is_unhealthy);
        let (stdin, stdout) = (stdin.into(), stdout.into());
        Ok(Pipes { stdin, stdout, memory, control, is_unhealthy })
    }

    /// Whether the template has to be replaced: it has ended, does not listen, or made a worker that hangs.
    pub fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Ordering::Relaxed)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // It may have ended already; it is waited for in any case, or its number would stay taken.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
