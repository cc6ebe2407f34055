//! Names for casts, where the library needs them to tell columns apart.
//!
//! The library names an expression without its casts, so that `timestamp` and `timestamp::date` are two columns of one name, and
//! it refuses to group by both. Such a statement is planned once more with a function around each cast, which changes nothing
//! and has a name:
//!
//! ```text
//! SELECT timestamp, timestamp::date FROM events GROUP BY 1, 2
//! SELECT timestamp, "cast value"(timestamp::date) FROM events GROUP BY 1, 2
//! ```
//!
//! Casts to two types are told apart by how many calls are around them, since the library leaves out types in names, but not functions:
//!
//! ```text
//! timestamp::date                          "cast value"(timestamp::date)
//! timestamp::varchar                       "cast value"("cast value"(timestamp::varchar))
//! ```
//!
//! The answer is the same: the names of its columns were written by the gate (`gate/names.rs`).

use std::{ops::ControlFlow, sync::Arc};

use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, Visit, VisitMut, Visitor, VisitorMut,
};
use inlay_sql_protocol::Refusal;

/// The function, by a name that no statement has a reason to write.
/// One that writes it all the same gets its argument back.
const CAST_VALUE: &str = "cast value";
/// Types of one statement that casts are told apart by.
/// The ninth type stays without a name: each has one call more than the one before, and casts of it may still be refused.
const TYPES_MAX: usize = 8;

/// Whether a statement was refused because two of its columns have one name.
///
/// By words of the library's message, such as `Projections require unique expression names but …`. Where columns clash for another reason than a cast,
/// the second attempt is refused as the first one was.
pub fn is_clash(refusal: &Refusal) -> bool {
    let clashes = ["unique expression names", "duplicate unqualified field name"];
    clashes.iter().any(|clash| refusal.message.contains(clash))
}

/// Whether a statement has casts that may need names. In sets of groups they have none: the library would confuse their columns.
pub fn may_clash(statement: &Statement) -> bool {
    let mut search = Search { has_casts: false, has_sets: false };
    let _: ControlFlow<()> = Visit::visit(statement, &mut search);
    search.has_casts && !search.has_sets
}

/// What a statement has anywhere in it: casts, and `ROLLUP`, `CUBE` or `GROUPING SETS`.
struct Search {
    has_casts: bool,
    has_sets: bool,
}

impl Visitor for Search {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.has_casts |= matches!(expr, Expr::Cast { .. });
        self.has_sets |= matches!(expr, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        ControlFlow::Continue(())
    }
}

/// The statement with a name for each cast.
/// It is planned as any other: the function is on the list of those that there are (`functions.rs`).
pub fn with_named_casts(mut statement: Statement) -> Statement {
    let _: ControlFlow<()> = VisitMut::visit(&mut statement, &mut NameCasts { types: Vec::new() });
    statement
}

/// Puts calls around casts, inner ones first: in `x::date::varchar` both get theirs.
struct NameCasts {
    /// The types, each of which has one function more around it than the one before.
    types: Vec<String>,
}

impl VisitorMut for NameCasts {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Cast { data_type, .. } = expr else { return ControlFlow::Continue(()) };
        let name = data_type.to_string();
        let known = self.types.iter().position(|known| *known == name);
        let at = known.unwrap_or(self.types.len());
        if at == TYPES_MAX {
            return ControlFlow::Continue(());
        }
        if known.is_none() {
            self.types.push(name);
        }
        // One call for the first type of the statement, two for the second.
        for _ in 0..=at {
            *expr = unchanged(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

/// A call that gives what it is given.
fn unchanged(expr: Expr) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_quote('"', CAST_VALUE)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The function that gives what it is given. Others of the kind are simplified away, with their names.
pub fn cast_value() -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(CastValue { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastValue {
    signature: Signature,
}

impl ScalarUDFImpl for CastValue {
    fn name(&self) -> &str {
        CAST_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] => Ok(of.clone()),
            _ => internal_err!("{CAST_VALUE} takes one value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{CAST_VALUE} takes one value"),
        }
    }
}
