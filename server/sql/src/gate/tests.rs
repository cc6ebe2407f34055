//! What comes in and what does not.

use datafusion_sql::sqlparser::ast::{SelectItem, SetExpr};

use super::*;

#[test]
fn plain_statements_come_in() {
    for sql in [
        "SELECT 1",
        "select a from t;",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "(SELECT 1) UNION ALL SELECT 2 ORDER BY 1 LIMIT 3",
        "SELECT string_props['model'], count(*) FROM events GROUP BY 1 HAVING count(*) > 2",
        "SELECT * FROM events e JOIN events_daily d ON e.tenant_id = d.tenant_id AND e.timestamp > d.day",
        "SELECT a FROM events CROSS JOIN (SELECT max(timestamp) AS a FROM events) m",
        "WITH u AS (SELECT count(*) * 1.0 / max(x) AS m FROM events) SELECT * FROM events e CROSS JOIN u o GROUP BY o.m",
        "WITH u AS (SELECT round(avg(x), 2) AS m FROM events), w AS (SELECT m + 1 AS m FROM u) SELECT * FROM events, w",
        "SELECT * FROM events CROSS JOIN (VALUES (50), (90), (99)) p (q)",
        "SELECT * FROM events e JOIN (SELECT x FROM events ORDER BY x LIMIT 20) s ON e.x < s.x",
        "SELECT * FROM (SELECT 1 AS a UNION ALL SELECT 2) s, events, (VALUES (1)) v (n)",
        "SELECT * FROM events e JOIN (SELECT DISTINCT x FROM events) d ON e.x > d.x - 7 AND e.x <= d.x",
        "SELECT * FROM (SELECT x FROM events GROUP BY x) d LEFT JOIN events e ON e.x BETWEEN d.x AND d.x + 7 JOIN events f ON f.y = e.y",
        "WITH d AS (SELECT x FROM events GROUP BY x), l AS (SELECT x FROM d WHERE x > 5) SELECT * FROM l, events e WHERE e.x > l.x AND e.y = 1",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM d a JOIN d b ON a.x < b.x",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM events JOIN d ON x >= d.x AND x < d.x + 7",
        "WITH d AS (SELECT DISTINCT x FROM events), w AS (SELECT a.x FROM d a JOIN d b ON a.x < b.x), m AS (SELECT a.x FROM d a, d b WHERE a.x < b.x) SELECT * FROM w JOIN m ON w.x = m.x",
        "SELECT sum(x) OVER (PARTITION BY y ORDER BY z ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM events",
        "SELECT a, b, count(*) FROM events GROUP BY CUBE (a, b)",
        "SELECT CASE WHEN a IN (1, 2) THEN 'x' ELSE NULL END FROM events WHERE b BETWEEN $1 AND $2",
        "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, t)",
        "-- what is this; a comment\nSELECT /* ; */ 1",
        "SELECT * FROM (WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH b AS (SELECT x FROM a) SELECT * FROM (WITH c \
         AS (SELECT x FROM b) SELECT * FROM (WITH d AS (SELECT x FROM c) SELECT * FROM (WITH e AS (SELECT x FROM d) \
         SELECT * FROM e) v) w) x) y) z",
        "SELECT * FROM (SELECT 1 AS a) x CROSS JOIN (SELECT 2 AS b) y CROSS JOIN events",
        "SELECT * FROM events a, events b WHERE lower(a.x) = lower(b.x)",
        "SELECT * FROM events JOIN events_daily USING (tenant_id)",
        "SELECT * FROM events LEFT JOIN events_daily USING (tenant_id)",
        "SELECT 1 EXCEPT SELECT 2",
        "SELECT 1 UNION ALL SELECT 2",
        "SELECT sum(x) OVER w, lag(x) IGNORE NULLS OVER (ORDER BY y), lag(x, 2) OVER w FROM events WINDOW w AS (PARTITION BY z)",
    ] {
        assert_eq!(admit(sql).err(), None, "{sql}");
    }
}

