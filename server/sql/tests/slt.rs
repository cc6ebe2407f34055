//! Every `.slt` file: statements whose answers DuckDB gave over the same rows (`slt/make.py`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, io, sync::Arc};

use inlay_engine::{Engine, Error, Event, ManualClock, Namespace, Options};
use inlay_sql::{Out, STACK_BYTES, answer, blank};
use inlay_sql_protocol::{Ask, Form, Frame, OutColumn};
use serde_json::Value;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

const NOW_MS: i64 = 1_795_169_856_789;
const ROWS: i64 = 2_000;

/// The rows of `make.py`: some sealed and merged, some sealed, some in memory.
fn engine(directory: &std::path::Path) -> Engine {
    let options = Options {
        clock: Arc::new(ManualClock::new(NOW_MS)),
        background: false,
        ..Options::default()
    };
    let engine = Engine::open_directory(directory, options).unwrap();
    const MODELS: [&str; 7] =
        ["small", "large", "it's", "Größe", "", "a much longer name of a model", "日本"];
    for part in 0..4 {
        let mut batch = engine.batch(Namespace(1));
        for n in (0..ROWS).filter(|n| n % 4 == part) {
            let at = |modulus: i64| usize::try_from(n % modulus).unwrap();
            let (tenant, id, user) =
                (format!("t{}", n * n % 7), format!("e{n}"), format!("u{}", n * 31 % 97));
            let event = Event {
                tenant: &tenant,
                name: ["call", "login", "export"][at(10) / 4],
                timestamp_ms: NOW_MS - n / 2 * 613_000,
                event_id: (n % 4 != 0).then_some(&id),
                user_id: (n % 6 != 0).then_some(&user),
            };
            let (mut texts, mut numbers) = (Vec::new(), Vec::new());
            if n % 11 != 0 {
                texts.push(("model", MODELS[at(7)]));
            }
            if n % 3 != 0 {
                texts.push(("plan", ["free", "pro", "team"][at(9) / 3]));
            }
            if n % 5 != 0 {
                numbers.push(("ms", (n * 7919 % 1000) as f64 / 4.0));
            }
            if n % 13 == 0 {
                numbers.push(("cost", -((n % 100) as f64) * 0.125));
            }
            batch.push(&event, &texts, &numbers).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        if part < 3 {
            engine.flush().unwrap();
        }
        if part == 1 {
            engine.compact().unwrap();
        }
    }
    engine
}

struct Tables {
    engine: Arc<Engine>,
    /// Rows that windows within tenants are computed for at a time; as in a worker without it.
    tenant_rows: Option<usize>,
    runtime: tokio::runtime::Runtime,
}

/// What was answered.
#[derive(Default)]
struct Answer {
    columns: Vec<OutColumn>,
    rows: Vec<u8>,
}

impl Out for Answer {
    fn send(&mut self, frame: Frame) -> io::Result<()> {
        match frame {
            Frame::Columns(columns) => self.columns = columns,
            Frame::Rows(rows) => self.rows.extend(rows),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl DB for Tables {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Refused> {
        let ask = Ask {
            sql: sql.to_owned(),
            params: Vec::new(),
            form: Form::Rows,
            rows_max: 10_000,
            bytes_max: 1 << 24,
            wall_ms: 60_000,
        };
        let scan = Arc::new(self.engine.snapshot(Namespace(1)).open().unwrap());
        let state = blank(2, 512 << 20).map_err(|refusal| Refused(refusal.message))?;
        let state = match self.tenant_rows {
            Some(rows) => state.with_tenant_partitions_of(rows),
            None => state,
        };
        let answering = self.runtime.spawn(async move {
            let mut out = Answer::default();
            answer(state, scan, &ask, &mut out).await.map(|_| out)
        });
        let answer =
            self.runtime.block_on(answering).map_err(|error| Refused(error.to_string()))?;
        let answer = answer.map_err(|refusal| Refused(format!("{refusal:?}")))?;
        let rows: Vec<Vec<Value>> =
            serde_json::from_slice(&[b"[", &*answer.rows, b"]"].concat()).unwrap();
        let show = |row: &Vec<Value>| {
            let cells = row.iter().zip(&answer.columns);
            cells.map(|(value, column)| shown(value, &column.kind)).collect()
        };
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any; answer.columns.len()],
            rows: rows.iter().map(show).collect(),
        })
    }
}

/// A value as `make.py` writes it.
fn shown(value: &Value, kind: &str) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Number(number) if kind == "DOUBLE" => short(number.as_f64().unwrap()),
        Value::String(text) if kind.starts_with("DECIMAL") => short(text.parse().unwrap()),
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        Value::String(text) => text.replace(' ', "_"),
        other => other.to_string(),
    }
}

/// Nine digits, as Python's `.9g` gives them.
fn short(number: f64) -> String {
    let scientific = format!("{number:.8e}");
    let rounded: f64 = scientific.parse().unwrap();
    if rounded == rounded.trunc() && rounded.abs() < 1e9 {
        return format!("{}", rounded as i64);
    }
    let (digits, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if (-4..9).contains(&exponent) {
        return format!("{rounded}");
    }
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[test]
fn statements_have_the_answers_of_another_database() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(engine(directory.path()));
    let (mut statements, mut wrong) = (0, Vec::new());
    let folder = "tests/slt";
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "slt"));
    files.sort();
    for file in files {
        let records =
            sqllogictest::parse_file::<DefaultColumnType>(&file).unwrap_or_else(|e| panic!("{e}"));
        let runner = |tenant_rows| {
            let engine = Arc::clone(&engine);
            Runner::new(move || {
                let engine = Arc::clone(&engine);
                async move {
                    let runtime = tokio::runtime::Builder::new_multi_thread()
                        .worker_threads(2)
                        .thread_stack_size(STACK_BYTES)
                        .build()
                        .map_err(|error| Refused(error.to_string()))?;
                    Ok(Tables { engine, tenant_rows, runtime })
                }
            })
        };
        let (mut as_in_workers, mut by_tenant) = (runner(None), runner(Some(100)));
        for record in records {
            if let sqllogictest::Record::Query { sql, .. } = &record {
                statements += 1;
                if sql.to_lowercase().contains("over") {
                    wrong.extend(by_tenant.run(record.clone()).err());
                }
            }
            wrong.extend(as_in_workers.run(record).err());
        }
    }
    let wrong: Vec<String> = wrong.iter().map(|error| error.display(false).to_string()).collect();
    assert!(wrong.is_empty(), "{} of {statements}:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(statements >= 300, "{statements}");
}
