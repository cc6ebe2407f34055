//! One worker: asked once, listened to until it ends.
//!
//! ```text
//! worker → server    2b                                                    "+": ready
//! server → worker    e7 00 00 00  00 00 00 00 00 00 00 00  {"directory":…  head of 231 bytes, no segments
//! worker → server    54 00 00 00 00                                        "T": accepted; from now on the statement is to blame
//!                    43 25 00 00 00  [{"name":"count(*)","type":"BIGINT"}] "C": columns, 37 bytes
//!                    4d 08 00 00 00  00 00 00 04 00 00 00 00               "M": 64 MiB more, please
//! server → worker    00 00 00 04 00 00 00 00                               all of it; 0 would be none
//! worker → server    50 20 00 00 00  01 9a … 70 11 01 00 00 00 00 00       "P": bytes of a segment, please
//! server → worker    01 00 00 00 00 00 00 00                               they are in the file; 0 where they cannot be fetched
//! worker → server    52 07 00 00 00  [20000]                               "R": rows
//!                    44 1c 00 00 00  {"rows":1,"truncated":false}          "D": done
//!
//! the worker ends without a word    SIGXCPU                                400 query_timeout
//!                                   SIGABRT, SIGSEGV, SIGBUS, SIGKILL      400 query_too_large, or 503 where others have the memory
//!                                   anything else                          500
//! it ends before "T"                                                       another worker is asked
//! ```

