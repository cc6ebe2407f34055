//! Which kinds of parts a statement may have.
//!
//! The parser knows the syntax of many databases, the planner ignores some parts without a word, and both grow with each version. So an expression of a
//! kind that is not listed is refused; and a query and a table in FROM are taken apart field by field: where a new version of the parser adds a field,
//! this does not compile until it is decided whether the part is offered.
//!
//! ```text
//! SELECT 1 INTO x                                   SELECT INTO is not answered here
//! WITH x AS (DELETE FROM events …) SELECT …         a statement that writes is not answered here
//! WITH RECURSIVE x AS (…) SELECT …                  WITH RECURSIVE is not answered here
//! SELECT … FROM events FOR UPDATE                   FOR UPDATE or FOR SHARE is not answered here
//! SELECT * FROM generate_series(1, 5)               a function as a table is not answered here
//! SELECT * FROM events, LATERAL (…) x               LATERAL is not answered here
//! SELECT ARRAY[1, 2]                                an expression of this kind is not answered here: ARRAY[1, 2]
//! SELECT string_props['model'][1:5]                 a slice of a list is not answered here
//! SELECT unnest(a)                                  the function unnest is not offered
//! SELECT lpad(tenant_id, 2000)                      lpad takes the number of characters as a constant; up to 1000: lpad(user_id, 12)
//! ```
//!
//! Some parts are known to the library, and answered wrongly. They are refused until that has changed:
//!
//! ```text
//! SELECT 1 EXCEPT ALL SELECT 2                      rows would not be counted
//! sum(x) OVER (w ORDER BY y) … WINDOW w AS (…)      the named window would be left out
//! row_number() FILTER (WHERE a) OVER (…)            the filter would be left out
//! lag(x, 2) IGNORE NULLS OVER (…)                   rows with nulls would be counted
//! lag(x, NULL) OVER (…)                             one row would be gone back
//! ```

use datafusion_sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr,
    LimitClause, NamedWindowDefinition, NamedWindowExpr, NullTreatment, Query, Select,
    SelectFlavor, SetExpr, SetOperator, SetQuantifier, Subscript, TableFactor, WindowType,
};

use super::offered::{WINDOWS, name_of};
use inlay_sql_protocol::Refusal;

/// What each check returns: nothing, or the refusal of the first part that is not offered.
type Checked = Result<(), Refusal>;

/// The refusal of a part by its name in SQL: `TABLESAMPLE is not answered here`.
fn no(what: &str) -> Checked {
    Err(Refusal::invalid(format!("{what} is not answered here")))
}

/// Refuses a part where it is there.
fn refuse(is_there: bool, what: &str) -> Checked {
    if is_there { no(what) } else { Ok(()) }
}

/// The whole statement must select something.
///
/// `VALUES (1)` alone does not, and `(VALUES (1)) UNION SELECT 2` does not either: it begins with values. As a table in FROM, values are fine.
pub fn check_top(query: &Query) -> Checked {
    let mut body = &*query.body;
    loop {
        match body {
            SetExpr::Query(inner) => body = &inner.body,
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Select(_) => return Ok(()),
            _ => {
                let message = "only SELECT and WITH statements are answered";
                return Err(Refusal::invalid(message));
            }
        }
    }
}

