//! What a statement may be: one query, of known kinds of parts, not too large.
//!
//! This is the first of several walls, and the one with the best messages. The session knows no other tables and
//! functions, and the process has no files to open; the limits keep what follows from recursing too deeply and a
//! few characters from becoming a plan of millions of nodes.
//!
//! The steps of [`admit`], each over what the step before has left:
//!
//! ```text
//! text      at most 65,536 bytes, no NUL; at most 8,192 tokens besides white space and comments
//! parse     PostgreSQL's dialect, nested at most 64 deep; exactly one statement, a query
//! rewrite   row_values, patterns, spellings::write_lists
//! check     parts (kinds), limits (sizes, joins, bounds), expand (names of WITH)
//! rewrite   precedence, named_windows, names, spellings::call_by_known_names, exists_values, first_of_list, time_zones
//! ```
//!
//! What is refused, with its message:
//!
//! ```text
//! SELECT 1; SELECT 2              one statement at a time
//! DROP TABLE events               only SELECT and WITH statements are answered
//! SELECT 'x                       Unterminated string literal                                at line 1, column 8
//! SELECT a FRM events WHERE       syntax: Expected: end of statement, found: events           at line 1, column 14
//! SELECT * FROM unnest(a)         a function as a table is not answered here
//! ```
//!
//! And one that passes, as the planner gets it (`␀` is the NUL behind a name, see [`names`]):
//!
//! ```text
//! SELECT mod(a, 3) FROM t WHERE b = ANY(ARRAY['x', 'y'])
//! SELECT ((a) % (3)) AS "mod␀0" FROM t WHERE b IN ('x', 'y')
//! ```

mod expand;
mod literals;
mod offered;
mod own_exprs;
mod precedence;
mod row_values;
mod time_zones;

mod bounds;

mod equivalents;
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
#[cfg(test)]
pub use offered::ALIASES;
pub use offered::{AGGREGATES, WINDOWS};

/// Bytes of a statement.
/// A larger statement is `a statement has at most 65536 bytes`. Values belong into parameters, which are not counted here.
const BYTES_MAX: usize = 64 * 1024;
/// Words and signs of it.
/// White space and comments are not counted: `SELECT /* all */ 1` has two. It bounds the parser's work before any node of the tree is made.
const TOKENS_MAX: usize = 8_192;
/// Brackets within brackets while it is read.
/// The parser's own limit, since it descends by recursion: 70 brackets around a number are `the statement is nested too deeply`.
const NESTED_MAX: usize = 64;

/// The statement, if it is one that may be asked.
///
/// What comes back is the tree of the statement after all rewrites, always a `Statement::Query`. Nothing is looked up: a table or a column that
/// does not exist passes the gate and is refused by the planner.
///
/// Errors: what is wrong with it, and where.
/// Always with the reason `Invalid`; the position is known where the tokenizer or the parser failed, and unknown for a part that is not offered.
pub fn admit(sql: &str) -> Result<Statement, Refusal> {
    if sql.len() > BYTES_MAX {
        return Err(Refusal::invalid(format!("a statement has at most {BYTES_MAX} bytes")));
    }
    if sql.contains('\0') {
        return Err(Refusal::invalid("a statement holds no NUL characters"));
    }
    let dialect = PostgreSqlDialect {};
    // The tokens are counted before they are parsed, and the parser takes them over: the text is split once.
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
        row_values::compare_values(query)?;
        patterns::write_patterns(query)?;
        spellings::write_lists(query);
        equivalents::write_any_as_in(query);
    }
    let Statement::Query(query) = &statement else {
        return Err(Refusal::invalid("only SELECT and WITH statements are answered"));
    };
    // `VALUES (1)` is a query for the parser, too.
    parts::check_top(query)?;
    // One walk checks kinds and sizes of all parts, each on the way down: the walk recurses as deep as the tree, so it has to end before it
    // gets deeper than the limit.
    let mut walk = limits::Walk::default();
    if let ControlFlow::Break(refusal) = statement.visit(&mut walk) {
        return Err(refusal);
    }
    expand::check(query)?;
    // Names come before functions are renamed, since a column is called as the statement calls the function: `mod(a, 3)` is the column `mod`.
    if let Statement::Query(query) = &mut statement {
        precedence::put_right(query);
        named_windows::write_out(query);
        names::name_columns(query);
        spellings::call_by_known_names(query);
        equivalents::write_equivalents(query);
        exists_values::count_rows(query);
        first_of_list::ask_for_first_values(query);
        time_zones::call_function(query);
    }
    Ok(statement)
}

/// What the parser says, with the place apart.
///
/// ```text
/// Expected: end of statement, found: events at Line: 2, Column: 9
/// message   syntax: Expected: end of statement, found: events
/// position  (2, 9)
/// ```
///
/// At the end of the text the parser names no position: `SELECT count(*) FROM events WHERE` is `syntax: Expected: an expression, found: EOF`.
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