use std::{
    io::{self, Read as _},
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    path::Path,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use inlay_engine::rows::{MissingSegments, SharedMemory};
use inlay_sql_protocol::{
    Ask, FRAME_HEAD_BYTES, Frame, Head, ROWS, Reason, Refusal, SegmentPart, granted, part_answer,
    recent_head, request_head, send_memory,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe::{Receiver, Sender},
    time::Instant,
};

use tracing::warn;
use uuid::Uuid;

use super::{memory_pool::MemoryGrant, preemption_ticker::TickerGuard, template::Pipes};

/// A worker says itself that the time is over; one that does not is ended so much later.
const GRACE: Duration = Duration::from_millis(300);
/// First byte of a worker that is ready; any other byte is followed by the reason why it never will be, as text.
const READY: u8 = b'+';
/// A worker that is ended has ended after this time, as a rule at once.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Time in which a worker gets ready. A fork takes about a millisecond; the first one waits for the template as well.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of the exit status, as `waitpid` gives it: an i32, little-endian.
const STATUS_BYTES: usize = 4;
/// One that is not ready after this time, when its statement's time is over, is taken for one that never will be.
const TEMPLATE_HANGS: Duration = Duration::from_secs(2);
/// Bytes of the reason of a worker that cannot start, at most.
const UNFIT_CHARS_MAX: u64 = 500;

/// The rows of a statement: segments by name, as the engine lists them, and rows in memory.
pub struct SnapshotHandles {
    /// Serialized list of segments; the worker opens the files itself.
    pub segments: Vec<u8>,
    /// Those of them of which the worker has to ask for parts.
    pub missing: MissingSegments,
    /// Shared memory with rows that no segment has yet, each passed as a descriptor.
    pub memory: Vec<Arc<SharedMemory>>,
    /// Whether there may be rows in memory that are not shared; they are copied when the worker asks for them.
    pub has_recent: bool,
}

/// A worker that waits for its statement. Dropped, it ends.
pub struct Worker {
    control: UnixStream,
    memory: UnixStream,
    stdin: Sender,
    stdout: BufReader<Receiver>,
    is_ready: bool,
    is_template_unhealthy: Arc<AtomicBool>,
    /// Guard that keeps the preemption ticker going while the worker computes.
    ticker: Option<TickerGuard>,
}

impl Worker {
    /// The worker at the other ends of these pipes, which may still be preparing itself.
    ///
    /// Errors: what the kernel says.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn from_pipes(
        Pipes { stdin, stdout, memory, control, is_unhealthy }: Pipes,
    ) -> io::Result<Self> {
        control.set_nonblocking(true)?;
        // Descriptors fit: a message of them is one byte.
        memory.set_nonblocking(true)?;
        let stdout = BufReader::new(Receiver::from_owned_fd(stdout)?);
        let stdin = Sender::from_owned_fd(stdin)?;
        let (is_ready, is_template_unhealthy, ticker) = (false, is_unhealthy, None);
        Ok(Self { control, memory, stdin, stdout, is_ready, is_template_unhealthy, ticker })
    }

    /// Says that the worker computes from now on: the ticker goes until its answer is dropped.
    pub fn set_ticker(&mut self, ticker: TickerGuard) {
        self.ticker = Some(ticker);
    }

    /// Whether the process is there: its exit status has not arrived.
    pub fn is_alive(&self) -> bool {
        let heard = (&self.control).read(&mut [0; STATUS_BYTES]);
        heard.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until it has started, until `deadline` at most.
    async fn ready(&mut self, deadline: Instant) -> io::Result<()> {
        let unfit = |why: &str| io::Error::other(format!("it cannot start: {why}"));
        if self.is_ready {
            return Ok(());
        }
        let mut first = [0];
        let ready = self.stdout.read_exact(&mut first);
        let began = Instant::now();
        match tokio::time::timeout_at(deadline.min(began + READY_WITHIN), ready).await {
            Ok(Ok(_)) if first == [READY] => {}
            Ok(Ok(_)) => {
                let mut why = String::new();
                (&mut self.stdout).take(UNFIT_CHARS_MAX).read_to_string(&mut why).await?;
                return Err(unfit(&why));
            }
            Ok(Err(error)) => return Err(unfit(&error.to_string())),
            Err(_) => {
                let hangs = began.elapsed() >= TEMPLATE_HANGS;
                self.is_template_unhealthy.fetch_or(hangs, Ordering::Relaxed);
                return Err(unfit("it does not get ready"));
            }
        }
        self.is_ready = true;
        Ok(())
    }

    /// Writes a request: lengths, head, list of segments.
    async fn send(&mut self, head: &Head, segments: &[u8]) -> io::Result<()> {
        let mut request = request_head(head, segments.len())?;
        request.extend_from_slice(segments);
        self.stdin.write_all(&request).await
    }

    /// Lets the worker open segments before there is a statement about them; nothing comes back.
    ///
    /// Errors: when it ended.
    pub async fn open(&mut self, directory: &Path, segments: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        self.ready(deadline).await?;
        let directory = directory.to_owned();
        let head = Head { directory, memory: 0, has_recent: false, ask: None };
        tokio::time::timeout_at(deadline, self.send(&head, segments)).await?
    }

    /// Ends the process, and returns when it has ended: what it had mapped is mapped no more. Where the template does not say so in time, it
    /// kills it all the same.
    pub async fn end(self) {
        let ended = async {
            self.control.shutdown(std::net::Shutdown::Write)?;
            let mut control = tokio::net::UnixStream::from_std(self.control.try_clone()?)?;
            control.read_exact(&mut [0; STATUS_BYTES]).await
        };
        if !matches!(tokio::time::timeout(END_WITHIN, ended).await, Ok(Ok(_))) {
            warn!("a worker for SQL did not say that it has ended");
        }
    }

    /// Sends a statement with its snapshot, and waits until the worker has accepted it. The answer has to come by `deadline`; memory beyond
    /// what the worker began with is granted by `memory`.
    ///
    /// Errors: when it ended before it took the statement.
    pub async fn execute(
        mut self,
        directory: &Path,
        ask: &Ask,
        handles: &SnapshotHandles,
        memory: MemoryGrant,
        deadline: Instant,
    ) -> io::Result<ResultStream> {
        self.ready(deadline).await?;
        let handed = async {
            let descriptors: Vec<_> = handles.memory.iter().map(|memory| memory.as_fd()).collect();
            send_memory(&self.memory, &descriptors)?;
            let left = deadline.saturating_duration_since(Instant::now()).as_millis();
            // Time passed while a worker was waited for: it gets what is left.
            let ask = Ask { wall_ms: u64::try_from(left).unwrap_or(ask.wall_ms), ..ask.clone() };
            let (directory, memory) = (directory.to_owned(), descriptors.len());
            let head = Head { directory, memory, has_recent: handles.has_recent, ask: Some(ask) };
            self.send(&head, &handles.segments).await?;
            read_frame(&mut self.stdout).await
        };
        // What is written to one that is being ended goes nowhere, and nobody says so.
        match tokio::time::timeout_at(deadline, handed).await {
            Ok(Ok(Frame::Accepted)) => {}
            Ok(Ok(_)) => return Err(io::Error::other("a worker answers before it is asked")),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        let deadline = deadline + GRACE;
        let Self { control, stdin, stdout, ticker, .. } = self;
        let (missing, part_failed) = (handles.missing.clone(), false);
        let _ticker = ticker;
        Ok(ResultStream { control, stdin, stdout, deadline, memory, missing, part_failed, _ticker })
    }
}

/// A worker that answers. Dropped, it ends.
pub struct ResultStream {
    control: UnixStream,
    /// Open until it is dropped: grants go this way, and its end tells the worker that the answer was read.
    stdin: Sender,
    stdout: BufReader<Receiver>,
    deadline: Instant,
    memory: MemoryGrant,
    missing: MissingSegments,
    /// Whether a part of a segment could not be fetched.
    part_failed: bool,
    _ticker: Option<TickerGuard>,
}

impl ResultStream {
    /// Time at which the worker is ended if it has not answered: the statement's own deadline and 300 ms.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sends the rows that segments lack. If the worker cannot take them it has ended, which the next frame says.
    pub async fn send_memtable(&mut self, recent: &[u8]) {
        let stdin = &mut self.stdin;
        let given = async {
            stdin.write_all(&recent_head(recent.len())).await?;
            stdin.write_all(recent).await
        };
        let _ = tokio::time::timeout_at(self.deadline, given).await;
    }

    /// The next frame of the answer; rows come as [`Frame::Rows`]. A worker that ended without one is a refusal by its exit status.
    pub async fn next(&mut self) -> Frame {
        let mut rows = Vec::new();
        self.next_behind(&mut rows).await.unwrap_or(Frame::Rows(rows))
    }

    /// The next part of the answer; rows are read to the end of `rows`, where they are not copied again, and none is
    /// returned. Memory is granted meanwhile, as far as there is some.
    pub async fn next_behind(&mut self, rows: &mut Vec<u8>) -> Option<Frame> {
        let Self { stdin, stdout, memory, deadline, missing, part_failed, .. } = self;
        let read = async {
            loop {
                match read_frame_behind(stdout, rows).await? {
                    Some(Frame::MoreMemory(bytes)) => {
                        stdin.write_all(&granted(memory.grow(bytes))).await?;
                    }
                    Some(Frame::NeedPart(part)) => {
                        // Failed as long as it is waited for.
                        let failed_before = std::mem::replace(part_failed, true);
                        let is_there = load(missing.clone(), part).await;
                        *part_failed = failed_before || !is_there;
                        stdin.write_all(&part_answer(is_there)).await?;
                    }
                    other => return io::Result::Ok(other),
                }
            }
        };
        match tokio::time::timeout_at(*deadline, read).await {
            Ok(Ok(Some(Frame::Refused(refusal)))) => Some(Frame::Refused(self.judged(refusal))),
            Ok(Ok(frame)) => frame,
            Ok(Err(_)) => Some(Frame::Refused(self.last_words().await)),
            Err(_) => Some(Frame::Refused(self.judged(too_slow()))),
        }
    }

    /// A refusal with its reason changed to [`Reason::Busy`] where other statements have the memory, or a file cannot be fetched: it may be answered later.
    fn judged(&self, refusal: Refusal) -> Refusal {
        match refusal.reason {
            Reason::Broken | Reason::TooLarge | Reason::TooSlow if self.part_failed => {
                Refusal::new(
                    Reason::Busy,
                    "a file of the store cannot be fetched right now; retry soon",
                )
            }
            Reason::TooLarge if self.memory.was_short() => {
                Refusal::new(Reason::Busy, "other statements have the memory that it needs")
            }
            _ => refusal,
        }
    }

    /// The refusal of a worker that ended without one, by the signal that ended it.
    async fn last_words(&mut self) -> Refusal {
        let ended = tokio::time::timeout_at(self.deadline, self.status()).await;
        let signal = ended.ok().and_then(Result::ok).and_then(|status| status.signal());
        let is = |one: rustix::process::Signal| signal == Some(one.as_raw());
        use rustix::process::Signal;
        if is(Signal::XCPU) {
            return too_slow();
        }
        // An allocation that fails, a stack that overflows, the kernel that needs memory elsewhere.
        if [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::KILL].into_iter().any(is) {
            let message = "the statement takes more memory than there is for it";
            return self.judged(Refusal::new(Reason::TooLarge, message));
        }
        Refusal::new(Reason::Broken, "a worker ended without an answer")
    }

    /// The exit status, once the template has reaped the process.
    async fn status(&self) -> io::Result<ExitStatus> {
        let mut control = tokio::net::UnixStream::from_std(self.control.try_clone()?)?;
        let mut status = [0; STATUS_BYTES];
        control.read_exact(&mut status).await?;
        Ok(ExitStatus::from_raw(i32::from_le_bytes(status)))
    }
}

/// Has a part of a segment in its file, if it can be fetched.
async fn load(missing: MissingSegments, part: SegmentPart) -> bool {
    let segment = Uuid::from_bytes(part.segment);
    let loaded = tokio::task::spawn_blocking(move || missing.load(segment, part.start..part.end));
    match loaded.await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            warn!(%error, %segment, "a part of a segment cannot be fetched for a statement");
            false
        }
        Err(_) => false,
    }
}

