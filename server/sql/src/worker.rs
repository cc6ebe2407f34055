//! The process: it waits for one statement, answers it, and ends.
//!
//! What every statement needs was done before it was copied: a session was made and a statement run through it, so that
//! code and tables of the library are in memory.
//!
//! What goes over its pipes, with the first byte of each frame of the answer:
//!
//! ```text
//! server                                  worker
//!                                         +                    it is ready; or - and why it never will be
//! request without a statement             opens the segments, checks them, touches its heap; no answer
//! request: head, list of segments         T                    it has read the statement
//!                                         opens segments, maps shared rows, gives up files and network, admits the statement
//!                                         W                    only if there may be rows that neither has
//! length, rows
//!                                         M 268435456          an operator lacks 128 MiB
//! 268435456
//!                                         P 019a…, 0..70000    a block is not in the directory: it is fetched
//! 1
//!                                         C, R, R, …           columns and rows
//!                                         D                    {"rows":3,"truncated":false}
//! closes the pipe                         exits
//! ```
//!
//! In the place of `D` it may be `X`, a refusal, and in that of `W` also `S`: a segment was merged away before it was opened, and the server asks another
//! worker with a newer list. A worker that ends without any of them was killed, or met a fault of the library that ends a process.

use std::{
    io::{self, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use inlay_engine::{
    Error, View,
    rows::{LoadParts, OpenSegments, Scan, SharedMemory},
};
use tokio::runtime::Runtime;

use inlay_sql_protocol::{
    Ask, Done, Form, Frame, Reason, Refusal, Request, SegmentPart, read_granted, read_part_answer,
    read_recent, read_request, receive_memory,
};

use crate::{
    answer::Out,
    confine::{self, Seal},
    gate,
    memory::AskForMemory,
    session::{self, Session},
};

/// Operators run beside each other on so many threads.
/// Which is also the number of partitions of each plan.
const THREADS: usize = 2;
/// Plans are trees that are walked by recursion; what the gate lets through fits.
/// 64 MiB for each thread, of which only pages that are touched take memory.
pub const STACK_BYTES: usize = 64 << 20;
/// Of the bytes that a process begins with, what operators may take that count what they take, before they ask for more: stacks and the library take
/// 140 MiB of these bytes, and what operators do not count is as much as what they count. Of 512 MiB it is 128 MiB.
const POOL_SHARE: u64 = 4;
/// Bytes that the process asks for, for each that operators count.
const UNCOUNTED: usize = 2;
/// Says that it is ready.
const READY: &[u8] = b"+";
/// Says that it never will be; why comes behind it.
const UNFIT: &[u8] = b"-";
/// A statement that computes on after its time, where nobody is left to end it, ends itself so much later: after the
/// server, which knows better how to tell it.
const LINGER: Duration = Duration::from_millis(600);

/// Memory of each thread that is touched ahead of need.
/// 128 blocks of 256 KiB: 32 MiB.
const TOUCHED_BLOCK_BYTES: usize = 256 << 10;
const TOUCHED_BLOCKS: usize = 128;
/// Between two looks whether the other thread has come.
const TOUCH_WAIT: Duration = Duration::from_micros(100);
/// Statements that are answered before any other.
const FIRST: [&str; 2] = [
    "SELECT event_name, date_trunc('day', timestamp) AS day, count(*), avg(numeric_props['n']) \
     FROM events WHERE string_props['s'] = 'x' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 5",
    "WITH a AS (SELECT tenant_id, user_id, min(timestamp) AS t, count(DISTINCT event_name) AS n FROM events GROUP BY 1, 2) \
     SELECT e.event_name, a.n, CASE WHEN a.t < e.timestamp THEN 'x' END AS x, \
     row_number() OVER (PARTITION BY e.user_id ORDER BY e.timestamp, e.event_id) AS r \
     FROM events e JOIN a ON a.tenant_id = e.tenant_id AND a.user_id = e.user_id \
     WHERE e.timestamp >= TIMESTAMP '2026-01-01 00:00:00' ORDER BY r LIMIT 5",
];

/// What every worker begins with.
pub struct Prepared {
    /// Through which statements have gone: it is warm.
    session: Session,
    /// The filters of kernel calls, compiled and not yet loaded.
    seal: Seal,
    /// Bytes that operators may take besides, of those that the process begins with, where the server has no more.
    reserve: usize,
}

/// Waits for a statement on the standard input, answers it on the standard output, and ends. Memory with rows comes over a
///
/// Whatever becomes of the statement is said in a frame, after which the process exits: it does not come back from there.
/// socket of its own.
///
/// Errors: when nobody is there to ask or to listen; when memory does not come.
pub fn serve(Prepared { session, seal, reserve }: Prepared, memory: UnixStream) -> io::Result<()> {
    let mut stdout = io::stdout();
    let (runtime, end_after) = match runtime().and_then(|runtime| Ok((runtime, spawn_end()?))) {
        Ok(threads) => threads,
        Err(error) => return say_unfit(&mut stdout, &format!("its threads: {error}")),
    };
    if let Err(error) = seal.begin() {
        return say_unfit(&mut stdout, &format!("what it gives up: {error}"));
    }
    stdout.write_all(READY)?;
    stdout.flush()?;
    // A copy has none of the memory and code mapped that the template has: it is touched before a statement comes. One that
    // comes at once does not wait for it.
    let first = session.clone();
    drop(runtime.spawn(async move { answer_first(first).await }));
    let mut stdin = io::stdin().lock();
    let (request, ask, opened) = wait_for_statement(&mut stdin, &mut stdout, &runtime)?;
    drop(stdin);
    let wall = Duration::from_millis(ask.wall_ms);
    let deadline = Instant::now() + wall;
    // Whatever computes: the server may be gone, and the runtime waits for what does not yield.
    let _ = end_after.send(wall + LINGER);
    let opened = opened.filter(|opened| opened.is_of(&request.segments));
    let opened = match opened {
        Some(opened) => Ok(opened),
        None => {
            OpenSegments::open(&request.head.directory, request.segments, &load_parts(ask_for_part))
        }
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(Error::Io { kind: io::ErrorKind::NotFound, .. }) => {
            end(&Frame::SnapshotGone);
        }
        Err(error) => end(&Frame::Refused(Refusal::new(Reason::Broken, error.to_string()))),
    };
    // Like files, it can be mapped only before everything is given up.
    let shared = match receive_memory(memory, request.head.memory).and_then(map_all) {
        Ok(shared) => shared,
        Err(error) => {
            let message = format!("memory with rows cannot be mapped: {error}");
            end(&Frame::Refused(Refusal::new(Reason::Broken, message)));
        }
    };
    if let Err(error) = seal.close() {
        let message = format!("the process cannot give up what it need not have: {error}");
        end(&Frame::Refused(Refusal::new(Reason::Broken, message)));
    }
    // It is never taken down: the process ends as it is.
    let _session = session.clone();
    // On a thread of the runtime, which has the stack for it. It says the last word itself: another thread would have to
    // wake up for it.
    let has_recent = request.head.has_recent;
    let answering = runtime.spawn(async move {
        let mut out = Stdout::default();
        let rows = RowSources { opened, shared, has_recent };
        let answered = answer(session, rows, reserve, &ask, &mut out);
        let last = answered.await.map_or_else(Frame::Refused, Frame::Done);
        end_behind(out, &last)
    });
    let ended =
        runtime.block_on(async { tokio::time::timeout_at(deadline.into(), answering).await });
    let refusal = match ended {
        // A fault of the library that this statement met; what it said is nothing to show.
        Ok(_) => Refusal::invalid("a function of this statement fails"),
        Err(_) => {
            let message = format!("the statement took longer than {} s", wall.as_secs_f64());
            Refusal::new(Reason::TooSlow, message)
        }
    };
    end(&Frame::Refused(refusal))
}

/// What a statement is answered from: segments, rows that were mapped, and rows that are still to come, if there are any.
/// The last rows are read when the statement has been admitted, since the server has to gather them.
struct RowSources {
    opened: OpenSegments,
    shared: Vec<View>,
    has_recent: bool,
}

/// Answers a statement. Where the server has no more memory, operators may take `reserve` bytes besides.
///
/// Errors: a statement that is refused, by the gate or later; a server that is gone.
async fn answer(
    session: Session,
    rows: RowSources,
    reserve: usize,
    ask: &Ask,
    out: &mut Stdout,
) -> Result<Done, Refusal> {
    let RowSources { opened, shared, has_recent } = rows;
    let broken = |error: io::Error| Refusal::new(Reason::Broken, error.to_string());
    let statement = gate::admit(&ask.sql)?;
    let recent = match has_recent {
        true => {
            out.send(Frame::NeedMemtable).and_then(|()| out.flush()).map_err(broken)?;
            read_recent(&mut io::stdin().lock()).map_err(broken)?
        }
        false => Vec::new(),
    };
    // Rows have come: what the server sends from now on is memory.
    session.ask_for_memory(asking(reserve, ask_for_memory));
    let scan = opened.with_rows(shared, recent);
    let scan = scan.map_err(|error| Refusal::new(Reason::Broken, error.to_string()))?;
    // The last one is nobody's: what it shows is never taken down either.
    let scan = Arc::new(scan);
    let _ = Arc::into_raw(Arc::clone(&scan));
    session::answer_admitted(session, scan, statement, ask, out).await
}

/// Asks the server for memory that operators count, and for as much again that they do not count: copies while rows become one
///
/// ```text
/// reserve 100 MiB, the server has 500
/// lacks 200     asks for 400, granted              reserve 100 + 400 - 200 = 300
/// lacks 100     asks for 200, refused; for 100     granted, and is counted in full: reserve 300
/// lacks 250     both are refused                   from the reserve, which is 50 then
/// lacks 51      both are refused                   0: the operator fails
/// ```
/// batch, batches between operators. Where the server has not so much it is asked for what is counted alone, and then what was not
/// counted is counted.
fn asking(
    mut reserve: usize,
    mut ask: impl FnMut(usize) -> usize + Send + 'static,
) -> AskForMemory {
    Box::new(move |bytes| {
        let granted = match ask(bytes.saturating_mul(UNCOUNTED)) {
            0 => ask(bytes),
            granted => granted,
        };
        if granted == 0 && bytes > reserve {
            return 0;
        }
        reserve = reserve.saturating_add(granted).saturating_sub(bytes);
        bytes
    })
}

/// Asks the server for so many bytes: all of them or none are granted. A server that is gone grants none.
///
/// The frame `M` with 8 bytes; 8 bytes come back on the standard input. The limit of the process is raised by as much before anything is allocated.
fn ask_for_memory(bytes: usize) -> usize {
    let granted = || -> io::Result<u64> {
        let granted = ask(&Frame::MoreMemory(bytes as u64), read_granted)?;
        confine::grow_memory(granted)?;
        Ok(granted)
    };
    granted().ok().and_then(|granted| usize::try_from(granted).ok()).unwrap_or(0)
}

/// Asks the server for a part of a segment, and returns when it is in the directory.
///
/// Errors: the server cannot fetch it, or is gone.
fn ask_for_part(part: SegmentPart) -> io::Result<()> {
    match ask(&Frame::NeedPart(part), read_part_answer)? {
        true => Ok(()),
        false => Err(io::Error::other("a part of a segment could not be fetched")),
    }
}

/// Sends a frame and reads its answer. Threads that ask at once wait for each other: an answer does not say what it is to.
fn ask<T>(
    frame: &Frame,
    answer: impl FnOnce(&mut io::StdinLock<'static>) -> io::Result<T>,
) -> io::Result<T> {
    let mut stdin = io::stdin().lock();
    {
        let mut stdout = io::stdout().lock();
        frame.write(&mut stdout)?;
        stdout.flush()?;
    }
    answer(&mut stdin)
}

/// How parts of segments come: by this.
fn load_parts(ask: impl Fn(SegmentPart) -> io::Result<()> + Send + Sync + 'static) -> LoadParts {
    Arc::new(move |segment, part| {
        let segment = segment.into_bytes();
        ask(SegmentPart { segment, start: part.start, end: part.end })
    })
}

/// A thread that ends the process so long after it was told to.
/// Nothing happens until a duration is sent: a worker may wait for its statement for hours.
fn spawn_end() -> io::Result<mpsc::Sender<Duration>> {
    let (sender, receiver) = mpsc::channel();
    let ending = std::thread::Builder::new().name("inlay-sql-end".to_owned());
    ending.spawn(move || {
        if let Ok(time) = receiver.recv() {
            std::thread::sleep(time);
            std::process::exit(1);
        }
    })?;
    Ok(sender)
}

/// Maps each piece of shared memory for reading.
fn map_all(descriptors: Vec<OwnedFd>) -> io::Result<Vec<View>> {
    descriptors.into_iter().map(|descriptor| SharedMemory::received(descriptor)?.map()).collect()
}

/// Opens what is asked for until a statement comes, and checks what rows are read from. What cannot be opened ahead of
///
/// While it waits for the next request, a thread checks the segments that are open, and stops when a request begins to arrive.
///
/// Errors: `UnexpectedEof` when the server has closed the pipe.
/// need is not missed: the statement says what it is about, and is told.
fn wait_for_statement(
    input: &mut impl io::Read,
    output: &mut impl Write,
    runtime: &Runtime,
) -> io::Result<(Request, Ask, Option<OpenSegments>)> {
    let mut opened: Option<OpenSegments> = None;
    let (is_asked, mut has_touched) = (Arc::<AtomicBool>::default(), false);
    loop {
        let has_come = AtomicBool::new(false);
        let mut request = std::thread::scope(|scope| {
            if let Some(opened) = &opened {
                let is_over = || has_come.load(Ordering::Relaxed);
                // Without a thread nothing is checked ahead.
                let checking = std::thread::Builder::new().name("inlay-sql-ahead".to_owned());
                let _ = checking.spawn_scoped(scope, move || opened.verify_ahead(&is_over));
            }
            let read = read_request(input, |head| {
                has_come.store(true, Ordering::Relaxed);
                is_asked.store(head.ask.is_some(), Ordering::Relaxed);
                match head.ask {
                    Some(_) => Frame::Accepted.write(output).and_then(|()| output.flush()),
                    None => Ok(()),
                }
            });
            has_come.store(true, Ordering::Relaxed);
            read
        })?;
        match request.head.ask.take() {
            Some(ask) => return Ok((request, ask, opened)),
            None => {
                // Nobody would answer yet.
                let load = load_parts(|_| Err(io::ErrorKind::Unsupported.into()));
                opened = OpenSegments::open(&request.head.directory, request.segments, &load).ok();
                if !has_touched {
                    has_touched = true;
                    touch_heaps(runtime, &is_asked);
                }
            }
        }
    }
}

/// Has each thread of the runtime take memory and give it back, which its heap keeps: a page that is touched first while a
/// statement runs costs a fault, together up to a quarter of its time. It ends when a statement comes.
fn touch_heaps(runtime: &Runtime, is_asked: &Arc<AtomicBool>) {
    let arrived = Arc::<AtomicUsize>::default();
    for _ in 0..THREADS {
        let (arrived, is_asked) = (Arc::clone(&arrived), Arc::clone(is_asked));
        drop(runtime.spawn(async move {
            // Each of the threads is here once: none does the other's.
            arrived.fetch_add(1, Ordering::Relaxed);
            while arrived.load(Ordering::Relaxed) < THREADS && !is_asked.load(Ordering::Relaxed) {
                std::thread::sleep(TOUCH_WAIT);
            }
            let mut blocks = Vec::new();
            while blocks.len() < TOUCHED_BLOCKS && !is_asked.load(Ordering::Relaxed) {
                blocks.push(vec![u8::MAX; TOUCHED_BLOCK_BYTES]);
            }
            std::hint::black_box(&blocks);
        }));
    }
}

/// Everything that can be done before there is a worker. No thread of it is left. A worker begins with `base_bytes` of memory and
///
/// Steps and their errors: `its limits: …`, `its threads: …`, `its first statement: …`.
/// may write to `most_bytes` when it has got all that it can.
///
/// Errors: what the process is not given.
pub fn prepare(base_bytes: u64, most_bytes: u64) -> io::Result<Prepared> {
    let step = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| io::Error::other(format!("{what}: {error}"))
    };
    confine::limits(base_bytes, most_bytes).map_err(step("its limits"))?;
    let pool_bytes = usize::try_from(base_bytes / POOL_SHARE).unwrap_or(usize::MAX);
    // One thread with the stack for it, which is there or not: a runtime that gets one of two threads waits for ever.
    let warming = std::thread::Builder::new().stack_size(STACK_BYTES);
    let warming = warming.spawn(move || warm(pool_bytes)).map_err(step("its threads"))?;
    let warmed = warming.join().unwrap_or_else(|_| Err(io::Error::other("the library fails")));
    let session = warmed.map_err(step("its first statement"))?;
    Ok(Prepared { session, seal: Seal::new()?, reserve: pool_bytes })
}

/// Says that there will be no worker, and why.
///
/// Errors: when nobody is there to listen.
pub fn say_unfit(out: &mut impl Write, why: &str) -> io::Result<()> {
    out.write_all(UNFIT)?;
    out.write_all(why.as_bytes())?;
    out.flush()
}

/// Threads for a statement. Where there are too few, the process ends.
fn runtime() -> io::Result<Runtime> {
    // A runtime that gets one of two threads panics, and then waits for ever for the one to end.
    std::panic::set_hook(Box::new(|why| {
        let why = why.payload_as_str().unwrap_or("there are too few");
        let _ = say_unfit(&mut io::stdout(), &format!("its threads: {why}"));
        std::process::exit(1);
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_stack_size(STACK_BYTES)
        .thread_name("inlay-sql")
        .enable_time()
        .build();
    drop(std::panic::take_hook());
    runtime
}

/// Says the last word. What still runs is not waited for, whether anybody was told or not.
fn end(last: &Frame) -> ! {
    end_behind(Stdout::default(), last)
}

/// Says the last word behind what was not sent yet, and waits until the server has heard it: to take down a process keeps a
/// processor for milliseconds, in which the answer would not go on.
fn end_behind(mut out: Stdout, last: &Frame) -> ! {
    let told = last.write(&mut out.0).and_then(|()| out.flush());
    if told.is_ok() {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    }
    std::process::exit(i32::from(told.is_err()))
}

/// Bytes of frames that are written together.
/// A small answer is one call of the kernel for columns, rows and the end, unless memory is asked for in between.
const SENT_TOGETHER: usize = 32 << 10;

/// Frames to the standard output, which are sent when there are enough.
#[derive(Default)]
struct Stdout(Vec<u8>);

impl Stdout {
    /// Sends what was not sent yet.
    fn flush(&mut self) -> io::Result<()> {
        // Frames of two threads do not mix.
        let mut stdout = io::stdout().lock();
        stdout.write_all(&self.0)?;
        self.0.clear();
        stdout.flush()
    }
}

impl Out for Stdout {
    fn send(&mut self, frame: Frame) -> io::Result<()> {
        frame.write(&mut self.0)?;
        if self.0.len() < SENT_TOGETHER {
            return Ok(());
        }
        self.flush()
    }
}

/// Frames to nobody.
struct Nowhere;

impl Out for Nowhere {
    fn send(&mut self, _: Frame) -> io::Result<()> {
        Ok(())
    }
}

/// A session through which statements have gone.
fn warm(pool_bytes: usize) -> io::Result<Session> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let made = |refusal: Refusal| io::Error::other(refusal.message);
    let session = session::blank(THREADS, pool_bytes).map_err(made)?;
    runtime.block_on(answer_first(session.clone())).map_err(made)?;
    Ok(session)
}

/// Answers statements over nothing that have what most have: groups, joins, windows, orders.
async fn answer_first(session: Session) -> Result<(), Refusal> {
    for sql in FIRST {
        let ask = Ask {
            sql: sql.to_owned(),
            params: Vec::new(),
            form: Form::Rows,
            rows_max: 1,
            bytes_max: 1,
            wall_ms: 0,
        };
        let scan = Arc::new(Scan::empty());
        session::answer(session.clone(), scan, &ask, &mut Nowhere).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn what_was_not_counted_is_counted_when_the_server_has_no_more() {
        let (free, asked) = (Arc::new(Mutex::new(500)), Arc::new(Mutex::new(Vec::new())));
        let (server, seen) = (Arc::clone(&free), Arc::clone(&asked));
        let mut grow = asking(100, move |bytes| {
            seen.lock().unwrap().push(bytes);
            let mut free = server.lock().unwrap();
            if bytes > *free {
                return 0;
            }
            *free -= bytes;
            bytes
        });
        assert_eq!(grow(200), 200, "and 200 that are not counted");
        assert_eq!(grow(100), 100, "which is all that the server has");
        assert_eq!(asked.lock().unwrap().split_off(0), [400, 200, 100]);
        assert_eq!(grow(301), 0, "more than the process has");
        assert_eq!((grow(250), grow(50)), (250, 50), "the reserve, and what was not counted");
        assert_eq!(grow(1), 0);
    }
}
