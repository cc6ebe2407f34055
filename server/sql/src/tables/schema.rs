//! Names and types of the tables' columns.
//!
//! ```text
//! events          tenant_id VARCHAR, event_name VARCHAR, timestamp TIMESTAMP, event_id VARCHAR, user_id VARCHAR,
//!                 string_props MAP(VARCHAR, VARCHAR), numeric_props MAP(VARCHAR, DOUBLE)
//! events_hourly   tenant_id VARCHAR, event_name VARCHAR, hour TIMESTAMP, count BIGINT, users BIGINT, users_state BLOB,
//!                 numeric_states MAP(VARCHAR, BLOB)
//! events_daily    the same, with day in the place of hour
//!
//! t1, call, 2026-11-20T10:17:36.789Z, e1, u31, {"model": "large", "plan": "free"}, {"ms": 229.75}
//! t1, call, 2026-11-20T00:00:00.000Z, 15, 13, \x…, {"cost": \x…, "ms": \x…}
//! ```
//!
//! `event_id` and `user_id` may be null, the other plain columns never are. Columns that rules add stand behind these, with names that end in a NUL.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};

/// A table that statements can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `events`: one row for each event.
    Events,
    /// `events_hourly`: one row for each tenant, event name and hour.
    Hourly,
    /// `events_daily`: one row for each tenant, event name and day.
    Daily,
}

/// The column of string properties.
pub const STRINGS: &str = "string_props";
/// The column of numeric properties.
pub const NUMBERS: &str = "numeric_props";
/// The column of states of numeric properties.
/// A digest of each property of the hour or day, for `approx_percentile_merge(numeric_states['ms'], 0.5)`.
pub const STATES: &str = "numeric_states";

impl Kind {
    /// All tables, events first.
    pub const ALL: [Self; 3] = [Self::Events, Self::Hourly, Self::Daily];

    /// Name of the table in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Hourly => "events_hourly",
            Self::Daily => "events_daily",
        }
    }

    /// Name of the column with the time, or the start of the hour or day.
    pub fn time_column(self) -> &'static str {
        match self {
            Self::Events => "timestamp",
            Self::Hourly => "hour",
            Self::Daily => "day",
        }
    }

    /// Length of its steps in milliseconds.
    /// Times in the time column are multiples of it.
    pub fn step_ms(self) -> i64 {
        match self {
            Self::Events => 1,
            Self::Hourly => 3_600_000,
            Self::Daily => 86_400_000,
        }
    }

    /// Columns in the order of the schema, without those of single properties.
    pub fn columns(self) -> Vec<Field> {
        let text = |name, nullable| Field::new(name, DataType::Utf8View, nullable);
        let time = DataType::Timestamp(TimeUnit::Millisecond, None);
        let mut fields = vec![text("tenant_id", false), text("event_name", false)];
        fields.push(Field::new(self.time_column(), time, false));
        if self == Self::Events {
            fields.extend([text("event_id", true), text("user_id", true)]);
            // No map is null, but what is read of it may be: the library looks at the column alone where `NOT IN` has to know.
            fields.push(Field::new(STRINGS, map_of(DataType::Utf8View), true));
            fields.push(Field::new(NUMBERS, map_of(DataType::Float64), true));
        } else {
            fields.push(Field::new("count", DataType::Int64, false));
            fields.push(Field::new("users", DataType::Int64, false));
            fields.push(Field::new("users_state", DataType::Binary, false));
            fields.push(Field::new(STATES, map_of(DataType::Binary), true));
        }
        fields
    }

    /// Type of a property in one of its maps.
    /// `None` for a column that is no map of properties.
    pub fn property_type(map: &str) -> Option<DataType> {
        match map {
            STRINGS => Some(DataType::Utf8View),
            NUMBERS => Some(DataType::Float64),
            STATES => Some(DataType::Binary),
            _ => None,
        }
    }
}

/// Key and value of a map.
pub fn entries_of(value: DataType) -> Fields {
    Fields::from(vec![Field::new("keys", DataType::Utf8, false), Field::new("values", value, true)])
}

fn map_of(value: DataType) -> DataType {
    let entries = Field::new("entries", DataType::Struct(entries_of(value)), false);
    DataType::Map(Arc::new(entries), false)
}

/// A property that is read as a column of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Property {
    /// Name of the column with its map.
    /// `string_props`, `numeric_props`, or `numeric_states`.
    pub map: String,
    /// Key of the property in its map.
    /// `plan`.
    pub name: String,
}

impl Property {
    /// As a column, which no statement can name: its name is no identifier and not in the list of columns.
    pub fn field(&self) -> Field {
        let kind = Kind::property_type(&self.map).unwrap_or(DataType::Null);
        Field::new(property_column(&self.map, &self.name), kind, true)
    }
}

/// What a property is called as a column, which no statement can name: none holds a NUL.
/// `string_props['plan']␀` for the key `plan`.
pub fn property_column(map: &str, name: &str) -> String {
    format!("{map}['{name}']\0")
}

/// The map and the name of the property that a column of a table is.
/// The other way round: `("string_props", "plan")`, and `None` for `user_id`.
pub fn property_of_column(column: &str) -> Option<(&'static str, &str)> {
    [STRINGS, NUMBERS, STATES].into_iter().find_map(|map| {
        let name = column.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']\0")?;
        Some((map, name))
    })
}

/// What the numbers of a column of texts are called as a column, which no statement can name either.
/// `number of tenant_id␀`.
pub fn number_column(name: &str) -> String {
    format!("number of {name}\0")
}

/// The columns of a table with some properties behind them, and numbers of these columns of texts.
///
/// Of `events`, with the property `plan` and numbers of `tenant_id`: its seven columns, `string_props['plan']␀` and `number of tenant_id␀`. Numbers are null
/// where their string is.
pub fn schema_with<'a>(
    kind: Kind,
    properties: &[Property],
    numbered: impl Iterator<Item = &'a str>,
) -> Arc<Schema> {
    let mut fields = kind.columns();
    fields.extend(properties.iter().map(Property::field));
    for name in numbered {
        let nullable =
            fields.iter().find(|field| field.name() == name).is_none_or(Field::is_nullable);
        fields.push(Field::new(number_column(name), DataType::UInt32, nullable));
    }
    Arc::new(Schema::new(fields))
}