fn too_slow() -> Refusal {
    Refusal::new(Reason::TooSlow, "the statement took too long")
}

/// A frame, also one with rows.
async fn read_frame(stdout: &mut BufReader<Receiver>) -> io::Result<Frame> {
    let mut rows = Vec::new();
    Ok(read_frame_behind(stdout, &mut rows).await?.unwrap_or(Frame::Rows(rows)))
}

/// A frame; the bytes of one with rows go to the end of `rows`.
async fn read_frame_behind(
    stdout: &mut BufReader<Receiver>,
    rows: &mut Vec<u8>,
) -> io::Result<Option<Frame>> {
    let mut head = [0; FRAME_HEAD_BYTES];
    stdout.read_exact(&mut head).await?;
    let (kind, len) = Frame::head(head)?;
    if kind == ROWS {
        read_behind(stdout, len, rows).await?;
        return Ok(None);
    }
    let mut bytes = Vec::new();
    read_behind(stdout, len, &mut bytes).await?;
    Frame::read(kind, bytes).map(Some)
}

/// So many bytes, to the end of others.
async fn read_behind(
    stdout: &mut BufReader<Receiver>,
    len: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    bytes.reserve(len);
    let mut part = stdout.take(len as u64);
    while part.limit() > 0 {
        if part.read_buf(bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a program for the test is written as a file")]
mod tests {
    use std::{
        io::Write as _,
        os::unix::fs::PermissionsExt as _,
        process::{Command, Stdio},
    };

    use inlay_sql_protocol::Form;

    use super::{super::memory_pool::MemoryPool, *};

    /// A program at the ends of pipes, and somebody who tells how it ended.
    fn run(program: &Path) -> Pipes {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (control, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let status = child.wait().unwrap().into_raw();
            theirs.write_all(&status.to_le_bytes()).unwrap();
        });
        let (memory, _) = UnixStream::pair().unwrap();
        let (stdin, stdout, is_unhealthy) = (stdin.into(), stdout.into(), Arc::default());
        Pipes { stdin, stdout, memory, control, is_unhealthy }
    }

    /// A worker that is being ended is still there and takes what is written to it, but never says that it has it.
    #[tokio::test]
    async fn a_statement_that_nobody_took_is_not_at_fault() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("worker");
        let ask = Ask {
            sql: "SELECT 1".to_owned(),
            params: Vec::new(),
            form: Form::Rows,
            rows_max: 1,
            bytes_max: 1,
            wall_ms: 1,
        };
        for (end, is_taken) in [("kill -9 $$", false), ("printf 'T\\0\\0\\0\\0'; kill -9 $$", true)]
        {
            let script = format!("#!/bin/sh\nprintf +; head -c 12 > /dev/null; {end}\n");
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let worker = Worker::from_pipes(run(&program)).unwrap();
            let deadline = Instant::now() + READY_WITHIN;
            let (segments, memory) = (Vec::new(), Vec::new());
            let handles = SnapshotHandles {
                segments,
                missing: MissingSegments::default(),
                memory,
                has_recent: false,
            };
            let memory_pool = Arc::new(MemoryPool::new(0));
            let grant = MemoryGrant::none(&memory_pool, "org");
            let asked = worker.execute(directory.path(), &ask, &handles, grant, deadline).await;
            assert_eq!(asked.is_ok(), is_taken, "{end}");
            if let Ok(mut results) = asked {
                let Frame::Refused(refusal) = results.next().await else { panic!("it ended") };
                assert_eq!(refusal.reason, Reason::TooLarge);
            }
        }
    }
}
