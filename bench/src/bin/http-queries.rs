//! Dashboard questions over HTTP: how long they take alone, and while events arrive at half of the rate that
//! the server takes at most.
//!
//!     http-queries PATH/TO/inlay [EVENTS] [SECONDS]
//!
//! A server is started on a fresh directory and given the workload by four connections; that is its highest
//! rate. Its days are sealed, as they are after a night, and it is started again. Then two connections ask
//! the questions of a dashboard for tenants drawn as events are, one after the other without rest, for some
//! seconds to warm up and some to count; then again while batches of a thousand events arrive. The result is a Markdown table. The client takes its share of the same cores.

#![expect(clippy::print_stdout, reason = "a table is what is asked for")]

use std::{
    error::Error,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use inlay_bench::workload::Workload;
use inlay_engine::{CompactionLimits, Engine, Limits, Options, Rng as _, SeededRng};

type Failure = Box<dyn Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

const BATCH_EVENTS: u64 = 1_000;
const SENDERS: u64 = 4;
const ASKERS: u64 = 2;
const WARM_UP: Duration = Duration::from_secs(5);
/// Bodies that are sent again and again under other ids.
const BODIES: u64 = 32;
/// In event ids, for the number of the batch.
const NUMBER: &str = "@@@@@@@@";
/// Window and shape of the questions of a dashboard; the workload ends on 13 November 2026.
const QUESTIONS: [&str; 8] = [
    "metric=count&granularity=day&from=2026-10-14T00:00:00Z",
    "metric=count_unique&granularity=day&from=2026-10-14T00:00:00Z",
    "metric=avg&numeric_prop=latency_ms&granularity=day&from=2026-10-14T00:00:00Z",
    "metric=count&granularity=day&group_by=model&from=2026-10-14T00:00:00Z",
    "metric=p95&numeric_prop=latency_ms&from=2026-10-14T00:00:00Z",
    "metric=count_unique_approx&from=2026-08-16T00:00:00Z",
    "metric=count&f_status=error&granularity=week&from=2026-08-16T00:00:00Z",
    "metric=sum&numeric_prop=tokens&granularity=hour&from=2026-11-06T00:00:00Z",
];
const TO: &str = "2026-11-13T14:00:00Z";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let binary = words.first().ok_or("http-queries PATH/TO/inlay [EVENTS] [SECONDS]")?;
    let number = |at: usize, default: u64| words.get(at).map_or(Ok(default), |word| word.parse());
    let (events, seconds) = (number(1, 2_000_000)?, number(2, 20)?);
    let server = Server::start(binary)?;
    let workload = Workload::new(1, events);
    let most = load(&server, &workload)?;
    let server = server.after_a_night(binary)?;
    println!("{events} events, sent at {most:.0} a second.\n");
    println!("| | questions a second | p50 | p99 | p99.9 | longest |");
    println!("|---|---|---|---|---|---|");
    let alone = ask_for(&server, Duration::from_secs(seconds))?;
    println!("| alone | {} |", alone.shown());
    let rate = most / 2.0;
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let beside = std::thread::scope(|scope| -> Result<Times> {
        let sender = scope.spawn(|| send_at(&server, &workload, rate, &stop, &sent));
        let started = Instant::now();
        let times = ask_for(&server, Duration::from_secs(seconds));
        let taken = sent.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        sender.join().map_err(|_| "the sender panicked")??;
        println!(
            "| while {taken:.0} events a second arrive | {} |",
            times.as_ref().map_or_else(|_| String::new(), Times::shown)
        );
        times
    })?;
    println!("\n| question | p50, p99 alone | beside events |\n|---|---|---|");
    for (at_kind, question) in QUESTIONS.iter().enumerate() {
        let [alone, beside] = [&alone, &beside].map(|times| {
            let of = &times.kinds[at_kind];
            format!("{:.2}, {:.2} ms", at(of, 0.5) * 1e3, at(of, 0.99) * 1e3)
        });
        println!("| `{question}` | {alone} | {beside} |");
    }
    println!("\np99 beside events is {:.2} times that alone.", beside.at(0.99) / alone.at(0.99));
    Ok(())
}

