//! Comparisons of a join bound what is read of its larger side, and change no answer.
//!
//! ```text
//! FROM few f JOIN events e ON e.tenant_id = f.tenant_id AND e.timestamp > f.last     rows before the first `last` are not handed on
//! FROM few f FULL JOIN events e ON …                                                 all are: they are in the answer
//! ```

use arrow::{
    array::{AsArray as _, RecordBatch},
    compute::concat_batches,
    datatypes::Int64Type,
};

use super::{
    scans::{engine_of_a_month, rows_read},
    *,
};

/// The rows of a statement, and how many rows of `events` were read for it: joins gather their smaller side, or divide both.
fn joined(engine: &Engine, sql: &str, is_divided: bool) -> (RecordBatch, usize) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(64 << 20).build().unwrap();
    let scan = Arc::new(engine.snapshot(Namespace(1)).open().unwrap());
    let mut session = blank(2, 512 << 20).unwrap();
    if is_divided {
        let optimizer = &mut session.config.options_mut().optimizer;
        optimizer.hash_join_single_partition_threshold = 0;
        optimizer.hash_join_single_partition_threshold_rows = 0;
    }
    let statement = sql.to_owned();
    let answering = async move {
        let plan = physical_of(&session, &scan, &statement);
        let task = session.task();
        let batches = datafusion_physical_plan::collect(Arc::clone(&plan), task).await.unwrap();
        (concat_batches(&plan.schema(), &batches).unwrap(), rows_read(&plan))
    };
    runtime.block_on(runtime.spawn(answering)).unwrap()
}

/// Last logins of tenants, in the last hour of the month.
const LAST: &str =
    "(SELECT tenant_id, max(timestamp) AS last FROM events WHERE event_name = 'login' GROUP BY 1)";
/// Rows of the last two hours of 28 days.
const FEW_ROWS: usize = 4_000;

#[test]
fn the_larger_side_is_read_within_the_bounds_of_the_smaller_one() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let key = "e.tenant_id = f.tenant_id";
    let after = "e.timestamp > f.last - INTERVAL '2 hours'";
    let between = format!("{after} AND f.last - INTERVAL '1 hour' >= e.timestamp");
    for (from, is_bounded) in [
        (format!("{LAST} f JOIN events e ON {key} AND {after}"), true),
        (format!("events e JOIN {LAST} f ON {key} AND {between}"), true),
        (format!("{LAST} f LEFT JOIN events e ON {key} AND {between}"), true),
        (format!("events e RIGHT JOIN {LAST} f ON {key} AND {after}"), true),
        // Without a partner, events are in these answers.
        (format!("{LAST} f RIGHT JOIN events e ON {key} AND {after}"), false),
        (format!("{LAST} f FULL JOIN events e ON {key} AND {between}"), false),
    ] {
        for columns in ["count(*), count(f.last), max(e.event_id)", "f.tenant_id, e.event_id"] {
            let statement = |from: &str| format!("SELECT {columns} FROM {from} ORDER BY 1, 2");
            for is_divided in [false, true] {
                let (rows, read) = joined(&engine, &statement(&from), is_divided);
                // A difference is no comparison of a column.
                let plain =
                    from.replace("e.timestamp > f.last -", "e.timestamp - f.last > -").replace(
                        "f.last - INTERVAL '1 hour' >= e.timestamp",
                        "f.last - e.timestamp >= INTERVAL '1 hour'",
                    );
                let (expected, all) = joined(&engine, &statement(&plain), is_divided);
                assert_eq!(rows, expected, "{from}, divided: {is_divided}");
                assert!(rows.num_rows() > 0, "{from}");
                assert!(all > 30_000, "{all}: {plain}");
                assert_eq!(is_bounded, read < FEW_ROWS, "{read}: {from}, divided: {is_divided}");
            }
        }
    }
    // Whether there is a partner, and whether there is none.
    for exists in ["EXISTS", "NOT EXISTS"] {
        let few = |condition: &str| {
            format!(
                "SELECT f.tenant_id FROM {LAST} f WHERE {exists} (SELECT 1 FROM events e WHERE {key} AND {condition}) ORDER BY 1"
            )
        };
        let late = "e.timestamp > f.last + INTERVAL '1 minute'";
        let (rows, read) = joined(&engine, &few(late), false);
        let (expected, _) =
            joined(&engine, &few("e.timestamp - f.last > INTERVAL '1 minute'"), false);
        assert_eq!(rows, expected, "{exists}");
        assert!(read < FEW_ROWS, "{read}: {exists}");
    }
}

