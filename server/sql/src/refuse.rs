//! Errors of the library, worded for the author of the statement.
//!
//! ```text
//! SELECT tenant FROM events          No field named tenant                                              line 1, column 8
//!                                    hint: did you mean tenant_id? there are: event_id, event_name, …
//! SELECT zz FROM (SELECT 1 AS a) s   No field named zz
//!                                    hint: there are: a
//! SELECT * FROM event                table 'event' not found
//!                                    hint: there are: events, events_hourly, events_daily
//! a sort that gets no more memory    the statement takes more memory than there is for it               TooLarge
//! a segment with a wrong checksum    what the engine says of it                                         Broken
//! ```
//!
//! What the library's message has besides is cut off: labels such as `Error during planning: `, backtraces, its own guesses at a column, lists of
//! signatures, and `inlay.public.` before the names of tables.

use datafusion_common::{DataFusionError, SchemaError};

use inlay_sql_protocol::{Reason, Refusal};

use crate::{gate::without_positions, tables::Kind};

/// What is offered as "did you mean" resembles what was written at least so much.
/// By the similarity of Jaro and Winkler, 1 for the same name: `tenant` is near enough to `tenant_id`, `zzzz` to none.
const ALIKE_MIN: f64 = 0.7;
/// A message is not longer.
/// Longer ones are cut: the signatures of a function can be thousands of characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Why there is no answer. `names` are the columns of all tables.
///
/// The server makes a code of the reason: `invalid_sql` of `Invalid`, `query_too_large` of `TooLarge`, and an internal error of `Broken`. The position is
/// that of the name or call that the library was looking at, where it knows it.
pub fn refusal(error: &DataFusionError, names: &[String]) -> Refusal {
    let root = error.find_root();
    let reason = match root {
        DataFusionError::ResourcesExhausted(_) => Reason::TooLarge,
        // Ours: a segment that cannot be read, or that is too large to be. The rest are functions that refuse what
        // they were given.
        DataFusionError::External(error) => match error.downcast_ref::<inlay_engine::Error>() {
            Some(inlay_engine::Error::Limit {
                limit: inlay_engine::Limit::Unreachable, ..
            }) => Reason::Broken,
            Some(inlay_engine::Error::Limit { .. }) => Reason::TooLarge,
            Some(_) => Reason::Broken,
            None => Reason::Invalid,
        },
        DataFusionError::IoError(_) => Reason::Broken,
        _ => Reason::Invalid,
    };
    let message = match reason {
        Reason::TooLarge => "the statement takes more memory than there is for it".to_owned(),
        _ => without_positions(&plain(&root.strip_backtrace())),
    };
    let position = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    let position = position.map(|span| (span.start.line, span.start.column));
    Refusal { reason, message, position, hint: hint(root, names) }
}

/// In the place of the library's message for a scalar subquery that it cannot turn into a join: `WHERE b.timestamp < a.timestamp` within.
const SUBQUERY_OF_ROW: &str = "a subquery for one value that depends on the row around it may compare columns of both by = alone; \
                               join the two and aggregate instead";

/// In the place of its message for a subquery that it would have to mark rows for: `SELECT x IN (SELECT y …)`.
const SUBQUERY_AS_VALUE: &str = "IN (SELECT …), and EXISTS over groups or with a LIMIT, are answered in WHERE, HAVING and ON, and not as a value; count matches \
                                 with a join instead";

/// Without what the library calls its errors, and not too long.
fn plain(text: &str) -> String {
    let mut text = text;
    for label in [
        "Error during planning: ",
        "Schema error: ",
        "Execution error: ",
        "SQL error: ",
        "Arrow error: ",
        "Internal error: ",
    ] {
        text = text.strip_prefix(label).unwrap_or(text);
    }
    // Lists of everything that would have been possible help nobody.
    let text = text.split("\n\tCandidate functions").next().unwrap_or(text);
    // The library calls it its own fault where a statement of another kind would have been answered.
    let text = text.split("\nThis issue was likely caused").next().unwrap_or(text);
    let text = text.split("\nValid fields are ").next().unwrap_or(text);
    // Ours is better: it knows all columns.
    let text = text.split("Did you mean ").next().unwrap_or(text).trim_end();
    let text = text.trim_end_matches('.');
    let text = match text.split_once("does not support logical expression ") {
        Some((_, expr)) if expr.starts_with("ScalarSubquery") => SUBQUERY_OF_ROW,
        Some((_, expr)) if expr.starts_with("Exists") || expr.starts_with("InSubquery") => {
            SUBQUERY_AS_VALUE
        }
        // What follows is a dump of the tree.
        Some(_) => "an expression of this kind is not answered in this place",
        None => text,
    };
    if let Some(name) = text.strip_prefix("Invalid function '") {
        return format!("the function {} is not offered", name.trim_end_matches('\''));
    }
    // The library shows the value, which may be that of a row.
    if text.starts_with("Cast error: Cannot cast string '") {
        let kind = text
            .rsplit_once("' to value of ")
            .map_or("", |(_, kind)| kind.trim_end_matches(" type"));
        return format!(
            "a string that is no {kind} is compared with one or cast to one; strings are compared with strings: tenant_id = '5'"
        );
    }
    let text = text.replace("inlay.public.", "");
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// Whether a message of the planner is about a table, by its words.
fn is_unknown_table(text: &str) -> bool {
    text.starts_with("table '") && text.ends_with("' not found")
}

/// What the author may have meant: a column with a similar name, and all columns or tables that could be named there.
///
/// `None` where the message is about something else, or neither a similar name nor a list is known.
fn hint(error: &DataFusionError, names: &[String]) -> Option<String> {
    let DataFusionError::SchemaError(error, _) = error else {
        let is_table = matches!(error, DataFusionError::Plan(text) if is_unknown_table(text));
        return is_table.then(|| {
            let tables: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            format!("there are: {}", tables.join(", "))
        });
    };
    let SchemaError::FieldNotFound { field, valid_fields } = &**error else { return None };
    let mut known: Vec<String> = valid_fields.iter().map(|column| column.name.clone()).collect();
    known.sort_unstable();
    known.dedup();
    // Where the library knows no columns, those of all tables are compared, but not listed: they cannot all be named there.
    let all = if known.is_empty() { names } else { &known };
    let score =
        |name: &&String| strsim::jaro_winkler(&name.to_lowercase(), &field.name.to_lowercase());
    let best = all.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
    let best = best.filter(|name| score(name) >= ALIKE_MIN);
    let list = || format!("there are: {}", known.join(", "));
    match best {
        Some(_) | None if known.is_empty() => best.map(|best| format!("did you mean {best}?")),
        Some(best) => Some(format!("did you mean {best}? {}", list())),
        None => Some(list()),
    }
}

#[cfg(test)]
mod tests {
    use inlay_engine::{Error, Limit};

    use super::*;

    #[test]
    fn what_cannot_be_fetched_is_not_the_fault_of_the_statement() {
        let reason = |limit| {
            let error = Error::limit(limit, "seg/l0/a.seg: connection reset");
            refusal(&DataFusionError::External(Box::new(error)), &[]).reason
        };
        assert_eq!(reason(Limit::Unreachable), Reason::Broken);
        assert_eq!(reason(Limit::QueryMemory), Reason::TooLarge);
    }
}