/// A server of its own, with one organisation.
struct Server {
    process: Child,
    host: String,
    key: String,
    data: Option<tempfile::TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(binary: &str) -> Result<Self> {
        let mut server = Self::start_on(binary, tempfile::tempdir()?)?;
        let account = r#"{"email":"a@example.com","password":"a bench on the loopback","name":"a","org_name":"a"}"#;
        let answer =
            Client::connect(&server.host, "")?.call("POST", "/v1/auth/register", account)?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        answer["api_key"]["key"].as_str().ok_or("no key")?.clone_into(&mut server.key);
        Ok(server)
    }

    /// The same data once everything is merged and sealed, which the server does some hours later.
    fn after_a_night(mut self, binary: &str) -> Result<Self> {
        let data = self.data.take().ok_or("no data")?;
        let key = std::mem::take(&mut self.key);
        drop(self);
        let limits =
            Limits { compaction: CompactionLimits::without_waiting(), ..Limits::default() };
        let options = Options { limits, background: false, ..Options::default() };
        let engine = Engine::open_directory(data.path(), options)?;
        engine.flush()?;
        engine.compact()?;
        engine.close()?;
        drop(engine);
        let mut server = Self::start_on(binary, data)?;
        server.key = key;
        Ok(server)
    }

    fn start_on(binary: &str, data: tempfile::TempDir) -> Result<Self> {
        let mut process = Command::new(binary)
            .arg("serve")
            .env("INLAY_DATA_DIR", data.path())
            .env("INLAY_HTTP_ADDR", "127.0.0.1:0")
            .env("INLAY_GRPC_ADDR", "127.0.0.1:0")
            .env("INLAY_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(out).lines();
        let host = loop {
            let line = lines.next().ok_or("the server ended")??;
            if let Some((_, rest)) = line.split_once("ready at http://") {
                let end = rest.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(rest.len());
                break rest[..end].to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, host, key: String::new(), data: Some(data) })
    }

    fn client(&self) -> Result<Client> {
        Client::connect(&self.host, &self.key)
    }
}

/// One connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    key: String,
}

impl Client {
    fn connect(host: &str, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), key: key.to_owned() })
    }

    /// The body of an answer that is a success.
    fn call(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let (mut status, mut length) = (String::new(), 0);
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse()?;
                }
                Some(_) => {}
            }
        }
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content)?;
        let content = String::from_utf8(content)?;
        if !status.contains(" 200 ") && !status.contains(" 201 ") {
            return Err(format!("{method} {path}: {status} {content}").into());
        }
        Ok(content)
    }
}

/// A body of a thousand events, with their times or without.
fn body(workload: &Workload, first: u64, end: u64, is_timed: bool) -> String {
    let mut out = String::from("{\"events\":[");
    for n in first..end {
        let row = workload.row(n);
        let time = jiff::Timestamp::from_millisecond(row.time_ms).unwrap_or_default();
        let strings: serde_json::Map<_, _> = row
            .strings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        let numbers: serde_json::Map<_, _> =
            row.numbers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let mut event = serde_json::json!({
            "tenant_id": row.tenant,
            "event_name": row.name,
            "event_id": row.event_id,
            "user_id": row.user_id,
            "string_props": strings,
            "numeric_props": numbers,
        });
        if is_timed {
            event["timestamp"] = format!("{time:.3}").into();
        } else {
            event["event_id"] = format!("{NUMBER}{}", &row.event_id[8..]).into();
        }
        let comma = if n == first { "" } else { "," };
        let _ = write!(out, "{comma}{event}");
    }
    out + "]}"
}

