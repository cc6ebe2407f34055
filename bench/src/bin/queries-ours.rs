//! Our side of `bench/peers/queries.py`: loads its rows into a data directory, and answers its
//! questions with the time that each took.
//!
//!     queries-ours load ROWS_FILE DATA_DIR
//!     queries-ours serve DATA_DIR [--rows]
//!
//! The time goes from the question to the bytes of the JSON answer, within the process. Unless a question says
//! `"again": true`, nothing is used that was kept from the same question before; with `--rows` no rollups
//! either. The protocol is in the script.

#![expect(clippy::disallowed_methods, reason = "rows come from a file that is not of the engine")]

use std::{
    error::Error,
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    sync::Arc,
    time::Instant,
};

use inlay_engine::{
    Answer, Clock, Control, Engine, Event, Granularity, ManualClock, Metric, Namespace, Options,
    Query, SystemClock, TextFilter, Value,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};

#[path = "../../../server/src/base/instant.rs"]
#[expect(dead_code, reason = "buckets are written, and no other form of an instant")]
mod instant;

use instant::Instants;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One of the ways to ask an engine.
type How = fn(&Engine, &Query, &dyn Control) -> inlay_engine::Result<Answer>;

const BATCH_ROWS: usize = 5_000;
const HOUR_MS: i64 = 3_600_000;
/// A day is over six hours after its end, and quiet after another; the rest is for late rows.
const HOURS_UNTIL_SEALED: usize = 26;
/// Columns of the file that are not properties.
const FIXED: [&str; 5] = ["tenant", "name", "time_ms", "event_id", "user_id"];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", rows, directory] => load(Path::new(rows), Path::new(directory)),
        ["serve", directory] => serve(Path::new(directory), Engine::query_uncached),
        ["serve", directory, "--rows"] => serve(Path::new(directory), Engine::query_rows),
        _ => Err("queries-ours load ROWS_FILE DATA_DIR | serve DATA_DIR [--rows]".into()),
    }
}

/// The machine's clock, ahead by what a load has not waited for.
#[derive(Default)]
struct AheadClock(ManualClock);

impl Clock for AheadClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms() + self.0.now_ms()
    }
}

fn open(directory: &Path, clock: Arc<AheadClock>) -> Result<Engine> {
    Ok(Engine::open_directory(
        directory,
        Options { clock, background: false, ..Options::default() },
    )?)
}

/// Rows become events in the order of the file, merged beside it by the rules of a server. Then the clock goes on hour by
/// hour until everything is sealed, as a server would have done with the rows of a minute.
fn load(rows: &Path, directory: &Path) -> Result<()> {
    let clock = Arc::new(AheadClock::default());
    let engine = open(directory, clock.clone())?;
    let mut lines = BufReader::new(File::open(rows)?).lines();
    let header = lines.next().ok_or("the file is empty")??;
    let names: Vec<&str> = header.split('\t').collect();
    if names.get(..FIXED.len()) != Some(&FIXED[..]) {
        return Err(format!("the file starts with {header:?}").into());
    }
    let mut batch = engine.batch(Namespace(1));
    for line in lines {
        let line = line?;
        let values: Vec<&str> = line.split('\t').collect();
        let (mut strings, mut numbers) = (Vec::new(), Vec::new());
        for (&name, &value) in names.iter().zip(&values).skip(FIXED.len()) {
            // A property whose values are numbers is one.
            match value.parse::<f64>() {
                _ if value.is_empty() => {}
                Ok(number) => numbers.push((name, number)),
                Err(_) => strings.push((name, value)),
            }
        }
        let event = Event {
            tenant: values[0],
            name: values[1],
            timestamp_ms: values[2].parse()?,
            event_id: Some(values[3]),
            user_id: Some(values[4]),
        };
        batch.push(&event, &strings, &numbers)?;
        if batch.len() == BATCH_ROWS {
            let full = std::mem::replace(&mut batch, engine.batch(Namespace(1)));
            store(&engine, full)?;
        }
    }
    store(&engine, batch)?;
    engine.flush()?;
    for _ in 0..HOURS_UNTIL_SEALED {
        clock.0.advance(HOUR_MS);
        engine.compact()?;
    }
    engine.close()?;
    Ok(())
}

fn store(engine: &Engine, batch: inlay_engine::Batch) -> Result<()> {
    if !batch.is_empty() {
        engine.ingest(batch, |_, _| Ok::<_, inlay_engine::Error>(()))?;
    }
    if engine.maintain()? {
        engine.compact()?;
    }
    Ok(())
}

