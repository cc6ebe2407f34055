//! What statements are planned as: numbers in the place of texts, durations in that of intervals.

use std::path::Path;

use datafusion_common::tree_node::TreeNode as _;
use datafusion_physical_plan::execution_plan::InvariantLevel;

use super::*;

#[test]
fn joins_compare_numbers_of_texts_and_no_column_that_is_the_same_in_all_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (sql, keys) in [
        (
            "SELECT count(*) FROM events a JOIN events b ON a.tenant_id = b.tenant_id AND a.user_id = b.user_id \
             WHERE a.tenant_id = 'acme'",
            "on=[(number of user_id@0, number of user_id@0)]",
        ),
        (
            "SELECT count(*) FROM events a WHERE NOT EXISTS (SELECT 1 FROM events b \
             WHERE a.tenant_id = b.tenant_id AND b.event_name = 'login')",
            "on=[(join key 1@1, number of tenant_id@0)]",
        ),
        (
            "SELECT a.plan, a.n FROM (SELECT string_props['plan'] AS plan, count(DISTINCT event_id) AS n FROM events GROUP BY 1) a \
             JOIN events b ON a.plan = b.string_props['plan']",
            "on=[(number of string_props['plan']@2, number of string_props['plan']@0)]",
        ),
        (
            "SELECT e.tenant_id, count(*) AS n, max(e.numeric_props['ms']) AS most FROM events e WHERE e.event_name = 'call' \
             AND e.numeric_props['ms'] > 5 * (SELECT avg(a.numeric_props['ms']) FROM events a \
             WHERE a.tenant_id = e.tenant_id AND a.event_name = 'call') GROUP BY e.tenant_id ORDER BY n DESC",
            "number of tenant_id",
        ),
        // Numbers of tenants are no numbers of users.
        (
            "SELECT count(*) FROM events a JOIN events b ON a.tenant_id = b.user_id",
            "on=[(tenant_id@0, user_id@0)]",
        ),
    ] {
        let plan = planned(&engine, sql);
        let join = plan.lines().find(|line| line.contains("HashJoinExec")).unwrap();
        assert!(join.contains(keys), "{sql}\n{plan}");
    }
}

#[test]
fn partitions_of_windows_are_told_apart_by_numbers_of_texts() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let plan = planned(
        &engine,
        "SELECT tenant_id, max(before) FROM (SELECT tenant_id, lag(timestamp) OVER \
         (PARTITION BY tenant_id, user_id ORDER BY timestamp) AS before FROM events) x GROUP BY 1",
    );
    let windows = plan.lines().find(|line| line.contains("WindowsExec")).unwrap();
    assert!(
        windows.contains("PARTITION BY [number of tenant_id@1, number of user_id@2]"),
        "{plan}"
    );
    assert!(!plan.contains("Plain(User)]"), "{plan}");
}

#[test]
fn intervals_without_months_are_durations() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (sql, is_interval) in [
        ("SELECT timestamp + INTERVAL '1 day 2 hours' FROM events", false),
        (
            "SELECT gap FROM (SELECT timestamp - lag(timestamp) OVER (ORDER BY timestamp) AS gap FROM events) g \
             WHERE gap > INTERVAL '1 day'",
            false,
        ),
        ("SELECT timestamp + INTERVAL '1 month' FROM events", true),
        ("SELECT timestamp + INTERVAL '1 microsecond' FROM events", true),
    ] {
        let plan = planned(&engine, sql);
        // The name of the column has what was written.
        let plan = plan.split(" as ").next().unwrap_or_default();
        assert_eq!(plan.contains("IntervalMonthDayNano"), is_interval, "{sql}\n{plan}");
    }
}