/// Sends the whole workload. Returns the events a second, making of bodies not counted.
fn load(server: &Server, workload: &Workload) -> Result<f64> {
    let (next, busy_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let send = || -> Result<()> {
        let mut client = server.client()?;
        loop {
            let first = next.fetch_add(BATCH_EVENTS, Ordering::Relaxed);
            if first >= workload.count() {
                return Ok(());
            }
            let body = body(workload, first, workload.count().min(first + BATCH_EVENTS), true);
            let started = Instant::now();
            client.call("POST", "/v1/events", &body)?;
            busy_ns.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        senders
            .into_iter()
            .try_for_each(|sender| sender.join().map_err(|_| Failure::from("a sender panicked"))?)
    })?;
    let busy = busy_ns.into_inner() as f64 / 1e9 / SENDERS as f64;
    Ok(workload.count() as f64 / busy)
}

/// Sends batches of new events at a rate, until it is told to stop.
fn send_at(
    server: &Server,
    workload: &Workload,
    rate: f64,
    stop: &AtomicBool,
    sent: &AtomicU64,
) -> Result<()> {
    let bodies: Vec<String> = (0..BODIES)
        .map(|n| body(workload, n * BATCH_EVENTS, (n + 1) * BATCH_EVENTS, false))
        .collect();
    let next = AtomicU64::new(0);
    let started = Instant::now();
    let send = || -> Result<()> {
        let mut client = server.client()?;
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = Duration::from_secs_f64((number * BATCH_EVENTS) as f64 / rate);
            std::thread::sleep(due.saturating_sub(started.elapsed()));
            let body = bodies[(number % BODIES) as usize].replace(NUMBER, &format!("{number:08x}"));
            client.call("POST", "/v1/events", &body)?;
            sent.fetch_add(BATCH_EVENTS, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..2).map(|_| scope.spawn(send)).collect();
        senders
            .into_iter()
            .try_for_each(|sender| sender.join().map_err(|_| Failure::from("a sender panicked"))?)
    })
}

/// What answers took, rising, in seconds.
struct Times {
    seconds: Vec<f64>,
    over: f64,
    /// The same of each kind of question.
    kinds: Vec<Vec<f64>>,
}

/// The time within which a share was answered.
fn at(rising: &[f64], share: f64) -> f64 {
    let last = rising.len().saturating_sub(1);
    rising.get((share * last as f64) as usize).copied().unwrap_or_default()
}

impl Times {
    fn at(&self, share: f64) -> f64 {
        at(&self.seconds, share)
    }

    fn shown(&self) -> String {
        let shown = |share| format!("{:.2} ms", self.at(share) * 1e3);
        let rate = self.seconds.len() as f64 / self.over;
        let times = [0.5, 0.99, 0.999, 1.0].map(shown).join(" | ");
        format!("{rate:.0} | {times}")
    }
}

/// Asks without rest.
fn ask_for(server: &Server, time: Duration) -> Result<Times> {
    let started = Instant::now();
    let ask = |seed: u64| -> Result<Vec<(usize, f64)>> {
        let mut client = server.client()?;
        let (rng, mut took) = (SeededRng::new(seed), Vec::new());
        let draw = || rng.below(1 << 32) as f64 / (1u64 << 32) as f64;
        while started.elapsed() < WARM_UP + time {
            // As events are: tenant n has one in n.
            let tenant = 1_000f64.powf(draw()) as u64;
            let kind = (draw() * QUESTIONS.len() as f64) as usize;
            let question = QUESTIONS[kind];
            let path = format!(
                "/v1/query?event_name=api_call&tenant_id=tenant-{tenant}&{question}&to={TO}"
            );
            let asked = Instant::now();
            client.call("GET", &path, "")?;
            if started.elapsed() > WARM_UP {
                took.push((kind, asked.elapsed().as_secs_f64()));
            }
        }
        Ok(took)
    };
    let took = std::thread::scope(|scope| -> Result<Vec<(usize, f64)>> {
        let ask = &ask;
        let askers: Vec<_> = (0..ASKERS).map(|seed| scope.spawn(move || ask(seed))).collect();
        let mut all = Vec::new();
        for asker in askers {
            all.extend(asker.join().map_err(|_| "an asker panicked")??);
        }
        Ok(all)
    })?;
    let of = |kind: Option<usize>| {
        let asked = took.iter().filter(|(of, _)| kind.is_none_or(|kind| *of == kind));
        let mut seconds: Vec<f64> = asked.map(|(_, seconds)| *seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds
    };
    let kinds = (0..QUESTIONS.len()).map(|kind| of(Some(kind))).collect();
    Ok(Times { seconds: of(None), over: time.as_secs_f64(), kinds })
}
