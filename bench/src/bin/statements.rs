//! Statements over a data directory, in one process: what a worker does once it has been asked, without the
//! server around it. For profiles; the comparison with other stores is `bench/peers/statements.py`.
//!
//!     target/release/statements DIRECTORY NAMESPACE "SELECT …" "SELECT …"
//!
//! Namespaces are listed by `inlay-inspect`. Times are of opening the snapshot as another process does, and of
//! the statement from its text to the last row: the first one, which finds its memory as a new process does, and the
//! quickest of some rounds. `MEMORY_MB` is what operators may take, 512 MiB if it is not set.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and panics to fail")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use inlay_engine::{Engine, Namespace, Options, rows::Scan};
use inlay_sql::{AlignedMemory, Out, STACK_BYTES, answer, blank};
use inlay_sql_protocol::{Ask, Form, Frame};

const ROUNDS: usize = 5;
const THREADS: usize = 2;

/// As in a worker.
#[global_allocator]
static MEMORY: AlignedMemory = AlignedMemory;

/// Frames to nobody.
struct Nowhere;

impl Out for Nowhere {
    fn send(&mut self, _: Frame) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(namespace)) = (arguments.next(), arguments.next()) else {
        return println!("usage: statements DIRECTORY NAMESPACE STATEMENT…");
    };
    let directory = Path::new(&directory);
    let options = Options { background: false, ..Options::default() };
    let engine = Engine::open_directory(directory, options).unwrap();
    let snapshot = engine.snapshot(Namespace(namespace.parse().unwrap())).hand_over();
    let memory_mb = std::env::var("MEMORY_MB").map_or(512, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build()
        .unwrap();
    for sql in arguments {
        let (mut opened, mut answered) = (Duration::MAX, Duration::MAX);
        let (mut first, mut rows) = (None, 0);
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let scan = Arc::new(Scan::receive(directory, snapshot.clone()).unwrap());
            opened = opened.min(started.elapsed());
            let ask = Ask {
                sql: sql.clone(),
                params: Vec::new(),
                form: Form::Rows,
                rows_max: 10_000,
                bytes_max: 64 << 20,
                wall_ms: 0,
            };
            let state = blank(THREADS, memory_mb << 20).unwrap();
            // As in a worker, which never takes it down.
            let shared = Arc::clone(&scan);
            let started = Instant::now();
            let done = runtime.block_on(
                runtime.spawn(async move { answer(state, shared, &ask, &mut Nowhere).await }),
            );
            let took = started.elapsed();
            first.get_or_insert(took);
            answered = answered.min(took);
            rows = done.unwrap().unwrap().rows;
        }
        let first = first.unwrap_or_default();
        println!(
            "open {opened:.1?}, answer {answered:.1?} (first {first:.1?}), {rows} rows: {sql}"
        );
    }
}
