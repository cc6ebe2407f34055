//! What scans read: the newest rows alone, rows that have a partner, and rows of a large tenant by several threads.
//!
//! ```text
//! SELECT … ORDER BY timestamp DESC LIMIT 10                                 few of 40,000 rows are handed on
//! SELECT … FROM events e JOIN (… LIMIT 2) f ON e.user_id = f.user_id        rows of two users of five hundred
//! SELECT … WHERE tenant_id IN (SELECT … LIMIT 1) GROUP BY tenant_id         groups of one tenant of two
//! SELECT user_id, count(*) … WHERE tenant_id = 'acme' GROUP BY user_id      each group once, whichever thread has it
//! ```

use super::*;

/// How many rows scans of `events` have handed on.
pub fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below = plan.children();
    match below.is_empty() {
        true => plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or_default(),
        false => below.into_iter().map(rows_read).sum(),
    }
}

/// How many parts scans of `events` have skipped.
fn skipped(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below = plan.children();
    let here = plan.metrics().and_then(|metrics| metrics.sum_by_name("parts_skipped"));
    here.map_or(0, |count| count.as_usize()) + below.into_iter().map(skipped).sum::<usize>()
}

/// The rows of a statement, and how many rows were read and parts skipped for it.
fn answered(engine: &Engine, sql: &str) -> (Vec<Value>, (usize, usize)) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(64 << 20).build().unwrap();
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let statement = sql.to_owned();
    let answering = async move {
        let plan = physical(&scan, &statement);
        let task = blank(2, 512 << 20).unwrap().task();
        datafusion_physical_plan::collect(Arc::clone(&plan), task).await.unwrap();
        (rows_read(&plan), skipped(&plan))
    };
    let read = runtime.block_on(runtime.spawn(answering)).unwrap();
    (rows(engine, sql).as_array().unwrap().clone(), read)
}

/// An engine with a month of rows, of which the first half is in a segment.
pub fn engine_of_a_month(directory: &std::path::Path) -> Engine {
    let engine = empty_engine(directory);
    for part in 0..2u32 {
        let mut batch = engine.batch(Namespace(1));
        for n in part * 20_000..(part + 1) * 20_000 {
            let (id, user) = (format!("e{n}"), format!("u{}", n % 500));
            let event = Event {
                tenant: ["acme", "beta"][n as usize % 2],
                name: ["call", "login", "pay"][n as usize % 3],
                // Two rows at a time.
                timestamp_ms: NOW_MS - i64::from(40_000 - n / 2 * 2) * 60_000,
                event_id: Some(&id),
                user_id: (n % 7 > 0).then_some(&user),
            };
            batch.push(&event, &[("plan", "pro")], &[("ms", f64::from(n % 11))]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        if part == 0 {
            engine.flush().unwrap();
        }
    }
    engine
}

#[test]
fn the_latest_rows_are_found_without_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    for (order, few) in [
        ("timestamp DESC, event_id", true),
        ("timestamp, event_id", true),
        ("timestamp DESC, numeric_props['ms'], event_id", true),
        // Rows have no order of their own by these.
        ("event_id DESC", false),
        ("numeric_props['ms'], timestamp, event_id", false),
    ] {
        for condition in
            ["tenant_id = 'acme'", "event_name LIKE '%a%'", "length(user_id) < 9", "true"]
        {
            let columns = "timestamp, event_id, user_id, string_props, numeric_props['ms']";
            let statement = |order: &str| {
                format!("SELECT {columns} FROM events WHERE {condition} ORDER BY {order} LIMIT 10")
            };
            let (found, (read, skipped)) = answered(&engine, &statement(order));
            // A sum is no column: nothing is known of its order before rows are read.
            let sum = order.replace("timestamp", "timestamp + INTERVAL '0 seconds'");
            let (expected, _) = answered(&engine, &statement(&sum));
            assert_eq!(found, expected, "{order} where {condition}");
            assert_eq!(found.len(), 10);
            assert!(!few || read < 6_000, "{read}: {order} where {condition}");
            assert_eq!(few, skipped > 0, "{skipped}: {order} where {condition}");
        }
    }
}

#[test]
fn a_join_reads_wide_columns_of_rows_that_have_a_partner() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let few = "(SELECT user_id FROM events WHERE tenant_id = 'acme' GROUP BY 1 ORDER BY 1 LIMIT 2)";
    let joined = format!(
        "SELECT e.event_id, e.user_id, e.timestamp FROM events e JOIN {few} f ON e.user_id = f.user_id ORDER BY 1"
    );
    let listed = format!(
        "SELECT event_id, user_id, timestamp FROM events WHERE concat(user_id, '') IN {few} ORDER BY 1"
    );
    let ((joined, (read, _)), (listed, _)) =
        (answered(&engine, &joined), answered(&engine, &listed));
    assert_eq!(joined, listed);
    // Those of the two users, and those from which the two are found.
    assert!(read < 30_000, "{read}");
    assert!(joined.len() > 10, "{joined:?}");
    // Users of groups are known by their numbers.
    let of_groups = "SELECT e.event_id, e.user_id, e.timestamp FROM events e JOIN (SELECT user_id, count(*) AS n \
         FROM events WHERE tenant_id = 'acme' GROUP BY 1) g ON e.user_id = g.user_id \
         WHERE g.n > 10 AND concat(g.user_id, '') IN ('u0', 'u10') ORDER BY 1";
    assert!(
        planned(&engine, of_groups).contains("number_of(user_id"),
        "{}",
        planned(&engine, of_groups)
    );
    let (of_groups, (read, _)) = answered(&engine, of_groups);
    assert_eq!(of_groups, joined);
    assert!(read < 1_000, "{read}");
}

