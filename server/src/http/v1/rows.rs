//! Rows of a metric query as JSON text.
//!
//! `{"bucket":"2026-11-20T00:00:00.000Z","group":"gpt-large","value":12}`: an answer may have some thousand rows, so they
//! are written as they are, without a tree or a serializer in between.
//!
//! ```text
//! query                             row
//! count                             {"value":32}
//! count, granularity                {"bucket":"2026-11-21T00:00:00.000Z","value":5}
//! count, group_by                   {"group":null,"value":1}          events without the property
//! avg of no events                  {"value":null}
//! compare=previous                  {"value":7,"previous":0.5}
//! ```

use serde::{Serialize, Serializer};
use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

use crate::{app::QueryRow, base::instant::Instants, engine::Value};

/// A number of an answer: an integer for counts, null for nothing. `58.75` is written as it is, `100.0` as `100`.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub Value);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Value::Integer(value) => serializer.serialize_u64(value),
            // A sum without a fraction is shown without one, as every JSON writer of a client does.
            Value::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                serializer.serialize_i64(value as i64)
            }
            Value::Number(value) => serializer.serialize_f64(value),
            Value::Null => serializer.serialize_none(),
        }
    }
}

impl PartialSchema for Number {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Number, Type::Null]))
            .description(Some("An integer for counts, a number else, null for nothing."))
            .examples([json!(1820)]);
        Schema::from(schema).into()
    }
}

impl ToSchema for Number {}

/// Appends the rows as an array. A row has a bucket, a group and a value before where the query asks for them.
///
/// Errors: a text or a number that JSON cannot have.
pub fn write(out: &mut Vec<u8>, rows: &[QueryRow]) -> serde_json::Result<()> {
    let mut instants = Instants::default();
    out.push(b'[');
    for (at, row) in rows.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        if let Some(ms) = row.bucket {
            out.extend_from_slice(b"\"bucket\":\"");
            instants.write(out, ms);
            out.extend_from_slice(b"\",");
        }
        if let Some(group) = &row.group {
            out.extend_from_slice(b"\"group\":");
            serde_json::to_writer(&mut *out, &group.as_deref())?;
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":");
        serde_json::to_writer(&mut *out, &Number(row.value))?;
        if let Some(previous) = row.previous {
            out.extend_from_slice(b",\"previous\":");
            serde_json::to_writer(&mut *out, &Number(previous))?;
        }
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: &[QueryRow]) -> String {
        let mut out = Vec::new();
        write(&mut out, rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_row_has_what_was_asked_for() {
        assert_eq!(text(&[]), "[]");
        let value = QueryRow { bucket: None, group: None, value: Value::Null, previous: None };
        assert_eq!(text(std::slice::from_ref(&value)), r#"[{"value":null}]"#);
        let all = QueryRow {
            bucket: Some(1_795_000_000_000),
            group: Some(Some("a \"b\"\n".into())),
            value: Value::Integer(7),
            previous: Some(Value::Number(0.5)),
        };
        let nobody = QueryRow { group: Some(None), value: Value::Number(3.0), ..value };
        assert_eq!(
            text(&[all, nobody]),
            r#"[{"bucket":"2026-11-18T11:06:40.000Z","group":"a \"b\"\n","value":7,"previous":0.5},{"group":null,"value":3}]"#
        );
    }
}
