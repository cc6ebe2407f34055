//! Statements over a snapshot of an engine, in this process.

use std::sync::Arc;

use datafusion_physical_plan::{ExecutionPlan, displayable};
use datafusion_sql::sqlparser::{dialect::PostgreSqlDialect, parser::Parser};
use inlay_engine::{Engine, Error, Event, ManualClock, Namespace, Options};
use serde_json::json;

use super::*;
use inlay_sql_protocol::{Form, Frame, OutColumn, Reason};

const HOUR_MS: i64 = 3_600_000;
const NOW_MS: i64 = 20_000 * 24 * HOUR_MS;

#[derive(Default)]
struct Kept {
    columns: Vec<OutColumn>,
    rows: Vec<u8>,
}

impl Out for Kept {
    fn send(&mut self, frame: Frame) -> std::io::Result<()> {
        match frame {
            Frame::Columns(columns) => self.columns = columns,
            Frame::Rows(rows) => self.rows.extend(rows),
            _ => {}
        }
        Ok(())
    }
}

/// An engine without rows.
fn empty_engine(directory: &std::path::Path) -> Engine {
    let options = Options {
        clock: Arc::new(ManualClock::new(NOW_MS)),
        background: false,
        ..Options::default()
    };
    Engine::open_directory(directory, options).unwrap()
}

