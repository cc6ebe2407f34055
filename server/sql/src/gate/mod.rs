//! What a statement may be: one query, of known kinds of parts, not too large.
//!
//! This is the first of several walls, and the one with the best messages. The session knows no other tables and
//! functions, and the process has no files to open; the limits keep what follows from recursing too deeply and a
//! few characters from becoming a plan of millions of nodes.

mod expand;
mod offered;
mod own_exprs;
mod precedence;
mod row_values;
mod time_zones;

mod bounds;

mod exists_values;
mod first_of_list;
mod joins;
mod named_windows;
mod names;
mod parts;
mod patterns;
mod spellings;

mod limits;

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::{
    ast::{Statement, Visit as _},
    dialect::PostgreSqlDialect,
    parser::{Parser, ParserError},
    tokenizer::{Token, Tokenizer},
};

use inlay_sql_protocol::Refusal;

pub use names::{shown, without_positions};
pub use offered::{AGGREGATES, WINDOWS};

/// Bytes of a statement.
const BYTES_MAX: usize = 64 * 1024;
/// Words and signs of it.
const TOKENS_MAX: usize = 8_192;
/// Brackets within brackets while it is read.
const NESTED_MAX: usize = 64;

/// The statement, if it is one that may be asked.
///
/// Errors: what is wrong with it, and where.
pub fn admit(sql: &str) -> Result<Statement, Refusal> {
    if sql.len() > BYTES_MAX {
        return Err(Refusal::invalid(format!("a statement has at most {BYTES_MAX} bytes")));
    }
    if sql.contains('\0') {
        return Err(Refusal::invalid("a statement holds no NUL characters"));
    }
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| {
        let position = (error.location.line, error.location.column);
        Refusal { position: Some(position), ..Refusal::invalid(error.message) }
    })?;
    let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).count();
    if words > TOKENS_MAX {
        return Err(Refusal::invalid(format!(
            "a statement has at most {TOKENS_MAX} words and signs"
        )));
    }
    let parser = Parser::new(&dialect).with_recursion_limit(NESTED_MAX);
    let statements = parser.with_tokens_with_locations(tokens).parse_statements();
    let mut statements = statements.map_err(|error| syntax(&error))?;
    let mut statement = match (statements.pop(), statements.len()) {
        (Some(statement), 0) => statement,
        (None, _) => return Err(Refusal::invalid("there is no statement")),
        _ => return Err(Refusal::invalid("one statement at a time")),
    };
    // Before it is looked at what is compared.
    if let Statement::Query(query) = &mut statement {
        row_values::compare_values(query);
        patterns::write_patterns(query)?;
        spellings::write_lists(query);
    }
    let Statement::Query(query) = &statement else {
        return Err(Refusal::invalid("only SELECT and WITH statements are answered"));
    };
    parts::check_top(query)?;
    let mut walk = limits::Walk::default();
    if let ControlFlow::Break(refusal) = statement.visit(&mut walk) {
        return Err(refusal);
    }
    expand::check(query)?;
    if let Statement::Query(query) = &mut statement {
        precedence::put_right(query);
        named_windows::write_out(query);
        names::name_columns(query);
        spellings::call_by_known_names(query);
        exists_values::count_rows(query);
        first_of_list::ask_for_first_values(query);
        time_zones::call_function(query);
    }
    Ok(statement)
}

/// What the parser says, with the place apart.
fn syntax(error: &ParserError) -> Refusal {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => {
            return Refusal::invalid("the statement is nested too deeply");
        }
    };
    let (message, place) = text.rsplit_once(" at Line: ").unwrap_or((text, ""));
    let position = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some((line.trim().parse().ok()?, column.trim().parse().ok()?)));
    let message = message.strip_prefix("sql parser error: ").unwrap_or(message);
    Refusal { position, ..Refusal::invalid(format!("syntax: {message}")) }
}

#[cfg(test)]
mod tests;