#[test]
fn bounds_are_those_of_values_that_can_be_compared() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_of_a_month(directory.path());
    let ms = "e.numeric_props['ms']";
    for (values, comparison, plain) in [
        // NaN is greater than any number.
        (
            "('acme', 3.0), ('beta', CAST('NaN' AS DOUBLE))",
            format!("{ms} < f.x"),
            format!("{ms} + 0 < f.x"),
        ),
        (
            "('acme', CAST('NaN' AS DOUBLE)), ('beta', 8.0)",
            format!("{ms} > f.x"),
            format!("{ms} + 0 > f.x"),
        ),
        ("('acme', 3.0), ('beta', NULL)", format!("f.x >= {ms}"), format!("f.x >= {ms} + 0")),
        (
            "('acme', CAST(NULL AS DOUBLE)), ('beta', NULL)",
            format!("f.x >= {ms}"),
            format!("f.x >= {ms} + 0"),
        ),
        // Of a tenant without events the text is never asked for.
        (
            "('acme', '4'), ('nobody', 'x')",
            format!("{ms} > CAST(f.x AS DOUBLE)"),
            format!("{ms} + 0 > CAST(f.x AS DOUBLE)"),
        ),
        (
            "('acme', 2.0), ('beta', 9.0)",
            format!("{ms} <= f.x AND {ms} > f.x - 1"),
            format!("{ms} + 0 <= f.x AND {ms} + 0 > f.x - 1"),
        ),
    ] {
        let statement = |condition: &str| {
            format!(
                "SELECT e.tenant_id, count(*), min({ms}), max({ms}) FROM (VALUES {values}) f (t, x) \
                 JOIN events e ON e.tenant_id = f.t AND {condition} GROUP BY 1 ORDER BY 1"
            )
        };
        for is_divided in [false, true] {
            let (rows, _) = joined(&engine, &statement(&comparison), is_divided);
            let (expected, _) = joined(&engine, &statement(&plain), is_divided);
            assert_eq!(rows, expected, "{values}: {comparison}");
        }
    }
    // Of the tenant whose rows have no partner the quotient is never asked for.
    let (rows, _) = joined(
        &engine,
        "SELECT count(*) FROM (VALUES ('acme', -5)) f (t, x) JOIN (SELECT tenant_id, \
         10 / (CAST(strpos(tenant_id, 'a') AS BIGINT) - 4) AS n FROM events) e ON e.tenant_id = f.t AND e.n > f.x",
        false,
    );
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), 20_000);
    // Without a key.
    let days = "(VALUES (1, TIMESTAMP '2026-11-20 00:00:00'), (2, TIMESTAMP '2026-11-21 12:00:00')) d (n, day)";
    let comparison = "e.timestamp >= d.day AND e.timestamp < d.day + INTERVAL '6 hours'";
    let plain =
        "e.timestamp - d.day >= INTERVAL '0 hours' AND e.timestamp - d.day < INTERVAL '6 hours'";
    let statement = |condition: &str| {
        format!(
            "SELECT d.n, count(e.event_id) FROM {days} LEFT JOIN events e ON {condition} GROUP BY 1 ORDER BY 1"
        )
    };
    let (rows, read) = joined(&engine, &statement(comparison), false);
    let (expected, all) = joined(&engine, &statement(plain), false);
    assert_eq!(rows, expected);
    assert!(read < all / 2, "{read} of {all}");
    // Nothing is compared with null: no row is read. Below a join that gathers its smaller side, which has a name twice, the scan of that
    // side begins at once and may have read rows by then, so only that it waits for the bound is asked.
    let never =
        "(SELECT 'acme' AS t, max(timestamp) AS since FROM events WHERE tenant_id = 'nobody') n";
    let both = "(SELECT a.tenant_id, a.timestamp, b.user_id FROM events a JOIN events b ON b.event_id = a.event_id)";
    for from in ["events", both] {
        let sql = format!(
            "SELECT count(*) FROM {never} JOIN {from} e ON e.tenant_id = n.t AND e.timestamp > n.since"
        );
        let (rows, read) = joined(&engine, &sql, false);
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), 0);
        assert!(read == 0 || from == both, "{read}: {from}");
        let plan = plan(&engine, &sql);
        let asks = r#"DynamicFilterPhysicalExpr { children: [Column { name: "timestamp""#;
        assert!(plan.contains(asks), "{plan}");
    }
}
