//! Groups by parts of hours, and conditions with subqueries, that are met while rows are read.

use super::*;

/// An engine with three events a second for an hour, half of them in a segment.
fn busy_engine(directory: &std::path::Path) -> Engine {
    let engine = empty_engine(directory);
    for part in 0..2 {
        let mut batch = engine.batch(Namespace(1));
        for n in (0..10_800i64).filter(|n| n % 2 == part) {
            let event = Event {
                tenant: ["acme", "beta"][n as usize % 7 % 2],
                name: "call",
                timestamp_ms: NOW_MS - n * 333,
                event_id: None,
                user_id: Some(["u1", "u2", "u3"][n as usize % 3]),
            };
            let numbers = [("ms", f64::from(n as u32 % 100))];
            batch.push(&event, &[("plan", ["free", "pro"][n as usize % 2])], &numbers).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        if part == 0 {
            engine.flush().unwrap();
        }
    }
    engine
}

/// The operators of a statement once its scalar subqueries have their values.
fn plan_with_values(engine: &Engine, sql: &str) -> String {
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let session = blank(2, 512 << 20).unwrap();
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
    let statement = statements.remove(0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(64 << 20)
        .build()
        .unwrap();
    let planning = async move {
        let tables = Tables::new(&scan);
        let planning = Planning::new(&session.config, &session.library, &tables);
        let plan = planning.logical(statement).unwrap();
        let plan = with_values(plan, &planning, || session.task()).await.unwrap();
        displayable(&*planning.physical(plan).unwrap()).indent(true).to_string()
    };
    runtime.block_on(runtime.spawn(planning)).unwrap()
}

#[test]
fn groups_by_parts_of_hours_are_added_up_as_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let engine = busy_engine(directory.path());
    for (part, is_early) in [
        ("date_trunc('minute', timestamp)", true),
        ("date_bin(INTERVAL '15 minutes', timestamp)", true),
        ("date_bin(INTERVAL '5 minutes', timestamp, TIMESTAMP '2001-01-01 00:35:00')", true),
        ("date_bin(INTERVAL '10 minutes', timestamp, TIMESTAMP '2001-01-01 00:05:00')", true),
        ("floor(extract(epoch FROM timestamp) / 300)", true),
        ("date_bin(INTERVAL '15 minutes', timestamp, TIMESTAMP '2001-01-01 00:07:30')", false),
        ("date_bin(INTERVAL '15 minutes', timestamp, TIMESTAMP '2001-01-01 00:00:00.0005')", false),
        ("date_bin(INTERVAL '90 seconds', timestamp)", false),
        ("date_trunc('second', timestamp)", false),
        ("extract(minute FROM timestamp)", false),
    ] {
        let measures = "count(*), sum(numeric_props['ms']), count(*) FILTER (WHERE string_props['plan'] = 'pro')";
        let sql = format!("SELECT {part} AS part, {measures} FROM events GROUP BY 1 ORDER BY 1");
        let plan = plan(&engine, &sql);
        assert_eq!(!plan.contains("RowsExec"), is_early, "{sql}\n{plan}");
        // The same of rows, which nothing adds up before they are sorted.
        let one_by_one = format!(
            "SELECT part, {} FROM (SELECT {part} AS part, * FROM events ORDER BY user_id LIMIT 20000) r \
             GROUP BY 1 ORDER BY 1",
            measures.replace("sum(numeric_props['ms'])", "sum(numeric_props['ms'] + 0)")
        );
        assert_eq!(rows(&engine, &sql), rows(&engine, &one_by_one), "{sql}");
    }
}

#[test]
fn subqueries_in_conditions_on_events_are_answered_before_the_plan() {
    let directory = tempfile::tempdir().unwrap();
    let engine = busy_engine(directory.path());
    let newest = "(SELECT max(timestamp) FROM events)";
    let of_spend = "(SELECT avg(ms) FROM spend)";
    for (condition, is_early) in [
        (format!("timestamp > {newest} - INTERVAL '10 minutes'"), true),
        (
            format!(
                "timestamp BETWEEN {newest} - INTERVAL '10 minutes' AND {newest} AND tenant_id = 'acme'"
            ),
            true,
        ),
        ("numeric_props['ms'] > (SELECT avg(numeric_props['ms']) FROM events e)".to_owned(), true),
        (
            "tenant_id = (SELECT tenant_id FROM events GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)"
                .to_owned(),
            true,
        ),
        // Null, with which nothing compares.
        (
            "timestamp > (SELECT max(timestamp) FROM events WHERE tenant_id = 'nobody')".to_owned(),
            true,
        ),
        ("timestamp > (SELECT timestamp FROM events WHERE tenant_id = 'nobody')".to_owned(), true),
        // It may be computed for the statement anyway.
        (format!("numeric_props['ms'] > {of_spend}"), false),
        ("numeric_props['ms'] > (SELECT max(numeric_props['ms']) - 9 FROM events WHERE numeric_props['ms'] < (SELECT max(ms) FROM spend))".to_owned(), false),
        // Of more than one row it is an error, which the library has.
        ("tenant_id = (SELECT tenant_id FROM events)".to_owned(), false),
    ] {
        let sql = format!(
            "WITH spend AS (SELECT user_id, avg(numeric_props['ms']) AS ms FROM events GROUP BY 1) \
             SELECT tenant_id, count(*) FROM events WHERE {condition} GROUP BY 1 ORDER BY 1"
        );
        let plan = plan_with_values(&engine, &sql);
        assert_eq!(!plan.contains("ScalarSubqueryExec"), is_early, "{sql}\n{plan}");
        assert_eq!(!plan.contains("RowsExec"), is_early, "{sql}\n{plan}");
    }
    // It is computed for the answer anyway, or nothing is.
    let condition = format!("timestamp > {newest} - INTERVAL '10 minutes'");
    for sql in [
        format!("SELECT {newest}, count(*) FROM events WHERE {condition}"),
        format!("SELECT * FROM events WHERE {condition} LIMIT 0"),
    ] {
        let tables = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
        let (session, tables) = (blank(2, 512 << 20).unwrap(), Tables::new(&tables));
        let planning = Planning::new(&session.config, &session.library, &tables);
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap();
        let plan = planning.logical(statements.remove(0)).unwrap();
        assert!(plan.display_indent().to_string().contains("<subquery>"));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let none = || -> Arc<datafusion_execution::TaskContext> { panic!("{sql} is not answered") };
        let same = runtime.block_on(with_values(plan.clone(), &planning, none)).unwrap();
        assert_eq!(same, plan);
    }
    let counted = |condition: &str| {
        rows(
            &engine,
            &format!(
                "SELECT count(*), min(timestamp) = max(timestamp) FROM events WHERE {condition}"
            ),
        )
    };
    assert_eq!(counted(&format!("timestamp = {newest}")), json!([[1, true]]));
    assert_eq!(
        counted(&format!("timestamp >= {newest} - INTERVAL '333 milliseconds'")),
        json!([[2, false]])
    );
    assert_eq!(
        counted("timestamp > (SELECT timestamp FROM events WHERE 1 = 0)"),
        json!([[0, null]])
    );
    let sql = "SELECT count(*) FROM events WHERE tenant_id = (SELECT tenant_id FROM events)";
    let refused = ask(&engine, plain(sql, Vec::new(), Form::Rows));
    let Err(refusal) = refused else { panic!("several rows are no value") };
    assert_eq!(refusal.reason, Reason::Invalid, "{refusal:?}");
    // What a subquery is asked with a parameter.
    let sql = "SELECT count(*) FROM events WHERE timestamp = (SELECT max(timestamp) FROM events WHERE tenant_id = $1)";
    let (kept, _) = ask(&engine, plain(sql, vec![json!("acme")], Form::Rows)).unwrap();
    assert_eq!(kept.rows, b"[1]");
}

#[test]
fn times_that_have_no_nanoseconds_are_in_one_bin() {
    let directory = tempfile::tempdir().unwrap();
    let engine = empty_engine(directory.path());
    let mut batch = engine.batch(Namespace(1));
    let year_3000_ms = 32_503_680_000_000;
    for timestamp_ms in [year_3000_ms, year_3000_ms + 48 * HOUR_MS] {
        let (event_id, user_id) = (None, Some("u"));
        let event = Event { tenant: "acme", name: "call", timestamp_ms, event_id, user_id };
        batch.push(&event, &[], &[]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    let day = "date_bin(INTERVAL '1 day', timestamp)";
    let sql = format!("SELECT tenant_id, user_id, {day}, count(*) FROM events GROUP BY 1, 2, 3");
    assert_eq!(rows(&engine, &sql), json!([["acme", "u", null, 2]]));
    let sql = format!("SELECT tenant_id, user_id, count(DISTINCT {day}) FROM events GROUP BY 1, 2");
    assert_eq!(rows(&engine, &sql), json!([["acme", "u", 0]]));
}