#[test]
fn scans_read_the_first_rows_of_partitions_where_no_other_window_needs_more() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (windows, condition, is_known) in [
        (
            "row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp, event_id) AS r",
            "r = 1",
            true,
        ),
        (
            "rank() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp DESC) AS r",
            "r < 4",
            true,
        ),
        (
            "row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp) AS r",
            "r = 1 AND p = 'pro'",
            true,
        ),
        ("row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp) AS r", "r > 1", false),
        (
            "row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp) AS r",
            "r = 1 OR p = 'pro'",
            false,
        ),
        ("dense_rank() OVER (PARTITION BY tenant_id ORDER BY timestamp) AS r", "r = 1", false),
        ("row_number() OVER (ORDER BY timestamp) AS r", "r = 1", false),
        (
            "row_number() OVER (PARTITION BY tenant_id ORDER BY numeric_props['ms']) AS r",
            "r = 1",
            false,
        ),
        ("row_number() OVER w AS r, lead(user_id) OVER w AS n", "r = 1", false),
    ] {
        let sql = format!(
            "SELECT * FROM (SELECT tenant_id, user_id, string_props['plan'] AS p, {windows} FROM events \
             WINDOW w AS (PARTITION BY tenant_id ORDER BY timestamp)) x WHERE {condition}"
        );
        let sql: &'static str = sql.leak();
        let plan = planned(&engine, sql);
        assert_eq!(plan.contains("FirstRows"), is_known, "{sql}\n{plan}");
    }
}

#[test]
fn groups_that_a_statement_asks_for_twice_are_computed_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (sql, shared) in [
        (
            "WITH used AS (SELECT DISTINCT user_id, string_props['plan'] AS p FROM events) \
             SELECT a.p, b.p, count(*) FROM used a JOIN used b ON a.user_id = b.user_id AND a.p < b.p GROUP BY 1, 2",
            2,
        ),
        // Three names for the same groups, each with other columns and conditions; what is read of them once stays in its place.
        (
            "WITH users AS (SELECT user_id, count(*) AS n, sum(numeric_props['ms']) AS ms FROM events GROUP BY 1), \
             sums AS (SELECT n, sum(ms) AS ms FROM users GROUP BY 1) \
             (SELECT user_id, n AS v FROM users ORDER BY n LIMIT 1) UNION ALL (SELECT user_id, ms FROM users WHERE n > 1 ORDER BY ms LIMIT 1) \
             UNION ALL SELECT 'all', ms FROM sums",
            3,
        ),
        (
            "WITH users AS (SELECT user_id, count(*) AS n FROM events GROUP BY 1), \
             sums AS (SELECT n, count(*) AS of FROM users GROUP BY 1) \
             SELECT a.of, b.n FROM sums a JOIN sums b ON a.n = b.of",
            2,
        ),
        (
            "WITH spend AS (SELECT tenant_id, user_id, sum(numeric_props['ms']) AS ms FROM events GROUP BY 1, 2), \
             usual AS (SELECT tenant_id, avg(ms) AS mean FROM spend GROUP BY 1) \
             SELECT s.user_id, s.ms FROM spend s JOIN usual u ON s.tenant_id = u.tenant_id WHERE s.ms > u.mean",
            2,
        ),
        // One tenant on both sides, by way of the join.
        (
            "WITH g AS (SELECT tenant_id, user_id, count(*) AS n FROM events GROUP BY 1, 2) \
             SELECT count(*) FROM g a JOIN g b ON a.tenant_id = b.tenant_id AND a.n = b.n WHERE b.tenant_id = 'acme'",
            2,
        ),
        // What is said of a column of one use leaves out most of what is read there: of another property or column, too.
        (
            "WITH g AS (SELECT string_props['org'] AS o, max(numeric_props['ms']) AS m FROM events GROUP BY 1) \
             SELECT (SELECT max(m) FROM g WHERE o = 'o1') AS x, (SELECT max(m) FROM g WHERE o = 'o2') AS y",
            0,
        ),
        // All uses leave out the same.
        (
            "WITH g AS (SELECT tenant_id, user_id, count(*) AS n FROM events GROUP BY 1, 2), \
             u AS (SELECT tenant_id, avg(n) AS mean FROM g GROUP BY 1) \
             SELECT g.user_id FROM g JOIN u ON g.tenant_id = u.tenant_id WHERE g.tenant_id = 'acme' AND g.n > u.mean",
            2,
        ),
        // Nothing is left out by what is no comparison with a constant, and of a window only whole partitions are.
        (
            "WITH g AS (SELECT tenant_id, user_id, count(*) AS n FROM events GROUP BY 1, 2) \
             SELECT (SELECT max(n) FROM g WHERE user_id IS NOT NULL AND tenant_id <> 'acme') AS x, (SELECT max(user_id) FROM g) AS y",
            2,
        ),
        (
            "WITH w AS (SELECT event_name, row_number() OVER (PARTITION BY user_id ORDER BY timestamp) AS r FROM events) \
             SELECT (SELECT count(*) FROM w WHERE event_name = 'call' AND r = 1) AS x, (SELECT count(*) FROM w WHERE event_name = 'call' AND r = 2) AS y",
            2,
        ),
        // Other rows, other groups.
        (
            "WITH n AS (SELECT tenant_id AS t, event_name AS e, count(*) AS n FROM events GROUP BY 1, 2) \
             SELECT a.t, b.n FROM n a JOIN n b ON a.t = b.t WHERE a.e = 'call' AND b.e = 'login'",
            0,
        ),
    ] {
        let plan = planned(&engine, sql);
        assert_eq!(plan.matches("SharedExec").count(), shared, "{sql}\n{plan}");
    }
}