#[test]
fn what_else_there_is_stays_out() {
    for sql in [
        "",
        ";",
        "SELECT 1; SELECT 2",
        "INSERT INTO events VALUES (1)",
        "WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x",
        "EXPLAIN SELECT 1",
        "SELECT 1 EXCEPT ALL SELECT 2",
        "SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS a",
        "SELECT 1 INTERSECT ALL SELECT 2",
        "SELECT sum(x) OVER (w ORDER BY y) FROM events WINDOW w AS (PARTITION BY z)",
        "SELECT sum(x) OVER v FROM events WINDOW w AS (PARTITION BY z), v AS (w ORDER BY y)",
        "SELECT lag(x, 2) IGNORE NULLS OVER (ORDER BY y) FROM events",
        "SELECT lead(x, 2 IGNORE NULLS) OVER (ORDER BY y) FROM events",
        "SELECT * FROM events FULL JOIN events_daily USING (tenant_id)",
        "SELECT * FROM events RIGHT JOIN events_daily USING (tenant_id)",
        "EXPLAIN ANALYZE SELECT 1",
        "SHOW TABLES",
        "SET a = 1",
        "COPY events TO 'x'",
        "VALUES (1)",
        "TABLE events",
        "SELECT 1 INTO x",
        "SELECT 1 FROM events FOR UPDATE",
        "SELECT * FROM events TABLESAMPLE SYSTEM (1)",
        "SELECT * FROM generate_series(1, 5)",
        "SELECT * FROM unnest(a)",
        "SELECT unnest(a) FROM events",
        "SELECT * FROM events, LATERAL (SELECT 1) x",
        "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT 1 FROM x) SELECT * FROM x",
        "SELECT * FROM events a CROSS JOIN events b",
        "SELECT * FROM events a, events b",
        "SELECT * FROM events a, events b WHERE a.x = 1",
        "SELECT * FROM events a JOIN events b ON a.x < b.x",
        "SELECT * FROM events a JOIN (SELECT x FROM events) b ON a.x < b.x",
        "SELECT * FROM events a JOIN (SELECT ALL x FROM events) b ON a.x < b.x",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON a.x <> b.x",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON a.x < x",
        "SELECT * FROM events a JOIN events b ON a.y = b.y JOIN (SELECT DISTINCT x FROM events) d ON a.x < b.x",
        "SELECT * FROM events a JOIN events b ON a.y = b.y, (SELECT DISTINCT x FROM events) d WHERE a.x < b.x",
        "SELECT * FROM events a, events b, (SELECT DISTINCT x FROM events) d WHERE a.x = d.x AND a.x < b.x",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON b.x < (SELECT max(c.x) FROM events c)",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM (SELECT a.x FROM (SELECT a.x FROM d a JOIN d b ON a.x < b.x) a JOIN d b ON a.x < b.x) s JOIN d c ON s.x < c.x",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON a.x < 5",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON a.x NOT BETWEEN b.x AND 5",
        "SELECT * FROM events a JOIN (SELECT DISTINCT x FROM events) b ON a.x < b.x OR a.y < b.y",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM d a JOIN d b ON a.x < b.x JOIN d c ON b.x < c.x",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM d a, d b, d c WHERE a.x < b.x AND b.x < c.x",
        "WITH d AS (SELECT DISTINCT x FROM events) SELECT * FROM d a, d b JOIN d c ON b.x < c.x WHERE a.x < b.x",
        "WITH d AS (SELECT DISTINCT x FROM events UNION ALL SELECT x FROM events) SELECT * FROM events a JOIN d ON a.x < d.x",
        "WITH events AS (SELECT DISTINCT x FROM events) SELECT * FROM events a JOIN events b ON a.x < b.x",
        "SELECT * FROM events a JOIN events b ON a.x = b.x OR true",
        "SELECT * FROM events a JOIN events b ON a.x = a.x",
        "SELECT * FROM events a JOIN events b ON lower('x') = b.x",
        "SELECT * FROM events NATURAL JOIN events_daily",
        "SELECT * FROM (SELECT max(x) FROM events) m CROSS JOIN events a CROSS JOIN events b",
        "SELECT * FROM events e, (SELECT 1 AS z) x CROSS JOIN events b",
        "WITH u AS (SELECT avg(x) AS m FROM events GROUP BY y) SELECT * FROM events CROSS JOIN u",
        "WITH u AS (SELECT avg(x) OVER () AS m FROM events) SELECT * FROM events CROSS JOIN u",
        "WITH u AS (SELECT (SELECT avg(x) FROM events) AS m FROM events) SELECT * FROM events, u",
        "SELECT * FROM (WITH u AS (SELECT max(x) FROM events) SELECT 1) z JOIN events a ON z.x = a.x CROSS JOIN u",
        "SELECT * FROM events CROSS JOIN (SELECT x FROM events LIMIT 33) s",
        "WITH events AS (SELECT count(*) AS n FROM events a CROSS JOIN events b) SELECT n FROM events",
        "WITH a AS (SELECT count(*) AS n FROM events x CROSS JOIN events y), events AS (SELECT 1) SELECT n FROM a",
        "WITH \"EVENTS\" AS (SELECT 1 AS x) SELECT count(*) FROM events a CROSS JOIN events b",
        "WITH b AS (SELECT x FROM events) SELECT * FROM (WITH a AS (SELECT 1 FROM b x CROSS JOIN b y), b AS (SELECT 1) SELECT * FROM a) z",
        "SELECT * FROM events a JOIN events b ON (a.tenant_id, 'acme') = ('acme', b.tenant_id)",
        "SELECT row_number() FILTER (WHERE a) OVER (ORDER BY b) FROM events",
        "SELECT * FROM events CROSS JOIN (SELECT 1 UNION ALL SELECT x FROM events) s",
        "SELECT * FROM events, (SELECT x FROM events LIMIT 20) s, (VALUES (1), (2)) v (n)",
        "SELECT * FROM events CROSS JOIN (SELECT x, count(*) FROM (VALUES (1)) v (x) GROUP BY ROLLUP (x)) s",
        "SELECT * FROM events e JOIN ((SELECT 1) x CROSS JOIN events a CROSS JOIN events b) ON e.x = a.x",
        "SELECT \"unnest\"(a) FROM events",
        "SELECT \"struct\"(1, 2)",
        "SELECT a[1:5] FROM events",
        "SELECT 1 FROM events GROUP BY CUBE (a, b, c, d), CUBE (e, f, g)",
        "FROM events SELECT 1",
        "SELECT '\0'",
        "SELECT 'x",
    ] {
        assert!(admit(sql).is_err(), "{sql}");
    }
}

