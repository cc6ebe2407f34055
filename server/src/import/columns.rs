//! Which column of a table is which part of an event.
//!
//! ```text
//! account,created_at,plan,amount          --field tenant_id=account --field timestamp=created_at --value event_name=order
//! acme,2025-03-01 10:00:00,pro,12.5
//!
//! {"tenant_id": "acme", "timestamp": "2025-03-01 10:00:00", "event_name": "order",
//!  "string_props": {"plan": "pro"}, "numeric_props": {"amount": 12.5}}
//! ```
//!
//! A column with the name of a field is that field; every other one is a property with the name of the column.
//!
//! Units of numbers that are times follow from their size: below 1e11 they are seconds, below 1e14 milliseconds, below 1e17 microseconds.
//!
//! ```text
//! 1740823200             seconds         2025-03-01T10:00:00.000Z
//! 1740823200000          milliseconds    the same
//! 1740823200000000000    nanoseconds     the same
//! 202503011200           as a text it has no length of a unit: it is left for the API to refuse
//! ```
//!
//! Refused before anything is sent:
//!
//! ```text
//! --text zip                                           there is no column zip; these are: tenant_id
//! --field user_id=a --field tenant_id=a                a can be one field only
//! --field tenant_id=a --ignore a                       a is to be tenant_id and to be left out
//! a header plan,plan                                   two columns would be the same, plan and another one; leave one out with --ignore
//! --field tenant=account                               tenant is no field of an event; these are: tenant_id, event_name, …
//! ```

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value as Json, json};

use crate::base::instant;

/// Fields of an event that a column, or a value for all rows, can be.
const FIELDS: [&str; 5] = ["tenant_id", "event_name", "timestamp", "event_id", "user_id"];

/// Units of times since 1970: numbers below the first are in the second, in milliseconds each.
const TIME_UNITS: [(f64, f64); 4] = [(1e11, 1e3), (1e14, 1.0), (1e17, 1e-3), (f64::INFINITY, 1e-6)];

/// What the columns of a file are.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnOptions {
    /// A field of the event and the column that it is: `tenant_id=account`
    #[arg(long = "field", value_name = "FIELD=COLUMN", value_parser = assignment)]
    pub fields: Vec<(String, String)>,
    /// A field that is the same in every row which has none: `event_name=order`
    #[arg(long = "value", value_name = "FIELD=TEXT", value_parser = assignment)]
    pub values: Vec<(String, String)>,
    /// A column whose values are strings, although they look like numbers
    #[arg(long = "text", value_name = "COLUMN")]
    pub texts: Vec<String>,
    /// A column that is left out
    #[arg(long = "ignore", value_name = "COLUMN")]
    pub ignored: Vec<String>,
}

/// `FIELD=…`, of a field that there is.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (field, value) = text.split_once('=').ok_or("it is FIELD=…, such as tenant_id=account")?;
    if !FIELDS.contains(&field) {
        return Err(format!("{field} is no field of an event; these are: {}", FIELDS.join(", ")));
    }
    if value.is_empty() {
        return Err(format!("nothing stands behind {field}="));
    }
    Ok((field.to_owned(), value.to_owned()))
}

/// Whether a field is not there, as the API sees it.
///
/// Null and the empty string are; 0 and `false` are values.
pub fn is_nothing(value: &Json) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// The value of a column in a row.
///
/// CSV has texts and numbers, Parquet all of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// There is none.
    Nothing,
    /// A string, never empty in an event.
    Text(String),
    /// A number with a fraction or without one.
    Number(f64),
    /// An integer, every digit of which counts where it is an id.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// Milliseconds since 1970.
    Instant(i64),
}

/// What a column is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ColumnTarget {
    /// One of the five fields of an event.
    Field(String),
    /// A property; a number where its values are numbers.
    Property(String),
    /// A property whose values are strings, although they look like numbers.
    TextProperty(String),
    /// A column that `--ignore` names.
    Ignored,
}

/// The columns of a file, in their order.
#[derive(Debug)]
pub struct TableColumns {
    targets: Vec<ColumnTarget>,
}