/// A query, without what is within it.
/// Locks, formats, pipes, `WITH TIES`, `LIMIT … BY`, recursion, and the kinds of its set operations.
pub fn check_query(query: &Query) -> Checked {
    let Query {
        with,
        body,
        order_by: _,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    refuse(!locks.is_empty(), "FOR UPDATE or FOR SHARE")?;
    refuse(for_clause.is_some(), "FOR XML, JSON or BROWSE")?;
    refuse(settings.is_some() || format_clause.is_some(), "SETTINGS or FORMAT")?;
    refuse(!pipe_operators.is_empty(), "a pipe operator")?;
    refuse(
        fetch.as_ref().is_some_and(|fetch| fetch.percent || fetch.with_ties),
        "FETCH WITH TIES",
    )?;
    let is_odd = |clause: &LimitClause| match clause {
        LimitClause::LimitOffset { limit_by, .. } => !limit_by.is_empty(),
        LimitClause::OffsetCommaLimit { .. } => true,
    };
    refuse(limit_clause.as_ref().is_some_and(is_odd), "LIMIT BY")?;
    refuse(with.as_ref().is_some_and(|with| with.recursive), "WITH RECURSIVE")?;
    check_body(body)
}

/// Which set operations a query has: `UNION`, `UNION ALL`, `INTERSECT`, `EXCEPT`, between `SELECT`s, values and queries in brackets.
fn check_body(body: &SetExpr) -> Checked {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::SetOperation { left, right, op, set_quantifier } => {
            let counts_rows = !matches!(op, SetOperator::Union)
                && !matches!(set_quantifier, SetQuantifier::None | SetQuantifier::Distinct);
            refuse(
                matches!(
                    set_quantifier,
                    SetQuantifier::ByName
                        | SetQuantifier::AllByName
                        | SetQuantifier::DistinctByName
                ),
                "BY NAME",
            )?;
            // The library would answer with all rows on the left that the right has, or has not.
            refuse(counts_rows, "INTERSECT ALL or EXCEPT ALL")?;
            check_body(left)?;
            check_body(right)
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            no("a statement that writes")
        }
        SetExpr::Table(_) => no("TABLE"),
    }
}

/// A SELECT, without what is within it.
/// Clauses of other databases (`PREWHERE`, `CONNECT BY`, `TOP`, …), `INTO`, and windows that extend a named one.
pub fn check_select(select: &Select) -> Checked {
    refuse(select.into.is_some(), "SELECT INTO")?;
    refuse(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
    refuse(select.prewhere.is_some(), "PREWHERE")?;
    refuse(!select.connect_by.is_empty(), "CONNECT BY")?;
    refuse(!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY")?;
    refuse(!select.sort_by.is_empty(), "SORT BY")?;
    refuse(select.value_table_mode.is_some() || select.exclude.is_some(), "SELECT AS or EXCLUDE")?;
    refuse(select.top.is_some(), "TOP")?;
    refuse(select.select_modifiers.is_some(), "a modifier of SELECT")?;
    refuse(!matches!(select.flavor, SelectFlavor::Standard), "FROM before SELECT")?;
    let modifiers = match &select.group_by {
        GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
    };
    refuse(!modifiers.is_empty(), "GROUP BY … WITH")?;
    let is_extended = |window: &NamedWindowDefinition| matches!(&window.1, NamedWindowExpr::WindowSpec(spec) if spec.window_name.is_some());
    check_window(select.named_window.iter().any(is_extended))
}

/// The library would leave the named window out.
fn check_window(is_extended: bool) -> Checked {
    refuse(is_extended, "a window that goes on from a named one")
        .map_err(|refusal| refusal.hint("write PARTITION BY and ORDER BY out in each window"))
}

/// Something that rows come from.
///
/// A table by its plain name, a subquery, or tables joined in brackets. `events TABLESAMPLE SYSTEM (1)` and `events WITH ORDINALITY` are refused.
pub fn check_factor(factor: &TableFactor) -> Checked {
    match factor {
        TableFactor::Table {
            name: _,
            alias: _,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            refuse(args.is_some(), "a function as a table")?;
            refuse(sample.is_some(), "TABLESAMPLE")?;
            let is_odd = *with_ordinality || version.is_some() || json_path.is_some();
            let has_hints =
                !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty();
            refuse(is_odd || has_hints, "more than a table's name")
        }
        TableFactor::Derived { lateral, sample, .. } => {
            refuse(*lateral, "LATERAL")?;
            refuse(sample.is_some(), "TABLESAMPLE")
        }
        TableFactor::NestedJoin { .. } => Ok(()),
        _ => no("a function as a table"),
    }
}

/// An expression, without what is within it.
///
/// The message for a kind that is not listed has the first 40 characters of the expression: it may be very long.
pub fn check_expr(expr: &Expr) -> Checked {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::BinaryOp { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::UnaryOp { .. }
        | Expr::Cast { .. }
        | Expr::AtTimeZone { .. }
        | Expr::Extract { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. }
        | Expr::Position { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Overlay { .. }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        | Expr::Tuple(_)
        | Expr::Interval(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..) => Ok(()),
        Expr::Function(function) => check_function(function),
        Expr::CompoundFieldAccess { access_chain, .. } => {
            let is_slice = |access: &AccessExpr| {
                matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }))
            };
            refuse(access_chain.iter().any(is_slice), "a slice of a list")
        }
        _ => {
            let text: String = expr.to_string().chars().take(40).collect();
            Err(Refusal::invalid(format!(
                "an expression of this kind is not answered here: {text}"
            )))
        }
    }
}

