//! Errors of the library, worded for the author of the statement.

use datafusion_common::{DataFusionError, SchemaError};

use inlay_sql_protocol::{Reason, Refusal};

use crate::{gate::without_positions, tables::Kind};

/// What is offered as "did you mean" resembles what was written at least so much.
const ALIKE_MIN: f64 = 0.7;
/// A message is not longer.
const MESSAGE_CHARS_MAX: usize = 500;

/// Why there is no answer. `names` are the columns of all tables.
pub fn refusal(error: &DataFusionError, names: &[String]) -> Refusal {
    let root = error.find_root();
    let reason = match root {
        DataFusionError::ResourcesExhausted(_) => Reason::TooLarge,
        // Ours: a segment that cannot be read, or that is too large to be. The rest are functions that refuse what
        // they were given.
        DataFusionError::External(error) => match error.downcast_ref::<inlay_engine::Error>() {
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

const SUBQUERY_OF_ROW: &str = "a subquery for one value that depends on the row around it may compare columns of both by = alone; \
                               join the two and aggregate instead";

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
    let text = text.split(" Did you mean ").next().unwrap_or(text).trim_end_matches('.');
    let text = match text.split_once("does not support logical expression ") {
        Some((_, expr)) if expr.starts_with("ScalarSubquery") => SUBQUERY_OF_ROW,
        Some((_, expr)) if expr.starts_with("Exists") || expr.starts_with("InSubquery") => {
            SUBQUERY_AS_VALUE
        }
        // What follows is a dump of the tree.
        Some(_) => "an expression of this kind is not answered in this place",
        None => text,
    };
    let text = text.replace("inlay.public.", "");
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

fn is_unknown_table(text: &str) -> bool {
    text.starts_with("table '") && text.ends_with("' not found")
}

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