impl TableColumns {
    /// Of columns with these names.
    ///
    /// Errors: an option that names a column which is not there, or two columns that are the same field.
    pub fn new(names: &[String], options: &ColumnOptions) -> anyhow::Result<Self> {
        let named = options.fields.iter().map(|(_, column)| column);
        for column in named.chain(&options.texts).chain(&options.ignored) {
            if !names.contains(column) {
                bail!("there is no column {column}; these are: {}", names.join(", "));
            }
        }
        for (field, column) in &options.fields {
            if options.ignored.contains(column) {
                bail!("{column} is to be {field} and to be left out");
            }
            if options.fields.iter().any(|(other, same)| same == column && other != field) {
                bail!("{column} can be one field only");
            }
        }
        let targets: Vec<ColumnTarget> = names.iter().map(|name| target(name, options)).collect();
        for (at, one) in targets.iter().enumerate() {
            let (name, is_ignored) = (names.get(at), *one == ColumnTarget::Ignored);
            if targets.iter().skip(at + 1).any(|other| other == one) && !is_ignored {
                let name = name.map_or("", String::as_str);
                bail!(
                    "two columns would be the same, {name} and another one; leave one out with --ignore"
                );
            }
        }
        Ok(Self { targets })
    }

    /// Whether a column is a property that may be a number.
    ///
    /// `false` for fields, whose numbers are ids, and for columns of `--text`.
    pub fn may_be_number(&self, column: usize) -> bool {
        matches!(self.targets.get(column), Some(ColumnTarget::Property(_)))
    }

    /// The event of a row.
    ///
    /// Errors: a value that no event can have there, with the name of the column.
    ///
    /// `cells` are in the order of the columns. A [`Cell::Nothing`] adds nothing.
    pub fn event(&self, cells: impl Iterator<Item = Cell>) -> Result<Map<String, Json>, String> {
        let mut event = Map::new();
        for (target, cell) in self.targets.iter().zip(cells) {
            let (name, value) = match target {
                ColumnTarget::Ignored => continue,
                ColumnTarget::Field(field) if field == "timestamp" => (field, time(cell)?),
                ColumnTarget::Field(field) => (field, text(cell)),
                ColumnTarget::Property(name) => {
                    add_property(&mut event, name, cell)?;
                    continue;
                }
                ColumnTarget::TextProperty(name) => {
                    let cell = text(cell).map_or(Cell::Nothing, Cell::Text);
                    add_property(&mut event, name, cell)?;
                    continue;
                }
            };
            if let Some(value) = value {
                event.insert(name.clone(), json!(value));
            }
        }
        Ok(event)
    }
}

/// Gives an event a property: numbers are numeric ones, all else are strings.
///
/// Errors: a number that JSON does not have, and a property that comes twice.
///
/// `("amount", Number(12.5))` is `"numeric_props": {"amount": 12.5}`, `("plan", Text("pro"))` is `"string_props": {"plan": "pro"}`; true and
/// false are strings.
pub fn add_property(event: &mut Map<String, Json>, name: &str, cell: Cell) -> Result<(), String> {
    let (kind, value) = match cell {
        Cell::Number(number) if !number.is_finite() => {
            return Err(format!("{name} is {number}, which JSON cannot say"));
        }
        Cell::Number(number) => ("numeric_props", json!(number)),
        Cell::Integer(number) => ("numeric_props", json!(number)),
        other => match text(other) {
            Some(text) => ("string_props", json!(text)),
            None => return Ok(()),
        },
    };
    let properties = event.entry(kind).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(properties) = properties
        && properties.insert(name.to_owned(), value).is_some()
    {
        return Err(format!("{name} comes twice: in a column and in a map"));
    }
    Ok(())
}

/// What a column with this name is: options come before names.
fn target(name: &str, options: &ColumnOptions) -> ColumnTarget {
    if options.ignored.iter().any(|ignored| ignored == name) {
        return ColumnTarget::Ignored;
    }
    if let Some((field, _)) = options.fields.iter().find(|(_, column)| column == name) {
        return ColumnTarget::Field(field.clone());
    }
    // A column that is called like a field which another column was named for is a property.
    let is_taken = options.fields.iter().any(|(field, _)| field == name);
    match FIELDS.contains(&name) && !is_taken {
        true => ColumnTarget::Field(name.to_owned()),
        false if options.texts.iter().any(|text| text == name) => {
            ColumnTarget::TextProperty(name.to_owned())
        }
        false => ColumnTarget::Property(name.to_owned()),
    }
}

/// A value as a string, `None` for nothing and for the empty text. An instant is written as the API takes it.
fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Nothing => None,
        Cell::Text(text) => (!text.is_empty()).then_some(text),
        Cell::Number(number) => Some(number.to_string()),
        Cell::Integer(number) => Some(number.to_string()),
        Cell::Boolean(value) => Some(value.to_string()),
        Cell::Instant(ms) => Some(instant::format(ms)),
    }
}

