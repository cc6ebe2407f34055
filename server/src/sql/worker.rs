//! One worker: started, asked once, listened to until it ends.

use std::{io, path::Path, process::Stdio, time::Duration};

use inlay_sql::{Ask, FRAME_HEAD_BYTES, Frame, Reason, Refusal, request_head};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::Instant,
};

/// The command of this program that is a worker.
const COMMAND: &str = "sql-worker";
/// A worker says itself that the time is over; one that does not is ended so much later.
const GRACE: Duration = Duration::from_millis(300);
/// A worker that is not ready by then never will be.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A worker that waits for its statement.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one. It gets ready meanwhile.
    ///
    /// Errors: when the program cannot be started.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(COMMAND)
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
        Ok(Self { child, stdin, stdout })
    }

    /// Whether it still waits.
    pub fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it. `snapshot` is what the engine hands over.
    ///
    /// Errors: when it ended before it was asked.
    pub async fn ask(mut self, ask: &Ask, snapshot: &[u8]) -> io::Result<Answering> {
        let mut ready = [0];
        match tokio::time::timeout(READY_WITHIN, self.stdout.read_exact(&mut ready)).await {
            Ok(read) => read?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        let deadline = Instant::now() + Duration::from_millis(ask.wall_ms) + GRACE;
        let head = request_head(ask, snapshot.len())?;
        self.stdin.write_all(&head).await?;
        self.stdin.write_all(snapshot).await?;
        self.stdin.flush().await?;
        Ok(Answering { child: self.child, stdin: Some(self.stdin), stdout: self.stdout, deadline })
    }
}

/// A worker that answers. Dropped, it ends.
pub struct Answering {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    deadline: Instant,
}

impl Answering {
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
        match signal {
            Some(signal) if signal == rustix::process::Signal::XCPU.as_raw() => too_slow(),
            Some(_) => {
                let message = "the statement takes more memory than there is for it";
                Refusal::new(Reason::TooLarge, message)
            }
            None => Refusal::new(Reason::Broken, "a worker ended without an answer"),
        }
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
