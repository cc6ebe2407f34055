//! One worker: started, asked once, listened to until it ends.

use std::{io, path::Path, process::Stdio, time::Duration};

use inlay_engine::rows::HandedOver;
use inlay_sql::{Ask, FRAME_HEAD_BYTES, Frame, Head, Reason, Refusal, request_head};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::Instant,
};

use super::pulse::Beating;

/// The command of this program that is a worker.
const COMMAND: &str = "sql-worker";
/// A worker says itself that the time is over; one that does not is ended so much later.
const GRACE: Duration = Duration::from_millis(300);
/// What a worker says first: that it is ready, or that it never will be and why.
const READY: u8 = b'+';
/// A worker that is not ready by then never will be.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// Characters of why, at most.
const UNFIT_CHARS_MAX: u64 = 500;

/// A worker that waits for its statement.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    is_ready: bool,
    /// While it computes.
    beating: Option<Beating>,
}

impl Worker {
    /// Starts one that may take so much memory. It gets ready meanwhile.
    ///
    /// Errors: when the program cannot be started.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn start(program: &Path, memory_bytes: u64) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args([COMMAND, &memory_bytes.to_string()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // What a terminal sends to the server is the server's business.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let gone = || io::Error::other("a worker without pipes");
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        Ok(Self { child, stdin, stdout, is_ready: false, beating: None })
    }

    /// It computes from now on.
    pub fn set_beating(&mut self, beating: Beating) {
        self.beating = Some(beating);
    }

    /// Whether it still waits.
    pub fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it has started.
    async fn ready(&mut self) -> io::Result<()> {
        let unfit = |why: &str| io::Error::other(format!("it cannot start: {why}"));
        if self.is_ready {
            return Ok(());
        }
        let mut first = [0];
        let ready = self.stdout.read_exact(&mut first);
        match tokio::time::timeout(READY_WITHIN, ready).await {
            Ok(Ok(_)) if first == [READY] => {}
            Ok(Ok(_)) => {
                let mut why = String::new();
                (&mut self.stdout).take(UNFIT_CHARS_MAX).read_to_string(&mut why).await?;
                return Err(unfit(&why));
            }
            Ok(Err(error)) => return Err(unfit(&error.to_string())),
            Err(_) => return Err(unfit("it does not get ready")),
        }
        self.is_ready = true;
        Ok(())
    }

    async fn send(&mut self, head: &Head, segments: &[u8], recent: &[u8]) -> io::Result<()> {
        self.stdin.write_all(&request_head(head, segments.len(), recent.len())?).await?;
        self.stdin.write_all(segments).await?;
        self.stdin.write_all(recent).await?;
        self.stdin.flush().await
    }

    /// Has it open segments before there is a statement about them.
    ///
    /// Errors: when it ended.
    pub async fn open(&mut self, directory: &Path, segments: &[u8]) -> io::Result<()> {
        let opened = async {
            self.ready().await?;
            let head = Head { directory: directory.to_owned(), ask: None };
            self.send(&head, segments, &[]).await
        };
        tokio::time::timeout(READY_WITHIN, opened).await?
    }

    /// Asks it over what the engine hands over of the data in `directory`. It has until `deadline` to answer.
    ///
    /// Errors: when it ended before it took the statement.
    pub async fn ask(
        mut self,
        directory: &Path,
        ask: &Ask,
        snapshot: &HandedOver,
        deadline: Instant,
    ) -> io::Result<Answering> {
        let handed = async {
            self.ready().await?;
            let left = deadline.saturating_duration_since(Instant::now()).as_millis();
            let ask = Ask { wall_ms: u64::try_from(left).unwrap_or(ask.wall_ms), ..ask.clone() };
            let head = Head { directory: directory.to_owned(), ask: Some(ask) };
            self.send(&head, &snapshot.segments, &snapshot.recent).await?;
            read_frame(&mut self.stdout).await
        };
        // What is written to one that is being ended goes nowhere, and nobody says so.
        match tokio::time::timeout_at(deadline, handed).await {
            Ok(Ok(Frame::Taken)) => {}
            Ok(Ok(_)) => return Err(io::Error::other("a worker answers before it is asked")),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        let deadline = deadline + GRACE;
        let (stdin, _beating) = (Some(self.stdin), self.beating);
        Ok(Answering { child: self.child, stdin, stdout: self.stdout, deadline, _beating })
    }
}

/// A worker that answers. Dropped, it ends.
pub struct Answering {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    deadline: Instant,
    _beating: Option<Beating>,
}

impl Answering {
    /// Until when the answer must have come.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next part of the answer. A worker that ended without a word had too much to do.
    pub async fn next(&mut self) -> Frame {
        drop(self.stdin.take());
        let frame = tokio::time::timeout_at(self.deadline, read_frame(&mut self.stdout)).await;
        match frame {
            Ok(Ok(frame)) => frame,
            Ok(Err(_)) => Frame::Refused(self.last_words().await),
            Err(_) => Frame::Refused(too_slow()),
        }
    }

    async fn last_words(&mut self) -> Refusal {
        use std::os::unix::process::ExitStatusExt as _;
        let ended = tokio::time::timeout_at(self.deadline, self.child.wait()).await;
        let signal = ended.ok().and_then(Result::ok).and_then(|status| status.signal());
        let is = |one: rustix::process::Signal| signal == Some(one.as_raw());
        use rustix::process::Signal;
        if is(Signal::XCPU) {
            return too_slow();
        }
        // An allocation that fails, a stack that overflows, the kernel that needs memory elsewhere.
        if [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::KILL].into_iter().any(is) {
            let message = "the statement takes more memory than there is for it";
            return Refusal::new(Reason::TooLarge, message);
        }
        Refusal::new(Reason::Broken, "a worker ended without an answer")
    }
}

fn too_slow() -> Refusal {
    Refusal::new(Reason::TooSlow, "the statement took too long")
}

async fn read_frame(stdout: &mut BufReader<ChildStdout>) -> io::Result<Frame> {
    let mut head = [0; FRAME_HEAD_BYTES];
    stdout.read_exact(&mut head).await?;
    let (kind, len) = Frame::head(head)?;
    let mut bytes = vec![0; len];
    stdout.read_exact(&mut bytes).await?;
    Frame::read(kind, bytes)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a program for the test is written as a file")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use inlay_sql::Form;

    use super::*;

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
        let snapshot = HandedOver { segments: Vec::new(), recent: Vec::new() };
        for (end, is_taken) in [("kill -9 $$", false), ("printf 'T\\0\\0\\0\\0'; kill -9 $$", true)]
        {
            let script = format!("#!/bin/sh\nprintf +; head -c 24 > /dev/null; {end}\n");
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let worker = Worker::start(&program, 1).unwrap();
            let deadline = Instant::now() + READY_WITHIN;
            let asked = worker.ask(directory.path(), &ask, &snapshot, deadline).await;
            assert_eq!(asked.is_ok(), is_taken, "{end}");
            if let Ok(mut answering) = asked {
                let Frame::Refused(refusal) = answering.next().await else { panic!("it ended") };
                assert_eq!(refusal.reason, Reason::TooLarge);
            }
        }
    }
}