/// A time as the API takes it. Numbers are seconds, milliseconds, micro- or nanoseconds since 1970, by how large they are.
fn time(cell: Cell) -> Result<Option<String>, String> {
    let since_1970 = |number: f64| {
        let unit = TIME_UNITS.into_iter().find(|(below, _)| number.abs() < *below);
        let (_, ms) = unit.ok_or_else(|| format!("timestamp is {number}, which is not a time"))?;
        Ok(Some(instant::format((number * ms).round() as i64)))
    };
    match cell {
        Cell::Number(number) => since_1970(number),
        Cell::Integer(number) => since_1970(number as f64),
        // Other lengths may be `20250301` or `202503011200`, which the API refuses.
        Cell::Text(text) => match text.split('.').next().map_or(0, str::len) {
            9 | 10 | 13 | 16 | 19
                if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') =>
            {
                text.parse().map_or(Ok(Some(text)), since_1970)
            }
            _ => Ok((!text.is_empty()).then_some(text)),
        },
        other => Ok(text(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn columns_are_fields_by_name_or_by_option_and_properties_else() {
        let options = ColumnOptions {
            fields: vec![("tenant_id".into(), "account".into())],
            ignored: names(&["note"]),
            ..ColumnOptions::default()
        };
        let header = names(&["account", "timestamp", "plan", "amount", "note", "tenant_id"]);
        let columns = TableColumns::new(&header, &options).unwrap();
        let cells = [
            Cell::Integer(9_007_199_254_740_993),
            Cell::Integer(1_740_823_200),
            Cell::Text("pro".into()),
            Cell::Number(12.5),
            Cell::Text("secret".into()),
            Cell::Text("t".into()),
        ];
        let event = columns.event(cells.into_iter()).unwrap();
        assert_eq!(
            Json::Object(event),
            json!({
                "tenant_id": "9007199254740993", "timestamp": "2025-03-01T10:00:00.000Z",
                "string_props": {"plan": "pro", "tenant_id": "t"}, "numeric_props": {"amount": 12.5},
            })
        );
    }

    #[test]
    fn times_are_texts_or_seconds_or_milliseconds() {
        let read = |cell: Cell| time(cell).unwrap();
        let noon = Some("2025-03-01T10:00:00.000Z".to_owned());
        assert_eq!(read(Cell::Integer(1_740_823_200)), noon);
        assert_eq!(read(Cell::Number(1_740_823_200_000.0)), noon);
        assert_eq!(read(Cell::Text("1740823200".into())), noon);
        assert_eq!(read(Cell::Integer(1_740_823_200_000_000_000)), noon);
        for text in ["2025-03-01", "202503011200", "20250301120000", "1,740,823,200"] {
            assert_eq!(
                read(Cell::Text(text.into())).as_deref(),
                Some(text),
                "for the API to refuse or to take"
            );
        }
        assert_eq!(read(Cell::Text(String::new())), None);
        assert!(time(Cell::Number(f64::NAN)).is_err());
    }

    #[test]
    fn options_about_columns_that_are_not_there_are_refused() {
        let wrong = ColumnOptions { texts: names(&["zip"]), ..ColumnOptions::default() };
        let error = TableColumns::new(&names(&["tenant_id"]), &wrong).unwrap_err().to_string();
        assert_eq!(error, "there is no column zip; these are: tenant_id");
        let twice = ColumnOptions {
            fields: vec![("user_id".into(), "a".into()), ("user_id".into(), "b".into())],
            ..ColumnOptions::default()
        };
        assert!(TableColumns::new(&names(&["a", "b"]), &twice).is_err());
        let options = |fields: &[(&str, &str)], ignored: &[&str]| ColumnOptions {
            fields: fields.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect(),
            ignored: names(ignored),
            ..ColumnOptions::default()
        };
        let of =
            |header: &[&str], options: ColumnOptions| TableColumns::new(&names(header), &options);
        assert!(of(&["plan", "plan"], options(&[], &[])).is_err());
        assert!(of(&["plan", "plan"], options(&[], &["plan"])).is_ok());
        assert!(of(&["a"], options(&[("tenant_id", "a"), ("user_id", "a")], &[])).is_err());
        assert!(of(&["a"], options(&[("tenant_id", "a")], &["a"])).is_err());
        assert!(assignment("tenant=account").is_err() && assignment("tenant_id").is_err());
    }
}