/// A subquery finds one tenant, and groups of the other are not made.
#[test]
fn groups_are_made_of_the_tenants_that_a_subquery_has_found() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let first = "(SELECT tenant_id FROM events GROUP BY tenant_id ORDER BY count(*) DESC, tenant_id LIMIT 1)";
    for (keys, group_count) in [
        // A user of each tenant is one, and those without a user are one more.
        ("tenant_id, user_id", 251),
        ("tenant_id, user_id, event_name", 753),
        ("tenant_id, user_id, date_trunc('month', timestamp)", 502),
    ] {
        let statement = |condition: &str| {
            format!(
                "SELECT {keys}, count(*), min(timestamp) FROM events WHERE {condition} GROUP BY {keys} ORDER BY {keys}"
            )
        };
        let (found, (read, _)) = answered(&engine, &statement(&format!("tenant_id IN {first}")));
        assert_eq!(found, answered(&engine, &statement("tenant_id = 'acme'")).0, "{keys}");
        assert_eq!(found.len(), group_count, "{keys}");
        // The others are those of the subquery.
        assert!(read <= group_count + 2 * 4, "{read}: {keys}");
    }
}

/// Users are counted while rows are read: a group is a row or a few, not one for each of its users.
#[test]
fn groups_that_count_users_are_not_by_user() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let others = "count(*), sum(numeric_props['ms']), avg(numeric_props['ms']) FILTER (WHERE event_name <> 'pay'), min(timestamp)";
    for (condition, keys, rows_max) in [
        ("true", "tenant_id", 4),
        ("true", "tenant_id, event_name, string_props['plan']", 12),
        ("true", "tenant_id, date_trunc('day', timestamp), event_name", 400),
        ("tenant_id = 'acme'", "event_name", 12),
        ("tenant_id = 'acme' AND string_props['plan'] = 'pro'", "event_name", 12),
        ("tenant_id = 'acme'", "date_trunc('week', timestamp)", 24),
        ("tenant_id = 'nobody'", "event_name", 0),
    ] {
        let statement = |user: &str| {
            format!(
                "SELECT {keys}, count(DISTINCT {user}) AS users, {others} FROM events WHERE {condition} GROUP BY {keys} ORDER BY {keys}"
            )
        };
        let (counted, (read, _)) = answered(&engine, &statement("user_id"));
        let (expected, _) = answered(&engine, &statement("lower(user_id)"));
        assert_eq!(counted, expected, "{keys} where {condition}");
        assert!(read <= rows_max, "{read}: {keys} where {condition}");
        assert_eq!(counted.is_empty(), rows_max == 0, "{keys} where {condition}");
    }
    let all = |user: &str| {
        format!("SELECT count(DISTINCT {user}), {others} FROM events WHERE tenant_id = 'acme'")
    };
    let (counted, (read, _)) = answered(&engine, &all("user_id"));
    assert_eq!(counted, answered(&engine, &all("lower(user_id)")).0);
    assert!(read <= 4, "{read}");
    // Of nothing it is zero.
    let nothing = "SELECT count(DISTINCT user_id), count(*) FROM events WHERE tenant_id = 'nobody'";
    assert_eq!(answered(&engine, nothing).0, [serde_json::json!([0, 0])]);
    // Where users have names, groups are by user.
    let named = "SELECT tenant_id, count(DISTINCT user_id), max(user_id) FROM events GROUP BY tenant_id ORDER BY 1";
    let lower = named.replace("user_id)", "lower(user_id))");
    assert_eq!(answered(&engine, named).0, answered(&engine, &lower).0);
}