#[test]
fn conditions_of_a_shared_subquery_are_passed_on_to_the_other_side_of_a_join() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let plan = planned(
        &engine,
        "WITH g AS (SELECT tenant_id, user_id, count(*) AS n FROM events WHERE tenant_id = 'acme' GROUP BY 1, 2) \
         SELECT e.event_name, e.timestamp FROM events e JOIN g ON e.tenant_id = g.tenant_id AND e.user_id = g.user_id \
         WHERE g.n > (SELECT avg(n) FROM g)",
    );
    // Rows of both sides have the same tenant, and users are looked up once a group.
    let join = plan.lines().find(|line| line.contains("HashJoinExec")).unwrap();
    assert!(join.contains("on=[(join key 1@1, number of user_id@2)]"), "{plan}");
    assert!(plan.contains("number_of(user_id@0) as join key 1"), "{plan}");
    assert_eq!(plan.matches("SharedExec").count(), 2, "{plan}");
}

#[test]
fn distinct_on_reads_first_rows_and_distinct_values_of_groups_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (sql, has, has_not) in [
        (
            "SELECT p, count(*) FROM (SELECT DISTINCT ON (user_id) user_id, string_props['plan'] AS p FROM events \
             ORDER BY user_id, timestamp DESC) x GROUP BY 1",
            "FirstRows",
            "Strings",
        ),
        (
            "SELECT DISTINCT ON (t) t, n FROM (SELECT tenant_id AS t, event_name, count(*) AS n FROM events GROUP BY 1, 2) x \
             ORDER BY t, n DESC, event_name",
            "first_value",
            "WindowsExec",
        ),
        (
            "SELECT tenant_id, count(*), avg(numeric_props['ms']), count(DISTINCT date_trunc('day', timestamp)) FROM events GROUP BY 1",
            "PartitionedExec",
            "RowsExec",
        ),
        (
            "SELECT tenant_id, count(*), count(DISTINCT upper(event_id)) FROM events GROUP BY 1",
            "RowsExec",
            "PartitionedExec",
        ),
        (
            "SELECT tenant_id, sum(CASE WHEN timestamp >= date_trunc('month', TIMESTAMP '2026-11-13 00:00:00') \
             THEN numeric_props['ms'] ELSE 0 END) FROM events GROUP BY 1",
            "timestamp >= 1793491200000 THEN",
            "instant",
        ),
    ] {
        let plan = planned(&engine, sql);
        assert!(plan.contains(has) && !plan.contains(has_not), "{sql}\n{plan}");
    }
}

#[test]
fn distinct_texts_are_codes_and_days_on_a_clock_and_grouping_sets_read_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    // `AT TIME ZONE`, as the gate writes it.
    for (sql, has, has_not) in [
        // Users of several tenants may be called alike, so they are counted by their codes.
        (
            "SELECT date_trunc('day', timestamp), count(DISTINCT user_id), sum(numeric_props['ms']) FROM events GROUP BY 1",
            "count_codes",
            "PartitionedExec",
        ),
        // Groups by tenant and user are read as groups.
        (
            "SELECT tenant_id, count(DISTINCT user_id) FROM events GROUP BY 1",
            "PartitionedExec",
            "count_codes",
        ),
        (
            "SELECT date_trunc('day', timezone('Europe/Berlin', timezone('UTC', timestamp))), count(*) FROM events GROUP BY 1",
            "PartitionedExec",
            "RowsExec",
        ),
        (
            "SELECT date_part('minute', timezone('Europe/Berlin', timezone('UTC', timestamp))), count(*) FROM events GROUP BY 1",
            "RowsExec",
            "PartitionedExec",
        ),
        (
            "SELECT tenant_id, event_name, count(DISTINCT string_props['plan']) FROM events \
             GROUP BY GROUPING SETS ((tenant_id), (event_name))",
            "UnionExec",
            "RowsExec",
        ),
    ] {
        let plan = planned(&engine, sql);
        assert!(plan.contains(has) && !plan.contains(has_not), "{sql}\n{plan}");
    }
}