/// An engine with sealed rows and recent ones of two namespaces.
fn engine(directory: &std::path::Path) -> Engine {
    let engine = empty_engine(directory);
    for part in 0..2 {
        for namespace in [1, 2] {
            let mut batch = engine.batch(Namespace(namespace));
            for n in (0..1_000u32).filter(|n| n % 2 == part) {
                let (id, user) = (format!("e{n}"), format!("u{}", n % 50));
                let event = Event {
                    tenant: ["acme", "beta"][n as usize % 2 * (n as usize / 2 % 2)],
                    name: ["call", "login"][usize::from(n.is_multiple_of(5))],
                    timestamp_ms: NOW_MS - i64::from(n) * HOUR_MS / 4,
                    event_id: Some(&id),
                    user_id: (!n.is_multiple_of(10)).then_some(&user),
                };
                let plan = ["free", "pro", "a plan with a long name"][n as usize % 3];
                let marker = format!("org {namespace}");
                let texts = [("plan", plan), ("org", &*marker)];
                // A zero may have a sign.
                let ms = if n.is_multiple_of(200) { -0.0 } else { f64::from(n % 100) };
                let numbers = [("ms", ms), ("rare", 1.5)];
                let numbers = &numbers[..1 + usize::from(n.is_multiple_of(250))];
                batch
                    .push(&event, &texts[..2 - usize::from(n.is_multiple_of(4))], numbers)
                    .unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        }
        if part == 0 {
            engine.flush().unwrap();
        }
    }
    engine
}

fn ask(engine: &Engine, ask: Ask) -> Result<(Kept, Done), Refusal> {
    ask_within(engine, ask, 512 << 20)
}

/// An answer with so much memory for operators.
fn ask_within(engine: &Engine, ask: Ask, pool_bytes: usize) -> Result<(Kept, Done), Refusal> {
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(64 << 20)
        .build()
        .unwrap();
    let state = blank(2, pool_bytes).unwrap();
    let answering = runtime.spawn(async move {
        let mut out = Kept::default();
        answer(state, scan, &ask, &mut out).await.map(|done| (out, done))
    });
    runtime.block_on(answering).unwrap()
}

fn plain(sql: &str, params: Vec<Value>, form: Form) -> Ask {
    Ask { sql: sql.to_owned(), params, form, rows_max: 10_000, bytes_max: 1 << 20, wall_ms: 10_000 }
}

fn rows(engine: &Engine, sql: &str) -> Value {
    let (kept, _) = ask(engine, plain(sql, Vec::new(), Form::Rows))
        .unwrap_or_else(|refusal| panic!("{sql}: {refusal:?}"));
    serde_json::from_slice(&[b"[", &*kept.rows, b"]"].concat()).unwrap()
}

#[test]
fn statements_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let cases = [
        ("SELECT count(*) FROM events", json!([[1000]])),
        (
            "SELECT timestamp < TIMESTAMP '1970-01-01', count(*) FROM events GROUP BY ROLLUP (timestamp < TIMESTAMP '1970-01-01') ORDER BY 1",
            json!([[false, 1000], [null, 1000]]),
        ),
        (
            "SELECT event_name, count(*) AS n FROM events GROUP BY event_name ORDER BY n DESC",
            json!([["call", 800], ["login", 200]]),
        ),
        (
            "SELECT tenant_id, count(*), sum(numeric_props['ms']) FROM events GROUP BY 1 ORDER BY 1",
            json!([["acme", 750, 36750.0], ["beta", 250, 12750.0]]),
        ),
        (
            "SELECT string_props['plan'] AS plan, count(*) FROM events WHERE event_name = 'login' GROUP BY 1 ORDER BY 1",
            json!([["a plan with a long name", 67], ["free", 67], ["pro", 66]]),
        ),
        (
            "SELECT count(*) FROM events WHERE string_props['plan'] IN ('pro', 'free') AND numeric_props['ms'] >= 50 AND tenant_id = 'beta'",
            json!([[87]]),
        ),
        ("SELECT count(*) FROM events WHERE string_props['org'] IS NULL", json!([[250]])),
        // There is one zero, in lists, groups and choices.
        ("SELECT count(*) FROM events WHERE numeric_props['ms'] IN (0, 7, 8, 9)", json!([[40]])),
        ("SELECT count(*) FROM events WHERE numeric_props['ms'] IN (-0.0, 7, 8, 9)", json!([[40]])),
        ("SELECT count(*) FROM events WHERE numeric_props['ms'] = -0.0", json!([[10]])),
        (
            "SELECT count(DISTINCT numeric_props['ms']), count(DISTINCT tenant_id) FROM events WHERE numeric_props['ms'] <= 0",
            json!([[1, 1]]),
        ),
        (
            "SELECT count(*) FROM events WHERE CASE numeric_props['ms'] WHEN 0 THEN true ELSE false END",
            json!([[10]]),
        ),
        // Texts that are grouped by, under more than one name, and counted.
        (
            "SELECT a, b, count(*), count(DISTINCT user_id) FROM (SELECT string_props['plan'] AS a, string_props['plan'] AS b, \
             user_id FROM events WHERE string_props['org'] IS NULL) x GROUP BY a, b ORDER BY a",
            json!([
                ["a plan with a long name", "a plan with a long name", 83, 20],
                ["free", "free", 84, 20],
                ["pro", "pro", 83, 20]
            ]),
        ),
        (
            "SELECT tenant_id, string_props['none'], count(DISTINCT string_props['org']) FROM events GROUP BY 1, 2 ORDER BY 1",
            json!([["acme", null, 1], ["beta", null, 1]]),
        ),
        // Finer than the events' own times.
        (
            "SELECT count(*) FROM events WHERE timestamp < TIMESTAMP '2024-10-03 23:45:00.000500'",
            json!([[999]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp > '2024-10-03 23:44:59.999999'",
            json!([[2]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp = TIMESTAMP '2024-10-03 23:45:00.000001'",
            json!([[0]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp <> TIMESTAMP '2024-10-03 23:45:00.000001'",
            json!([[1000]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp IN (TIMESTAMP '2024-10-03 23:45:00.0005')",
            json!([[0]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp = TIMESTAMP '2024-10-03 23:45:00'",
            json!([[1]]),
        ),
        // Of an instant and a time of day there: both in UTC.
        (
            "SELECT count(*) FROM events WHERE timestamp AT TIME ZONE 'Europe/Berlin' < TIMESTAMP '2024-10-03 21:45:00'",
            json!([[998]]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp AT TIME ZONE 'America/New_York' >= TIMESTAMPTZ '2024-10-04 03:45:00+00:00'",
            json!([[2]]),
        ),
        ("SELECT count(*) FROM events WHERE string_props['plan'] LIKE 'a plan%'", json!([[333]])),
        (
            "SELECT count(numeric_props['rare']), count(string_props['none']) FROM events",
            json!([[4, 0]]),
        ),
        (
            "SELECT timestamp, event_id, user_id, string_props, numeric_props FROM events ORDER BY timestamp DESC LIMIT 2",
            json!([
                ["2024-10-04T00:00:00.000Z", "e0", null, {"plan": "free"}, {"ms": 0.0, "rare": 1.5}],
                ["2024-10-03T23:45:00.000Z", "e1", "u1", {"org": "org 1", "plan": "pro"}, {"ms": 1.0}],
            ]),
        ),
        (
            "SELECT count(*) FROM events WHERE timestamp >= TIMESTAMP '2024-10-03 00:00:00' AND timestamp < '2024-10-04'",
            json!([[96]]),
        ),
        (
            "SELECT date_trunc('day', timestamp) AS day, count(*) FROM events GROUP BY 1 ORDER BY 1 DESC LIMIT 2",
            json!([["2024-10-04T00:00:00.000Z", 1], ["2024-10-03T00:00:00.000Z", 96]]),
        ),
        (
            "WITH t AS (SELECT string_props AS s, numeric_props['ms'] AS ms FROM events) SELECT s['plan'], max(ms) FROM t GROUP BY 1 ORDER BY 1 LIMIT 1",
            json!([["a plan with a long name", 99.0]]),
        ),
        (
            "SELECT e.string_props['plan'] AS p, count(*) FROM (SELECT * FROM events LIMIT 1000) e GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
            json!([["free", 334]]),
        ),
        (
            "SELECT day, sum(count), approx_distinct_merge(users_state) FROM events_daily GROUP BY day ORDER BY day DESC LIMIT 2",
            json!([["2024-10-04T00:00:00.000Z", 1, 0], ["2024-10-03T00:00:00.000Z", 96, 45]]),
        ),
        (
            "SELECT sum(count) FROM events_hourly WHERE hour >= '2024-10-03' AND tenant_id = 'acme' AND event_name = 'call'",
            json!([[58]]),
        ),
        (
            "SELECT round(approx_percentile_merge(numeric_states['ms'], 0.5)) FROM events_hourly",
            json!([[50.0]]),
        ),
        (
            "SELECT a.tenant_id, b.n FROM (SELECT DISTINCT tenant_id FROM events) a JOIN (SELECT tenant_id, sum(count) AS n FROM events_daily GROUP BY 1) b USING (tenant_id) ORDER BY 1",
            json!([["acme", 750], ["beta", 250]]),
        ),
        (
            "SELECT 9007199254740993, 1.5, 'x', NULL, true, 1e308 * 10, DATE '2024-01-02', INTERVAL '1 day' > INTERVAL '1 hour'",
            json!([["9007199254740993", 1.5, "x", null, true, "Infinity", "2024-01-02", true]]),
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(rows(&engine, sql), expected, "{sql}");
    }
}

#[test]
fn answers_come_in_three_forms_and_end_at_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let sql = "SELECT event_id, $1 AS x, '=1+1' AS f FROM events WHERE numeric_props['rare'] > $2 ORDER BY timestamp DESC";
    let params = vec![json!("é,"), json!(1)];
    let of = |form| {
        let (kept, done) = ask(&engine, plain(sql, params.clone(), form)).unwrap();
        (String::from_utf8(kept.rows).unwrap(), done, kept.columns)
    };
    let (rows, done, columns) = of(Form::Rows);
    assert_eq!(rows.lines().next().unwrap().split("],").count(), 4);
    assert_eq!(done, Done { rows: 4, truncated: false });
    let kinds: Vec<&str> = columns.iter().map(|column| &*column.kind).collect();
    assert_eq!(kinds, ["VARCHAR"; 3]);
    assert!(
        of(Form::Csv).0.starts_with("event_id,x,f\r\ne0,\"é,\",'=1+1\r\n"),
        "{}",
        of(Form::Csv).0
    );
    let first = "{\"event_id\":\"e0\",\"x\":\"é,\",\"f\":\"=1+1\"}\n";
    assert!(of(Form::Lines).0.starts_with(first), "{}", of(Form::Lines).0);
    let few = Ask { rows_max: 3, ..plain("SELECT * FROM events", Vec::new(), Form::Rows) };
    assert_eq!(ask(&engine, few).unwrap().1, Done { rows: 3, truncated: true });
    let small =
        Ask { bytes_max: 100, ..plain("SELECT event_id FROM events", Vec::new(), Form::Rows) };
    let (kept, done) = ask(&engine, small).unwrap();
    assert!(done.truncated && done.rows > 3 && kept.rows.len() <= 100);
}

#[test]
fn mistakes_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let refused = |sql: &str, params: Vec<Value>| match ask(&engine, plain(sql, params, Form::Rows))
    {
        Ok(_) => panic!("{sql} was answered"),
        Err(refusal) => refusal,
    };
    let refusal = refused("SELECT 1,\n tenant FROM events", Vec::new());
    assert_eq!(refusal.position, Some((2, 2)), "{refusal:?}");
    assert!(refusal.hint.as_ref().unwrap().starts_with("did you mean tenant_id?"), "{refusal:?}");
    for (sql, part) in [
        ("SELECT * FROM event", "event"),
        ("SELECT * FROM information_schema.tables", "information_schema"),
        ("SELECT * FROM pg_catalog.pg_class", "pg_c"),
        ("SELECT version()", "version"),
        ("SELECT repeat('x', 10)", "repeat"),
        ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
        ("SELECT 1 + 'x'", "x"),
        ("SELECT sum(event_name) FROM events", "sum"),
        ("SELECT $1", "$1"),
        ("SELECT a.b.c.d FROM events", "a.b.c.d"),
        ("SELECT count(*) FROM events WHERE", "syntax"),
        ("SELECT count(*) + 9223372036854775807 FROM events", "verflow"),
        ("SELECT length(tenant_id) * 9223372036854775807 FROM events", "verflow"),
        ("SELECT 9223372036854775807 + 1", "verflow"),
        ("SELECT 3 * 9223372036854775807 + count(*) FROM events", "verflow"),
        ("SELECT -(-9223372036854775807 - 1)", "verflow"),
        ("SELECT -n FROM (VALUES (-9223372036854775807 - 1), (1)) AS t(n)", "verflow"),
        ("SELECT max(length(tenant_id) * 9223372036854775807) FROM events", "verflow"),
        ("SELECT avg(length(tenant_id) * 9223372036854775807) FROM events", "verflow"),
        (
            "SELECT count(*) FILTER (WHERE length(tenant_id) * 9223372036854775807 > 0) FROM events",
            "verflow",
        ),
        ("SELECT sum(n) FROM (VALUES (9223372036854775807), (1)) AS t(n)", "out of range"),
        (
            "SELECT k, sum(n) FROM (VALUES (1, 9223372036854775807), (1, 1)) AS t(k, n) GROUP BY k",
            "out of range",
        ),
        (
            "SELECT sum(n) OVER (ORDER BY n) FROM (VALUES (9223372036854775807), (1)) AS t(n)",
            "out of range",
        ),
    ] {
        let refusal = refused(sql, Vec::new());
        assert_eq!(refusal.reason, Reason::Invalid, "{sql}: {refusal:?}");
        assert!(refusal.message.contains(part), "{sql}: {refusal:?}");
    }
    assert_eq!(refused("SELECT 1", vec![json!(1)]).message, "params[0] is not used as $1");
    assert_eq!(refused("SELECT $2", vec![json!(1)]).message, "$2 has no value: params holds 1");
    assert_eq!(refused("SELECT $1", vec![json!([1])]).reason, Reason::Invalid);
}

/// The operators of a statement, a line each.
fn planned(engine: &Engine, sql: &'static str) -> String {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(64 << 20).build().unwrap();
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let plan =
        runtime.spawn(async move { displayable(&*physical(&scan, sql)).indent(false).to_string() });
    // Columns of properties end with a NUL.
    runtime.block_on(plan).unwrap().replace('\0', "")
}

#[test]
fn properties_are_read_as_columns_and_conditions_by_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let planned = |sql| planned(&engine, sql);
    for sql in [
        "SELECT string_props['plan'], count(*) FROM events WHERE numeric_props['ms'] > 3 AND tenant_id = 'acme' GROUP BY 1",
        "SELECT avg(numeric_props['ms']) FROM events WHERE string_props['plan'] IN ('a', 'b', 'c', 'd', 'e') AND timestamp >= '2024-10-01'",
        "SELECT string_props['plan'], count(*) FROM events WHERE string_props['org'] LIKE 'o%' GROUP BY 1",
        "SELECT DISTINCT plan FROM (SELECT string_props['plan'] AS plan FROM events) x",
        "SELECT plan, min(at), max(at) FROM (SELECT string_props['plan'] AS plan, timestamp AS at FROM events) x GROUP BY 1",
        "SELECT string_props['plan'], event_name, sum(numeric_props['ms']) FROM events GROUP BY ROLLUP (string_props['plan'], event_name)",
        "SELECT tenant_id, user_id, min(CASE WHEN event_name = 'login' THEN timestamp END) FROM events GROUP BY 1, 2",
        "SELECT date_part('hour', e.timestamp), sum(CASE WHEN string_props['plan'] = 'pro' THEN 1 ELSE 0 END), count(*) FILTER (WHERE tenant_id = 'acme') FROM events e GROUP BY 1",
        "SELECT event_name, count(*) FILTER (WHERE numeric_props['ms'] > 3) FROM events GROUP BY 1",
        "SELECT tenant_id, user_id, max(CASE WHEN extract(month FROM timestamp) = 8 THEN 'a' ELSE '-' END), bool_or(numeric_props['ms'] > 3), count(*) FILTER (WHERE timestamp >= '2024-10-01' OR event_name = 'login') FROM events GROUP BY 1, 2",
    ] {
        let plan = planned(sql);
        assert!(plan.contains("PartitionedExec"), "{sql}\n{plan}");
        assert!(!plan.contains("RowsExec") && !plan.contains("FilterExec"), "{sql}\n{plan}");
    }
    for sql in [
        "SELECT e.string_props['plan'] FROM events e JOIN events_daily d ON e.tenant_id = d.tenant_id AND e.string_props['plan'] = d.event_name",
        "SELECT event_id FROM events WHERE timestamp > now() - INTERVAL '7 days' AND event_name IN ('call', 'login')",
        "SELECT DISTINCT numeric_props['ms'] FROM events WHERE string_props['plan'] = 'pro' OR string_props['plan'] = 'free'",
        "SELECT avg(numeric_props['ms']) OVER (PARTITION BY string_props['plan'] ORDER BY timestamp) FROM events",
        "SELECT event_id, string_props['plan'], lag(numeric_props['ms']) OVER (PARTITION BY user_id, string_props['plan'] ORDER BY numeric_props['ms']) FROM events",
        "SELECT event_id, rank() OVER (ORDER BY numeric_props['ms'] DESC) FROM events WHERE string_props['plan'] = 'pro' OR string_props['plan'] = 'free'",
    ] {
        let plan = planned(sql);
        let scan = plan.lines().find(|line| line.contains("RowsExec")).unwrap();
        assert!(!scan.contains("Strings") && !scan.contains("Numbers"), "{sql}\n{plan}");
        assert!(!plan.contains("FilterExec"), "{sql}\n{plan}");
    }
    for sql in [
        "SELECT string_props['plan'], count(*) FROM events WHERE length(string_props['org']) = numeric_props['ms'] GROUP BY 1",
        "SELECT tenant_id, event_name, count(DISTINCT user_id), count(DISTINCT string_props['plan']) FROM events e GROUP BY 1, 2",
        "SELECT plan, max(at), count(DISTINCT event_id) FROM (SELECT string_props['plan'] AS plan, timestamp AS at, event_id FROM events) x GROUP BY 1",
    ] {
        let plan = planned(sql);
        let scan = plan.lines().find(|line| line.contains("RowsExec")).unwrap();
        assert!(scan.contains("Number(") && plan.contains("text_of("), "{sql}\n{plan}");
    }
    let counted = planned("SELECT count(*) FROM events");
    assert!(!counted.contains("RowsExec"), "the number of rows is known: {counted}");
}

/// Statements that are answered from groups have the answers that they have from rows: asked for the id of each row,
/// which groups do not know, all is read.
#[test]
fn groups_come_to_what_their_rows_come_to() {
    // Few rows are always added up early, and groups of many values then have no places laid out ahead.
    for every in [1, 5] {
        groups_come_to_what_rows_do(every);
    }
}

fn groups_come_to_what_rows_do(every: u32) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { background: false, ..Options::default() };
    let engine = Engine::open_directory(directory.path(), options).unwrap();
    // Ten segments and rows in memory; another namespace has many more values.
    for part in 0..11u32 {
        for namespace in [1, 2] {
            let mut batch = engine.batch(Namespace(namespace));
            let every = if namespace == 1 { every } else { 1 };
            for n in (0..2_000 / every).map(|n| part * 2_000 + n * every) {
                let mixed = n.wrapping_mul(2_654_435_761) >> 8;
                let tenant = format!("t{}", mixed % 40);
                let user = format!(
                    "{} of {}",
                    mixed / 40 % 90,
                    ["few", "very many users"][mixed as usize % 2]
                );
                let event = Event {
                    tenant: &tenant,
                    name: ["call", "login", "open", "close", "pay"][(mixed / 40 % 5) as usize],
                    timestamp_ms: NOW_MS - i64::from(mixed / 64 % 30_000) * 60_000,
                    event_id: None,
                    user_id: (mixed % 9 > 0).then_some(&*user),
                };
                let path = format!("/{}", if namespace == 1 { mixed % 900 } else { n });
                let texts = [("path", &*path), ("plan", ["a", "b", "c"][(mixed / 7 % 3) as usize])];
                let numbers = [("ms", f64::from(mixed % 777) / 8.0), ("n", f64::from(mixed % 5))];
                batch.push(&event, &texts[..1 + (mixed % 3 > 0) as usize], &numbers).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, inlay_engine::Error>(())).unwrap();
        }
        if part < 10 {
            engine.flush().unwrap();
        }
    }
    let numbers =
        "count(*), sum(numeric_props['ms']), min(numeric_props['n']), max(numeric_props['ms'])";
    let spans = "min(date_trunc('week', timestamp)), max(date_trunc('day', timestamp)), count(*)";
    let conditions = "count(*) FILTER (WHERE timestamp >= TIMESTAMP '2024-09-25 07:00:00'), \
        count(numeric_props['n']) FILTER (WHERE event_name = 'call' AND numeric_props['ms'] > 40), \
        sum(CASE WHEN event_name = 'pay' OR numeric_props['ms'] > 40 THEN 1 ELSE 0 END), \
        sum(CASE WHEN NOT (numeric_props['n'] = 3 AND string_props['plan'] = 'a') THEN 2 WHEN \
        timestamp < TIMESTAMP '2024-09-25' OR string_props['plan'] = 'b' THEN 5 END)";
    let choices = "max(CASE WHEN extract(day FROM timestamp) = 20 THEN 'last' ELSE '-' END), \
        min(CASE WHEN string_props['plan'] = 'a' THEN 'x' WHEN numeric_props['n'] < 2 THEN 'b' END), \
        max(CASE WHEN event_name = 'pay' THEN DATE '2024-01-01' ELSE DATE '2023-12-31' END), \
        bool_or(numeric_props['n'] = 3 OR event_name = 'pay'), bool_and(string_props['plan'] = 'a'), \
        bool_or(timestamp > TIMESTAMP '2024-09-25') FILTER (WHERE event_name = 'login')";
    for (keys, count, asked) in [
        ("string_props['plan']", 1, numbers),
        ("string_props['path']", 1, numbers),
        ("tenant_id, string_props['path']", 2, numbers),
        ("tenant_id, event_name", 2, numbers),
        ("date_trunc('hour', timestamp), tenant_id, event_name, string_props['plan']", 4, numbers),
        ("date_trunc('hour', timestamp), tenant_id, string_props['path']", 3, numbers),
        ("date_part('dow', timestamp), string_props['plan']", 2, numbers),
        ("date_trunc('week', timestamp), tenant_id", 2, numbers),
        ("tenant_id, user_id", 2, numbers),
        ("tenant_id, user_id", 2, spans),
        ("tenant_id, user_id, event_name", 3, spans),
        ("tenant_id, user_id", 2, "max(date_trunc('day', timestamp)), sum(numeric_props['n'])"),
        ("tenant_id, event_name, user_id, date_trunc('hour', timestamp)", 4, numbers),
        ("tenant_id, user_id, event_name, date_trunc('week', timestamp)", 4, numbers),
        ("tenant_id, user_id, date_part('dow', timestamp)", 3, numbers),
        ("tenant_id, length(user_id)", 2, spans),
        ("tenant_id, date_trunc('week', timestamp)", 2, "count(DISTINCT user_id)"),
        ("tenant_id, date_trunc('month', timestamp)", 2, "count(*), count(DISTINCT user_id)"),
        ("tenant_id", 1, "count(DISTINCT user_id), sum(numeric_props['n']), count(*)"),
        ("tenant_id, user_id", 2, conditions),
        ("tenant_id, user_id", 2, choices),
        ("tenant_id, user_id, date_trunc('week', timestamp)", 3, conditions),
        ("tenant_id, event_name, user_id", 3, choices),
        ("tenant_id, string_props['plan']", 2, conditions),
        ("event_name", 1, choices),
        ("tenant_id", 1, "bool_or(event_name = 'pay'), bool_and(event_name <> 'pay')"),
    ] {
        for condition in [
            "true",
            "string_props['path'] LIKE '/1%'",
            "numeric_props['ms'] > 50 AND event_name <> 'pay'",
            "timestamp > TIMESTAMP '2024-09-20 03:04:05' AND tenant_id > 't2'",
        ] {
            let order: Vec<String> = (1..=count).map(|at| at.to_string()).collect();
            let order = order.join(", ");
            let statement = |more: &str| {
                format!(
                    "SELECT {keys}, {asked}{more} FROM events WHERE {condition} \
                     GROUP BY {order} ORDER BY {order} LIMIT 9000"
                )
            };
            let early = rows(&engine, &statement(""));
            let mut all = rows(&engine, &statement(", count(DISTINCT event_id)"));
            for row in all.as_array_mut().unwrap() {
                row.as_array_mut().unwrap().pop();
            }
            assert!(!early.as_array().unwrap().is_empty(), "{keys}");
            assert!(plan(&engine, &statement(", count(DISTINCT event_id)")).contains("RowsExec"));
            assert!(early == all, "{keys}, {asked} where {condition}");
        }
    }
}

/// What is left to do of a statement when its groups are read.
fn plan(engine: &Engine, sql: &str) -> String {
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    displayable(&*physical(&scan, sql)).indent(true).to_string()
}

/// The operators of a statement, as the gate would not have rewritten it.
fn physical(scan: &Arc<Scan>, sql: &str) -> Arc<dyn ExecutionPlan> {
    physical_of(&blank(2, 512 << 20).unwrap(), scan, sql)
}

/// The operators that a statement has in a session.
fn physical_of(session: &Session, scan: &Arc<Scan>, sql: &str) -> Arc<dyn ExecutionPlan> {
    let tables = Tables::new(scan);
    let planning = Planning::new(&session.config, &session.library, &tables);
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
    let plan = planning.logical(statements.remove(0)).unwrap();
    planning.physical(plan).unwrap()
}

#[test]
fn groups_by_user_are_complete_as_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (is_complete, sql) in [
        (
            true,
            "SELECT tenant_id, user_id, count(*), sum(numeric_props['ms']) FROM events GROUP BY 1, 2",
        ),
        (true, "SELECT DISTINCT tenant_id, user_id, date_trunc('week', timestamp) FROM events"),
        (
            true,
            "SELECT tenant_id, user_id, min(w) FROM (SELECT DISTINCT tenant_id, user_id, date_trunc('week', timestamp) AS w FROM events) s GROUP BY 1, 2",
        ),
        (
            true,
            "SELECT user_id, event_name, count(*) FROM events WHERE tenant_id = 'acme' GROUP BY 1, 2",
        ),
        (
            true,
            "SELECT tenant_id, user_id, date_trunc('month', timestamp) FROM events GROUP BY 1, 2, 3",
        ),
        (
            true,
            "SELECT tenant_id, user_id, floor(extract(epoch FROM timestamp) / 86400), count(*) FROM events GROUP BY 1, 2, 3",
        ),
        // Two texts may be one in another case.
        (
            false,
            "SELECT tenant_id, user_id, lower(string_props['plan']), count(*) FROM events GROUP BY 1, 2, 3",
        ),
        (
            true,
            "SELECT tenant_id, user_id, string_props['plan'], count(*) FROM events GROUP BY 1, 2, 3",
        ),
        (
            false,
            "SELECT tenant_id, user_id, timestamp BETWEEN TIMESTAMP '2024-09-20' AND TIMESTAMP '2024-09-21', count(*) FROM events GROUP BY 1, 2, 3",
        ),
        (false, "SELECT tenant_id, count(DISTINCT user_id) FROM events GROUP BY 1"),
        (false, "SELECT tenant_id, count(DISTINCT user_id), count(*) FROM events GROUP BY 1"),
        (false, "SELECT count(DISTINCT user_id), count(*) FROM events WHERE tenant_id = 'acme'"),
    ] {
        let plan = plan(&engine, sql);
        assert!(plan.contains("PartitionedExec"), "{sql}: {plan}");
        assert_eq!(!plan.contains("AggregateExec"), is_complete, "{sql}: {plan}");
    }
    // Users of two tenants may be called alike.
    for sql in [
        "SELECT user_id, count(*) FROM events GROUP BY 1",
        "SELECT user_id, count(*) FROM events WHERE tenant_id IN ('acme', 'beta') GROUP BY 1",
    ] {
        assert!(!plan(&engine, sql).contains("PartitionedExec"), "{sql}");
    }
}

mod early;
mod join_bounds;
mod plans;
mod scans;

/// Pairs of plans are added up before figures of each plan are joined to them, where the rows of the join have few groups.
#[test]
fn rows_of_a_join_are_added_up_before_further_joins() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let used = "WITH used AS (SELECT DISTINCT user_id, string_props['plan'] AS p FROM events), \
        popular AS (SELECT p, count(*) AS n FROM used GROUP BY p)";
    let pairs = "FROM used a JOIN used b ON b.user_id = a.user_id AND b.p > a.p JOIN popular q ON q.p = a.p";
    // Beside a single row rows are added up themselves.
    let beside =
        "FROM events e CROSS JOIN (SELECT count(*) AS n FROM events WHERE event_name = 'call') o";
    let plan_of = "e.string_props['plan']";
    for (is_early, asked) in [
        (true, format!("{used} SELECT a.p, b.p, count(*), q.n {pairs} GROUP BY 1, 2, 4")),
        (true, format!("{used} SELECT a.p, min(b.user_id), q.n {pairs} GROUP BY 1, 3")),
        (false, format!("{used} SELECT a.p, sum(q.n) {pairs} GROUP BY 1")),
        (false, format!("{used} SELECT a.user_id, count(*), q.n {pairs} GROUP BY 1, 3")),
        (false, format!("{used} SELECT a.p, count(DISTINCT b.user_id) {pairs} GROUP BY 1")),
        (false, format!("{used} SELECT count(*) {pairs}")),
        (true, format!("SELECT {plan_of}, count(*) * 1.0 / o.n {beside} GROUP BY 1, o.n")),
        (
            true,
            format!(
                "SELECT {plan_of}, count(*) FILTER (WHERE e.event_name <> 'call'), o.n {beside} GROUP BY 1, 3"
            ),
        ),
        (
            false,
            format!(
                "SELECT {plan_of}, count(*) FILTER (WHERE e.numeric_props['ms'] > o.n) {beside} GROUP BY 1"
            ),
        ),
        (
            false,
            format!("SELECT {plan_of}, count(*) {beside} WHERE length(e.user_id) > o.n GROUP BY 1"),
        ),
        (false, format!("SELECT e.user_id, count(*) {beside} GROUP BY 1")),
    ] {
        let plan = plan(&engine, &asked);
        assert_eq!(plan.contains("early"), is_early, "{asked}\n{plan}");
    }
}