/// What is learned of tenants is asked of those alone that have groups: others need not be numbers.
#[test]
fn what_is_learned_of_tenants_fails_for_none_that_has_no_group() {
    let directory = tempfile::tempdir().unwrap();
    let engine = empty_engine(directory.path());
    let mut batch = engine.batch(Namespace(1));
    for n in 0..3_000u32 {
        let tenant = ["1", "2", "acme"][n as usize % 3];
        let (user, plan) = (format!("u{}", n % 50), if tenant == "acme" { "free" } else { "pro" });
        let event = Event {
            tenant,
            name: "call",
            timestamp_ms: NOW_MS - i64::from(n),
            event_id: None,
            user_id: Some(&user),
        };
        batch.push(&event, &[("plan", plan)], &[]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    let groups = "(SELECT tenant_id, user_id, count(*) AS c FROM events WHERE string_props['plan'] = 'pro' GROUP BY 1, 2)";
    for sql in [
        format!(
            "SELECT g.c FROM {groups} g JOIN (VALUES (1), (2)) v (n) ON CAST(g.tenant_id AS BIGINT) = v.n"
        ),
        format!("SELECT g.c FROM {groups} g ORDER BY CAST(tenant_id AS BIGINT), user_id LIMIT 100"),
    ] {
        assert_eq!(rows(&engine, &sql).as_array().unwrap().len(), 100, "{sql}");
    }
}

/// The rows of a large tenant are aggregated by several threads, each of which has some of its users.
#[test]
fn a_tenant_with_most_rows_is_divided_by_users() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let aggregates = "count(*) AS n, min(timestamp) AS first, sum(numeric_props['ms']) AS ms, \
         count(DISTINCT event_name) AS names FROM events WHERE tenant_id = 'acme'";
    for (key, same) in [
        ("user_id", "user_id || ''"),
        ("user_id, event_name", "user_id || '', event_name"),
        ("date_trunc('day', timestamp), user_id", "date_trunc('day', timestamp), user_id || ''"),
    ] {
        let by = |key: &str| {
            let sql = format!("SELECT {key}, {aggregates} GROUP BY {key}");
            let rows = rows(&engine, &sql);
            let mut rows: Vec<String> =
                rows.as_array().unwrap().iter().map(Value::to_string).collect();
            rows.sort_unstable();
            (rows, planned(&engine, sql.leak()))
        };
        let ((groups, plan), (of_rows, _)) = (by(key), by(same));
        assert!(plan.contains("PartitionedExec"), "{plan}");
        assert!(groups.len() >= 250, "{groups:?}");
        assert_eq!(groups, of_rows, "{key}");
    }
}

/// Windows over users and an order of all rows: each operator takes what it needs of the memory, not an equal part.
#[test]
fn operators_share_the_memory_as_they_need_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = empty_engine(directory.path());
    for start in (0..40_000u32).step_by(1_000) {
        let mut batch = engine.batch(Namespace(1));
        for n in start..start + 1_000 {
            let (id, user) = (format!("a long id of an event {n}"), format!("user {}", n % 500));
            let event = Event {
                tenant: "acme",
                name: "call",
                timestamp_ms: NOW_MS - i64::from(n) * 60_000,
                event_id: Some(&id),
                user_id: Some(&user),
            };
            batch.push(&event, &[], &[]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    }
    let sql = "WITH marked AS (SELECT user_id, timestamp, event_id, CASE WHEN timestamp - lag(timestamp) OVER \
         (PARTITION BY user_id ORDER BY timestamp, event_id) <= INTERVAL '30 minutes' THEN 0 ELSE 1 END AS begins \
         FROM events), numbered AS (SELECT user_id, timestamp, sum(begins) OVER (PARTITION BY user_id \
         ORDER BY timestamp, event_id) AS visit FROM marked), visits AS (SELECT user_id, visit, min(timestamp) AS began, \
         count(*) AS n FROM numbered GROUP BY user_id, visit) SELECT count(*), max(n) FROM visits";
    let (kept, _) = ask_within(&engine, plain(sql, Vec::new(), Form::Rows), 20 << 20).unwrap();
    assert_eq!(String::from_utf8(kept.rows).unwrap(), "[40000,1]");
}