fn serve(directory: &Path, how: How) -> Result<()> {
    let engine = open(directory, Arc::default())?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Json = serde_json::from_str(&line?)?;
        let is_again = request["again"].as_bool() == Some(true);
        let asked_how = if is_again { Engine::query } else { how };
        let answer = ask(&engine, &request, asked_how)
            .unwrap_or_else(|error| json!({"error": error.to_string()}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn ask(engine: &Engine, request: &Json, how: How) -> Result<Json> {
    let repeat = request["repeat"].as_u64().unwrap_or(1).max(1);
    let mut wall_ns = Vec::new();
    let mut body = Vec::new();
    let cpu_before = cpu_ns();
    for _ in 0..repeat {
        let started = Instant::now();
        let query = parse(&request["query"])?;
        let answer = how(engine, &query, &|| false)?;
        body.clear();
        write(&query, &answer, &mut body)?;
        wall_ns.push(started.elapsed().as_nanos() as u64);
    }
    let cpu = cpu_ns() - cpu_before;
    let answer: Json = serde_json::from_slice(&body)?;
    Ok(json!({"wall_ns": wall_ns, "cpu_ns": cpu, "answer": answer}))
}

/// Time of all threads of the process.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn parse(asked: &Json) -> Result<Query> {
    let mut query = Query::count(Namespace(1), "", i64::MIN..i64::MIN);
    for (name, value) in asked.as_object().into_iter().flatten() {
        let value = value.as_str().ok_or("a parameter is no string")?;
        match name.as_str() {
            "tenant_id" => query.tenant = Some(value.to_owned()),
            "event_name" => query.event = value.to_owned(),
            "from" => query.from_ms = instant(value)?,
            "to" => query.to_ms = instant(value)?,
            "metric" => query.metric = metric(value)?,
            "numeric_prop" => query.number = Some(value.to_owned()),
            "granularity" => query.granularity = Some(granularity(value)?),
            "group_by" => query.group_by = Some(value.to_owned()),
            "limit" => query.groups_max = value.parse()?,
            _ => {
                let name = name.strip_prefix("f_").ok_or("a parameter is not known")?.to_owned();
                query.texts.push(TextFilter { name, any_of: vec![value.to_owned()] });
            }
        }
    }
    Ok(query)
}

fn instant(text: &str) -> Result<i64> {
    Ok(text.parse::<jiff::Timestamp>()?.as_millisecond())
}

fn metric(name: &str) -> Result<Metric> {
    Ok(match name {
        "count" => Metric::Count,
        "count_unique" => Metric::Distinct,
        "count_unique_approx" => Metric::DistinctApprox,
        "sum" => Metric::Sum,
        "avg" => Metric::Avg,
        "min" => Metric::Min,
        "max" => Metric::Max,
        name => {
            let percent: u8 = name.trim_start_matches('p').trim_end_matches("_approx").parse()?;
            let is_approx = name.ends_with("_approx");
            if is_approx { Metric::PercentileApprox(percent) } else { Metric::Percentile(percent) }
        }
    })
}

fn granularity(name: &str) -> Result<Granularity> {
    Ok(match name {
        "hour" => Granularity::Hour,
        "day" => Granularity::Day,
        "week" => Granularity::Week,
        "month" => Granularity::Month,
        other => return Err(format!("granularity {other}").into()),
    })
}

/// The answer as the server writes it: rows by bucket, then group; instants by the server's own code.
fn write(query: &Query, answer: &Answer, out: &mut Vec<u8>) -> Result<()> {
    let mut instants = Instants::default();
    let mut start = Vec::new();
    out.extend(b"{\"rows\":[");
    let mut separator: &[u8] = b"{";
    for (bucket, &ms) in answer.buckets.iter().enumerate() {
        start.clear();
        if query.granularity.is_some() {
            start.extend(b"\"bucket\":\"");
            instants.write(&mut start, ms);
            start.extend(b"\",");
        }
        for (group, values) in answer.groups.iter().zip(&answer.values) {
            out.extend(separator);
            separator = b",{";
            out.extend(&start);
            if query.group_by.is_some() {
                out.extend(b"\"group\":");
                serde_json::to_writer(&mut *out, &group.as_deref())?;
                out.extend(b",");
            }
            out.extend(b"\"value\":");
            match values[bucket] {
                Value::Integer(value) => serde_json::to_writer(&mut *out, &value)?,
                Value::Number(value) => serde_json::to_writer(&mut *out, &value)?,
                Value::Null => out.extend(b"null"),
            }
            out.extend(b"}");
        }
    }
    out.extend(b"]}");
    Ok(())
}
