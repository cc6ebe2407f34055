//! The process: it waits for one statement, answers it, and ends.
//!
//! It is started ahead of need, and does then what every statement needs: it makes a session and runs a statement
//! through it, so that code and tables of the library are in memory.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use datafusion::execution::session_state::SessionState;
use inlay_engine::{Error, rows::Scan};
use tokio::runtime::Runtime;

use crate::{
    answer::Out,
    confine,
    message::{Ask, Done, Form, Frame, Reason, Refusal, read_request},
    session,
};

/// Operators run beside each other on so many threads.
const THREADS: usize = 2;
/// Plans are trees that are walked by recursion; what the gate lets through fits.
pub const STACK_BYTES: usize = 64 << 20;
/// Says that it is ready.
const READY: &[u8] = b"+";

/// Waits for a statement on the standard input, answers it on the standard output, and ends.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The server went away, or its machine is out of something: it knows that nothing came.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    confine::limits()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build()?;
    let state = warm(&runtime)?;
    let mut stdout = io::stdout();
    stdout.write_all(READY)?;
    stdout.flush()?;
    let (ask, snapshot) = read_request(&mut io::stdin().lock())?;
    let scan = match Scan::receive(&ask.directory, &snapshot) {
        Ok(scan) => scan,
        Err(Error::Io { kind: io::ErrorKind::NotFound, .. }) => {
            return Frame::Stale.write(&mut stdout);
        }
        Err(error) => return refuse(Refusal::new(Reason::Broken, error.to_string())),
    };
    drop(snapshot);
    confine::seal()?;
    let wall = Duration::from_millis(ask.wall_ms);
    let answering = runtime.spawn(async move {
        let mut out = Stdout;
        session::answer(state, scan, &ask, &mut out).await
    });
    let ended = runtime.block_on(async { tokio::time::timeout(wall, answering).await });
    let frame = match ended {
        Ok(Ok(Ok(done))) => Frame::Done(done),
        Ok(Ok(Err(refusal))) => Frame::Refused(refusal),
        Ok(Err(_)) => Frame::Refused(Refusal::new(Reason::Broken, "the worker failed")),
        Err(_) => {
            let message = format!("the statement took longer than {} s", wall.as_secs_f64());
            Frame::Refused(Refusal::new(Reason::TooSlow, message))
        }
    };
    frame.write(&mut stdout)?;
    stdout.flush()?;
    // What still runs is not waited for.
    std::process::exit(0);
}

fn refuse(refusal: Refusal) -> io::Result<()> {
    let mut stdout = io::stdout();
    Frame::Refused(refusal).write(&mut stdout)?;
    stdout.flush()
}

/// Frames to the standard output.
struct Stdout;

impl Out for Stdout {
    fn send(&mut self, frame: Frame) -> io::Result<()> {
        let mut stdout = io::stdout();
        frame.write(&mut stdout)?;
        stdout.flush()
    }
}

/// Frames to nobody.
struct Nowhere;

impl Out for Nowhere {
    fn send(&mut self, _: Frame) -> io::Result<()> {
        Ok(())
    }
}

/// A session through which a statement has gone.
fn warm(runtime: &Runtime) -> io::Result<SessionState> {
    let made = |refusal: Refusal| io::Error::other(refusal.message);
    let state = session::blank(THREADS).map_err(made)?;
    let ask = Ask {
        sql: "SELECT event_name, date_trunc('day', timestamp) AS day, count(*), avg(numeric_props['n']) \
              FROM events WHERE string_props['s'] = 'x' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 5"
            .to_owned(),
        params: Vec::new(),
        form: Form::Rows,
        rows_max: 1,
        bytes_max: 1,
        wall_ms: 0,
        directory: "".into(),
    };
    let first = state.clone();
    let warmed = runtime
        .spawn(async move { session::answer(first, Scan::empty(), &ask, &mut Nowhere).await });
    let done: Result<Done, Refusal> = runtime.block_on(warmed).map_err(io::Error::other)?;
    done.map_err(made)?;
    Ok(state)
}