/// On a stack as large as the worker's.
#[test]
fn large_statements_stay_out_and_none_breaks_the_gate() {
    let thread = std::thread::Builder::new().stack_size(crate::worker::STACK_BYTES);
    thread.spawn(large_statements).unwrap().join().unwrap();
}

fn large_statements() {
    let chain = |term: &str, count: usize| vec!["1"; count].join(term);
    assert!(admit(&format!("SELECT {}", chain("+", 150))).is_ok());
    assert!(admit(&format!("SELECT {} FROM events WHERE a IN ({})", "a", chain(",", 900))).is_ok());
    let named = |count: usize, uses: &str| {
        let mut sql = "WITH a0 AS (SELECT 1 AS a)".to_owned();
        for n in 1..count {
            let before = n - 1;
            sql += &format!(
                ", a{n} AS (SELECT * FROM a{before} {})",
                uses.replace('?', &before.to_string())
            );
        }
        format!("{sql} SELECT * FROM a{}", count - 1)
    };
    assert!(admit(&named(5, "UNION ALL SELECT * FROM a?")).is_ok());
    for sql in [
        format!("SELECT {}", chain("+", 250)),
        format!("SELECT {}", chain("+", 4_000)),
        format!("SELECT {}", chain(" OR ", 30_000)),
        format!("SELECT {}", chain(",", 300)),
        format!("SELECT 1 WHERE 1 IN ({})", chain(",", 1_500)),
        format!("SELECT {}1{}", "(".repeat(60), ")".repeat(60)),
        format!("SELECT {}1{}", "(".repeat(30_000), ")".repeat(30_000)),
        format!("SELECT {}1", "- ".repeat(3_000)),
        format!("SELECT {}1", "NOT ".repeat(3_000)),
        format!("SELECT {}1{}", "CASE WHEN 1 = 1 THEN ".repeat(50), " END".repeat(50)),
        vec!["SELECT 1"; 300].join(" UNION ALL "),
        format!("{}SELECT 1{}", "SELECT * FROM (".repeat(60), ")".repeat(60)),
        "SELECT a FROM events GROUP BY CUBE (a, b, c, d, e, f, g, h)".to_owned(),
        named(10, "UNION ALL SELECT * FROM a?"),
        named(10, "UNION ALL SELECT * FROM a?")
            .replace("a0", r#""a""0""#)
            .replace("a1", r#""A""1""#),
        named(25, ""),
        format!("SELECT '{}'", "x".repeat(70_000)),
        format!("SELECT {}", "a[".repeat(3_000)),
        format!("SELECT 1 FROM {}", vec!["events"; 30].join(" NATURAL JOIN ")),
    ] {
        assert!(admit(&sql).is_err(), "{}", &sql[..sql.len().min(80)]);
    }
}

#[test]
fn a_mistake_has_a_place() {
    let refusal = admit("SELECT\n  a FRM events WHERE").unwrap_err();
    assert_eq!(refusal.position.map(|(line, _)| line), Some(2), "{refusal:?}");
    assert!(refusal.message.starts_with("syntax: "), "{refusal:?}");
    let refusal = admit("SELECT * FROM events a, events b").unwrap_err();
    assert!(refusal.hint.is_some());
}

#[test]
fn columns_without_a_name_get_one_of_their_own() {
    for (sql, expected) in [
        ("SELECT tenant_id, e.user_id FROM events e", vec!["tenant_id", "e.user_id"]),
        ("SELECT tenant_id, tenant_id FROM events", vec!["tenant_id", "tenant_id\u{0}1"]),
        ("SELECT count(*), count(*) FROM events", vec!["count\u{0}0", "count\u{0}1"]),
        ("SELECT 1 AS a, 2 AS a", vec!["a", "a\u{0}1"]),
        ("SELECT *, tenant_id FROM events", vec!["*", "tenant_id\u{0}1"]),
        (
            "SELECT avg(numeric_props['ms']), string_props['plan'] FROM events",
            vec!["avg\u{0}0", "plan\u{0}1"],
        ),
        (
            "SELECT CAST(x AS DATE), (y), (SELECT max(z) FROM events) FROM events",
            vec!["x\u{0}0", "y\u{0}1", "max\u{0}2"],
        ),
        (
            "SELECT a + 1, 'text', CASE WHEN a THEN b END",
            vec!["a + 1\u{0}0", "'text'\u{0}1", "case\u{0}2"],
        ),
        ("SELECT 1 UNION ALL SELECT 2", vec!["1\u{0}0", "2\u{0}0"]),
    ] {
        let Ok(Statement::Query(query)) = admit(sql) else { panic!("{sql}") };
        let mut names = Vec::new();
        collect(&query.body, &mut names);
        assert_eq!(names, expected, "{sql}");
    }
    assert_eq!((shown("count\u{0}1"), shown("a")), ("count", "a"));
    assert_eq!(without_positions("no field \"count\u{0}12\" in x"), "no field \"count\" in x");
}

fn collect(body: &SetExpr, names: &mut Vec<String>) {
    match body {
        SetExpr::Select(select) => names.extend(select.projection.iter().map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            item => item.to_string(),
        })),
        SetExpr::SetOperation { left, right, .. } => {
            collect(left, names);
            collect(right, names);
        }
        body => panic!("{body}"),
    }
}