/// Four tenants with 250 events of 60 users each, and 800 exports of the first.
fn events_of_four_tenants(directory: &Path) -> Engine {
    let engine = empty_engine(directory);
    let mut batch = engine.batch(Namespace(1));
    for n in 0..1_000u32 {
        let (tenant, user) = (format!("t{}", n % 4), format!("u{}", n % 60));
        let event = Event {
            tenant: &tenant,
            name: if n < 300 { "login" } else { "call" },
            timestamp_ms: NOW_MS - i64::from(n) * HOUR_MS,
            event_id: None,
            user_id: Some(&user),
        };
        batch.push(&event, &[("plan", "pro")], &[]).unwrap();
    }
    for n in 0..800u32 {
        let event = Event {
            tenant: "t0",
            name: "export",
            timestamp_ms: NOW_MS - i64::from(n) * HOUR_MS,
            event_id: None,
            user_id: Some("u1"),
        };
        batch.push(&event, &[], &[]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    engine.flush().unwrap();
    engine
}

#[test]
fn windows_within_tenants_are_computed_some_tenants_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let engine = events_of_four_tenants(directory.path());
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let runs = "SELECT tenant_id, user_id, string_props['plan'] AS plan, \
                lag(event_id) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp) AS e FROM events WHERE event_name <> 'export'";
    for (rows, sql, found) in [
        // Groups within tenants, too, are computed below the queue, and need not be shared out.
        (
            100,
            format!("SELECT tenant_id, user_id, count(e) FROM ({runs}) x GROUP BY 1, 2"),
            Some(0),
        ),
        (100, format!("SELECT plan, count(e) FROM ({runs}) x GROUP BY 1"), Some(1)),
        (100, runs.to_owned(), Some(0)),
        (100, format!("SELECT * FROM ({runs}) x ORDER BY e, user_id"), Some(0)),
        // The order is that of the windows, in which partitions of a queue do not come.
        (100, format!("SELECT * FROM ({runs}) x ORDER BY tenant_id, user_id"), Some(0)),
        // A user may be of several tenants.
        (
            100,
            "SELECT lag(event_id) OVER (PARTITION BY user_id ORDER BY timestamp) FROM events"
                .to_owned(),
            None,
        ),
        (100, "SELECT tenant_id, user_id, count(*) FROM events GROUP BY 1, 2".to_owned(), None),
        (100, format!("{runs} AND tenant_id = 't1'"), None),
        // An aggregate in an order may count on that of the windows.
        (100, format!("SELECT nth_value(e, 2 ORDER BY e), count(*) FROM ({runs}) x"), None),
        (100, format!("SELECT plan, first_value(e ORDER BY e) FROM ({runs}) x GROUP BY 1"), None),
        // One tenant has most of the rows: all threads are needed for it.
        (100, runs.replace("WHERE event_name <> 'export'", ""), None),
        (TENANT_PARTITION_ROWS, runs.to_owned(), None),
    ] {
        let session = blank(2, 512 << 20).unwrap().with_tenant_partitions_of(rows);
        let plan = displayable(&*physical_of(&session, &scan, &sql)).indent(false).to_string();
        let shares = plan.matches("RepartitionExec: partitioning=Hash").count();
        let is_queued = plan.contains("PartitionQueueExec: 4 partitions by 2");
        assert_eq!(is_queued.then_some(shares), found, "{sql}\n{plan}");
    }
}

#[test]
fn joins_by_partition_have_both_sides_divided_alike() {
    let directory = tempfile::tempdir().unwrap();
    let engine = events_of_four_tenants(directory.path());
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    // The outer window is the library's, which has a sort between it and ours.
    let ranked = "(SELECT tenant_id, user_id, stddev(n) OVER (PARTITION BY tenant_id, user_id ORDER BY n DESC) AS n FROM (SELECT tenant_id, user_id, \
                  row_number() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp) AS n FROM events WHERE event_name <> 'export') w)";
    let on = "ON x.tenant_id = y.tenant_id AND x.user_id = y.user_id";
    let mut session = blank(2, 512 << 20).unwrap().with_tenant_partitions_of(100);
    let optimizer = &mut session.config.options_mut().optimizer;
    optimizer.hash_join_single_partition_threshold = 0;
    optimizer.hash_join_single_partition_threshold_rows = 0;
    for sql in [
        format!("SELECT count(*) FROM {ranked} x JOIN {ranked} y {on} AND x.n = y.n + 1"),
        format!("SELECT x.n, y.event_name FROM {ranked} x JOIN events y {on}"),
        format!("SELECT y.n, x.event_name FROM events x LEFT JOIN {ranked} y {on}"),
    ] {
        let plan = physical_of(&session, &scan, &sql);
        let shown = displayable(&*plan).indent(false).to_string();
        assert!(shown.contains("mode=Partitioned"), "{sql}\n{shown}");
        let is_broken = |node: &Arc<dyn ExecutionPlan>| {
            Ok(node.check_invariants(InvariantLevel::Executable).is_err())
        };
        assert!(!plan.exists(is_broken).unwrap(), "{sql}\n{shown}");
    }
}

/// Filters that a join learns reach the column that they are about, also where another one below has the same name.
#[test]
fn what_a_join_learns_is_about_one_column_of_several_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let engine = events_of_four_tenants(directory.path());
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(64 << 20).build().unwrap();
    let count = |sql: &str, learns: bool| {
        let mut session = blank(2, 512 << 20).unwrap();
        let optimizer = &mut session.config.options_mut().optimizer;
        optimizer.hash_join_single_partition_threshold = 0;
        optimizer.hash_join_single_partition_threshold_rows = 0;
        optimizer.enable_dynamic_filter_pushdown = learns;
        optimizer.enable_join_dynamic_filter_pushdown = learns;
        optimizer.enable_topk_dynamic_filter_pushdown = learns;
        let plan = physical_of(&session, &scan, sql);
        let shown = displayable(&*plan).indent(false).to_string();
        let task = session.task();
        let answering = async move { datafusion_physical_plan::collect(plan, task).await.unwrap() };
        let batches = runtime.block_on(runtime.spawn(answering)).unwrap();
        (batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), shown)
    };
    let groups = "(SELECT tenant_id, user_id, count(*) AS n FROM events GROUP BY 1, 2)";
    // Others than the first, so that both are not read as shared rows.
    let others = "(SELECT tenant_id, user_id, count(*) AS m FROM events WHERE tenant_id <> 't3' GROUP BY 1, 2)";
    let top = "(SELECT tenant_id AS t FROM events GROUP BY 1 ORDER BY count(*), 1 LIMIT 1)";
    for sql in [
        format!("SELECT * FROM {groups} a JOIN {others} b ON a.n = b.m JOIN {top} few ON few.t = b.tenant_id"),
        format!("SELECT * FROM {groups} a JOIN {others} b ON a.n = b.m JOIN {top} few ON few.t = a.tenant_id"),
        format!("SELECT * FROM {others} b JOIN {groups} a ON a.n = b.m JOIN {top} few ON few.t = a.tenant_id"),
        format!("SELECT * FROM {others} b JOIN {groups} a ON a.n = b.m JOIN {top} few ON few.t = b.tenant_id"),
        format!("SELECT * FROM events a JOIN {others} b ON a.user_id = b.user_id JOIN {top} few ON few.t = b.tenant_id"),
        format!("SELECT * FROM events a JOIN events b ON a.event_id = b.user_id OR a.user_id = b.user_id JOIN {top} few ON few.t = b.tenant_id"),
        format!("SELECT * FROM {groups} a JOIN {others} b ON a.user_id = b.user_id ORDER BY b.tenant_id DESC, b.user_id, a.tenant_id LIMIT 7"),
        format!("SELECT * FROM {groups} a JOIN {others} b ON a.user_id = b.user_id WHERE length(b.tenant_id) + length(a.user_id) > 3"),
        "SELECT x.event_id FROM (SELECT tenant_id, event_name, event_id FROM events UNION ALL SELECT event_name, tenant_id, event_id FROM events) x WHERE EXISTS (SELECT 1 FROM (SELECT tenant_id, event_name FROM events GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 2) t WHERE x.tenant_id = t.event_name AND x.event_name = t.tenant_id)".to_owned(),
    ] {
        let (learned, plan) = count(&sql, true);
        let (plain, _) = count(&sql, false);
        assert_eq!(learned, plain, "{sql}\n{plan}");
        assert!(plain > 0, "{sql}");
    }
}
