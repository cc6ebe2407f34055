//! The SQL tables as the console lists them: columns, properties and sizes.
//!
//! ```text
//! GET /v1/datasets
//! 200 {"data": [{"name": "events", "kind": "table", "rows": 20000, "bytes": 812000, "updated_at": "2026-11-20T10:17:36.789Z",
//!                "columns": [{"name": "tenant_id", "type": "VARCHAR", "nullable": false, …}, …],
//!                "properties": [{"name": "model", "type": "VARCHAR", "sql": "string_props['model']", "events": ["api_call"]}, …]},
//!               {"name": "events_hourly", "kind": "view", …}, {"name": "events_daily", "kind": "view", …}]}
//!
//! GET /v1/datasets/events/ddl
//! 200 {"name": "events", "ddl": "CREATE TABLE events (\n  -- Your customer whose event it is.\n  tenant_id VARCHAR NOT NULL,\n  …\n);\n"}
//! ```
//!
//! The columns are those of the schema that statements see (`server/sql`); here they are described for people.

use std::collections::BTreeMap;

use inlay_engine::rows::Sizes;

use crate::{
    app::request::{callers::Caller, context::App},
    error::{ApiError, Result},
};

/// A column: name, type, whether it may be null, what it holds: `("user_id", "VARCHAR", true, "Who did it.")`.
type ColumnFacts = (&'static str, &'static str, bool, &'static str);

/// Constant description of a table.
struct Table {
    name: &'static str,
    about: &'static str,
    columns: &'static [ColumnFacts],
    /// Statement of a view; `None` for a table.
    selects: Option<&'static str>,
}

// Columns that all three tables begin with.
const SERIES: [ColumnFacts; 2] = [
    ("tenant_id", "VARCHAR", false, "Your customer whose event it is."),
    ("event_name", "VARCHAR", false, "Name of the event."),
];
// Columns of both rollup tables after the time.
const STATES: [ColumnFacts; 4] = [
    ("count", "BIGINT", false, "Number of events."),
    ("users", "BIGINT", false, "Distinct users, about."),
    ("users_state", "BLOB", false, "For approx_distinct_merge(users_state) over several rows."),
    (
        "numeric_states",
        "MAP(VARCHAR, BLOB)",
        false,
        "For approx_percentile_merge(numeric_states['latency_ms'], 0.95) over several rows.",
    ),
];

const TABLES: [Table; 3] = [
    Table {
        name: "events",
        about: "Every event.",
        columns: &[
            SERIES[0],
            SERIES[1],
            ("timestamp", "TIMESTAMP", false, "When it happened, in UTC."),
            ("event_id", "VARCHAR", true, "What its sender calls it."),
            ("user_id", "VARCHAR", true, "Who did it."),
            ("string_props", "MAP(VARCHAR, VARCHAR)", false, "Read one as string_props['model']."),
            (
                "numeric_props",
                "MAP(VARCHAR, DOUBLE)",
                false,
                "Read one as numeric_props['latency_ms'].",
            ),
        ],
        selects: None,
    },
    Table {
        name: "events_hourly",
        about: "What the events of each hour add up to.",
        columns: &[
            SERIES[0],
            SERIES[1],
            ("hour", "TIMESTAMP", false, "When the hour begins, in UTC."),
            STATES[0],
            STATES[1],
            STATES[2],
            STATES[3],
        ],
        selects: Some(
            "SELECT tenant_id, event_name, date_trunc('hour', timestamp) AS hour, count(*) AS count,\n       \
             approx_distinct(user_id) AS users -- with users_state and numeric_states kept beside\nFROM events\nGROUP BY 1, 2, 3",
        ),
    },
    Table {
        name: "events_daily",
        about: "What the events of each day add up to.",
        columns: &[
            SERIES[0],
            SERIES[1],
            ("day", "TIMESTAMP", false, "When the day begins, in UTC."),
            STATES[0],
            STATES[1],
            STATES[2],
            STATES[3],
        ],
        selects: Some(
            "SELECT tenant_id, event_name, date_trunc('day', timestamp) AS day, count(*) AS count,\n       \
             approx_distinct(user_id) AS users -- with users_state and numeric_states kept beside\nFROM events\nGROUP BY 1, 2, 3",
        ),
    },
];

/// A table with its sizes in one environment.
pub struct Dataset {
    /// Name in SQL: `events`, `events_hourly` or `events_daily`.
    pub name: &'static str,
    /// `table` or `view`.
    pub kind: &'static str,
    /// Description for people, one sentence.
    pub about: &'static str,
    /// Number of rows, approximately; expired events do not count.
    pub rows: u64,
    /// Bytes of the rows, approximately; both views report the bytes of all rollups.
    pub bytes: u64,
    /// Time of the newest event in milliseconds since 1970; `None` without events.
    pub updated_at: Option<i64>,
    /// Columns in the order of the schema.
    pub columns: &'static [ColumnFacts],
    /// Properties of the events of the last thirty days, where the table has them.
    pub properties: Vec<Property>,
}

/// A property that events have.
pub struct Property {
    /// Name of the property, the key in its map.
    pub name: String,
    /// SQL expression for the property, such as `string_props['model']`.
    pub sql: String,
    /// SQL type: `VARCHAR` or `DOUBLE`.
    pub kind: &'static str,
    /// Names of the events that have the property.
    pub events: Vec<String>,
}

impl App {
    /// The tables that statements of the caller can name.
    ///
    /// Errors: those of reading the events of the last thirty days, such as `query_timeout`.
    pub fn datasets(&self, caller: &Caller) -> Result<Vec<Dataset>> {
        let sizes = self.engine.snapshot(caller.environment.namespace()).sizes();
        let mut properties = self.properties(caller)?;
        let of = |table: &'static Table| {
            let Sizes { rows, hours, days, bytes, rollup_bytes, last_ms } = sizes;
            let (rows, bytes) = match table.name {
                "events" => (rows, bytes),
                "events_hourly" => (hours, rollup_bytes),
                _ => (days, rollup_bytes),
            };
            let properties =
                if table.name == "events" { std::mem::take(&mut properties) } else { Vec::new() };
            Dataset {
                name: table.name,
                kind: if table.selects.is_some() { "view" } else { "table" },
                about: table.about,
                rows,
                bytes,
                updated_at: last_ms,
                columns: table.columns,
                properties,
            }
        };
        Ok(TABLES.iter().map(of).collect())
    }

    /// Properties of all events together, numbers first, each group by name.
    fn properties(&self, caller: &Caller) -> Result<Vec<Property>> {
        let mut all: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        for event in self.discover(caller)?.events {
            let texts = event.texts.into_iter().map(|text| ("string_props", text.name));
            let numbers = event.numbers.into_iter().map(|number| ("numeric_props", number.name));
            for property in texts.chain(numbers) {
                all.entry(property).or_default().push(event.name.clone());
            }
        }
        let property = |((map, name), events): ((&str, String), Vec<String>)| Property {
            sql: format!("{map}['{}']", name.replace('\'', "''")),
            kind: if map == "string_props" { "VARCHAR" } else { "DOUBLE" },
            name,
            events,
        };
        Ok(all.into_iter().map(property).collect())
    }

    /// The create statement of a table. 404 for an unknown name.
    ///
    /// It documents the table, with a comment for each column; no statement of ours creates one.
    pub fn dataset_ddl(&self, name: &str) -> Result<String> {
        let table = TABLES.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| ApiError::not_found("dataset"))?;
        let name = table.name;
        let Some(selects) = table.selects else {
            let columns = table.columns.iter().map(|(name, kind, nullable, about)| {
                let null = if *nullable { "" } else { " NOT NULL" };
                format!("  -- {about}\n  {name} {kind}{null}")
            });
            let columns = columns.collect::<Vec<_>>().join(",\n");
            return Ok(format!("CREATE TABLE {name} (\n{columns}\n);\n"));
        };
        let columns = table.columns.iter().map(|(name, kind, nullable, about)| {
            let null = if *nullable { "" } else { " NOT NULL" };
            format!("-- {name} {kind}{null}: {about}\n")
        });
        let columns = columns.collect::<String>();
        Ok(format!("CREATE MATERIALIZED VIEW {name} AS\n{selects};\n\n{columns}"))
    }
}