/// A call: what may stand around its arguments, and functions for which the arguments decide.
fn check_function(function: &Function) -> Checked {
    refuse(function.uses_odbc_syntax, "ODBC syntax")?;
    refuse(!matches!(function.parameters, FunctionArguments::None), "a parametric function")?;
    refuse(matches!(function.args, FunctionArguments::Subquery(_)), "a subquery as arguments")?;
    let name = name_of(function);
    if REFUSED.contains(&name.as_str()) {
        return Err(Refusal::invalid(format!("the function {name} is not offered")));
    }
    if PADDING.contains(&name.as_str()) && !is_padded_to_few(function) {
        let message = format!("{name} takes the number of characters as a constant");
        return Err(
            Refusal::invalid(message).hint(format!("up to {PADDED_MAX}: {name}(user_id, 12)"))
        );
    }
    // The library takes no number for one.
    let is_by_null = ["lag", "lead"].contains(&name.as_str()) && is_by_null(function);
    refuse(is_by_null, "LAG or LEAD over NULL rows")?;
    // The library leaves the filter out.
    let takes_none = function.over.is_some() && WINDOWS.contains(&name.as_str());
    refuse(
        takes_none && function.filter.is_some(),
        "FILTER of a window function that is no aggregate",
    )?;
    if let Some(WindowType::WindowSpec(spec)) = &function.over {
        check_window(spec.window_name.is_some())?;
    }
    // The library counts rows with nulls too.
    let is_far = ["lag", "lead"].contains(&name.as_str()) && is_further_than_one(function);
    refuse(
        is_far && ignores_nulls(function),
        "LAG or LEAD over more than one row with IGNORE NULLS",
    )
}

/// Functions that make as long a text as they are asked for.
/// In a statement over a million rows `lpad('', 1000000)` would be a terabyte.
const PADDING: [&str; 2] = ["lpad", "rpad"];
/// Characters of such a text.
const PADDED_MAX: u32 = 1_000;

/// Whether the second argument is a number that is written, and small: not for `lpad(x, length(y))`.
fn is_padded_to_few(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let length = list.args.get(1).and_then(|length| length.to_string().parse::<u32>().ok());
    length.is_some_and(|length| length <= PADDED_MAX)
}

/// Whether the second argument is the word `NULL`.
fn is_by_null(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.args.get(1).is_some_and(|offset| offset.to_string().eq_ignore_ascii_case("null"))
}

/// Whether a second argument is there that is not 1.
/// An argument that is computed counts as further: its value is not known here.
fn is_further_than_one(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.args.get(1).is_some_and(|offset| offset.to_string() != "1")
}

/// Whether nulls are to be skipped: written behind the call, `lag(x) IGNORE NULLS`, or within it, `lag(x IGNORE NULLS)`.
fn ignores_nulls(function: &Function) -> bool {
    let within = match &function.args {
        FunctionArguments::List(list) => list.clauses.as_slice(),
        _ => &[],
    };
    let ignores = FunctionArgumentClause::IgnoreOrRespectNulls(NullTreatment::IgnoreNulls);
    function.null_treatment == Some(NullTreatment::IgnoreNulls) || within.contains(&ignores)
}

/// Functions that the planner knows by itself, whatever the session offers.
/// Names are compared without quotes and in lower case: `"struct"(1, 2)` is refused, too.
const REFUSED: [&str; 3] = ["unnest", "make_map", "struct"];
