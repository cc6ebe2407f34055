//! An analyzer's rule: `x IN (SELECT …)` where null is not as good as false.
//!
//! The library answers it by a join that marks the rows with a match. A mark is true or false; by SQL it is null where `x`
//! is null, or where there is no match and the subquery has a null. In a condition null is as good as false, until somebody
//! negates it:
//!
//! ```sql
//! WHERE status = 500 OR user_id NOT IN (SELECT user_id FROM events WHERE event_name = 'purchase')
//! ```
//!
//! There, and wherever the value itself is used, `x IN (SELECT y …)` becomes
//!
//! ```sql
//! CASE WHEN (SELECT count(*) FROM …) = 0 THEN false  -- nothing is in an empty set, null neither
//!      WHEN x IS NULL THEN null
//!      WHEN x IN (SELECT y …) THEN true
//!      WHEN (SELECT count(*) - count(y) FROM …) > 0 THEN null
//!      ELSE false END
//! ```
//!
//! `NOT IN` that is joined with others by `AND` alone has an anti join of the library, which knows nulls, unless the subquery
//! depends on the row.
//!
//! ```text
//! 1 IN (SELECT 2)                                  false
//! 1 IN (SELECT 2 UNION ALL SELECT NULL)            null: one of the values might be 1
//! NULL IN (SELECT 2)                               null
//! NULL IN (SELECT 2 WHERE false)                   false: there is nothing that it could be
//! ```
//!
//! Which of them need the long form:
//!
//! ```text
//! WHERE x IN (SELECT y …) AND …                    no: a semi join
//! WHERE x NOT IN (SELECT y …) AND …                no: an anti join that knows nulls
//! WHERE x NOT IN (SELECT y … WHERE t.a = u.a)      yes: the anti join would look at nulls of all rows of t
//! WHERE x IN (SELECT y …) OR …                     no: a mark is enough, since null is as good as false
//! WHERE x NOT IN (SELECT y …) OR …                 yes
//! WHERE (x IN (SELECT y …)) IS NULL                yes: the value itself is looked at
//! SELECT x IN (SELECT y …)                         yes, but refused afterwards: the library marks rows for conditions only (`refuse.rs`)
//! ```

use std::sync::Arc;

use datafusion_common::{
    Column, Result, ScalarValue,
    config::ConfigOptions,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{
    BinaryExpr, Distinct, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    expr::{Exists, InSubquery},
    expr_rewriter::NamePreserver,
    ident, lit, when,
};
use datafusion_functions_aggregate::expr_fn::count;
use datafusion_optimizer::AnalyzerRule;

/// Gives `IN` its null where somebody can see it.
#[derive(Debug)]
pub struct NullsOfIn;

impl AnalyzerRule for NullsOfIn {
    fn name(&self) -> &str {
        "nulls_of_in"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plain =
            plan.transform_up_with_subqueries(|plan| plan.map_expressions(without_distinct));
        let analyzed = plain?.data.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let predicate = condition(predicate, Under::And)?;
                Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
            }
            plan => {
                let names = NamePreserver::new(&plan);
                plan.map_expressions(|expr| {
                    let saved = names.save(&expr);
                    Ok(value(expr)?.update_data(|expr| saved.restore(expr)))
                })
            }
        });
        analyzed.map(|plan| plan.data)
    }
}

/// An expression without `DISTINCT` in subqueries of `IN` and `EXISTS`, where it changes nothing: of those within other
/// operators the library makes no join.
fn without_distinct(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| {
        let (Expr::InSubquery(InSubquery { subquery, .. }) | Expr::Exists(Exists { subquery, .. })) = &part
        else {
            return Ok(Transformed::no(part));
        };
        let LogicalPlan::Distinct(Distinct::All(input)) = &*subquery.subquery else {
            return Ok(Transformed::no(part));
        };
        let plain = subquery.with_plan(Arc::clone(input));
        Ok(Transformed::yes(match part {
            Expr::InSubquery(InSubquery { expr, negated, .. }) => {
                Expr::InSubquery(InSubquery::new(expr, plain, negated))
            }
            Expr::Exists(Exists { negated, .. }) => Expr::Exists(Exists::new(plain, negated)),
            part => part,
        }))
    })
}

/// What joins a part of a condition with the others.
/// At the top of a condition it is `And`; once below an `OR`, all parts are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    /// Rows that do not meet this part are left out: the library makes a join of it.
    And,
    /// Rows may pass by another part: the library marks those with a match.
    Or,
}

/// A condition, whose null is as good as false.
///
/// `x IN (…)` stays or gets a plain name, `NOT IN` and whatever uses the value of an `IN` becomes a `CASE`.
fn condition(expr: Expr, under: Under) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let under = if op == Operator::Or { Under::Or } else { under };
            let (left, right) = (condition(*left, under)?, condition(*right, under)?);
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        // The library's join looks at nulls of all rows, where only those count that the subquery has for this row.
        Expr::InSubquery(ref is_in)
            if under == Under::And && !(is_in.negated && is_correlated(is_in)) =>
        {
            Ok(expr)
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
            let subquery = with_plain_name(&subquery)?;
            Ok(Expr::InSubquery(InSubquery::new(expr, subquery, false)))
        }
        Expr::Not(inner)
            if under == Under::And
                && matches!(&*inner, Expr::InSubquery(is_in) if !is_correlated(is_in)) =>
        {
            Ok(Expr::Not(inner))
        }
        expr => value(expr).map(|expr| expr.data),
    }
}

/// Whether the subquery reads columns of the row around it.
fn is_correlated(is_in: &InSubquery) -> bool {
    !is_in.subquery.outer_ref_columns.is_empty()
}

/// An expression whose value is used, null too.
fn value(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| match part {
        Expr::InSubquery(is_in) => three_valued(is_in).map(Transformed::yes),
        part => Ok(Transformed::no(part)),
    })
}

/// The `CASE` of the module's head; of `NOT IN` with `true` and `false` exchanged.
///
/// Errors: none that is expected; what the library says.
fn three_valued(InSubquery { expr, subquery, negated }: InSubquery) -> Result<Expr> {
    let null = || lit(ScalarValue::Boolean(None));
    let subquery = with_plain_name(&subquery)?;
    let rows = counts(&subquery, |rows, _| rows)?;
    let nulls = counts(&subquery, |rows, values| rows - values)?;
    let has_match = Expr::InSubquery(InSubquery::new(expr.clone(), subquery, false));
    when(rows.eq(lit(0_i64)), lit(negated))
        .when(expr.is_null(), null())
        .when(has_match, lit(!negated))
        .when(nulls.gt(lit(0_i64)), null())
        .otherwise(lit(negated))
}

/// The plan of a subquery of one column, and that column.
fn opened(subquery: &Subquery) -> (LogicalPlan, Expr) {
    let plan = subquery.subquery.as_ref().clone();
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    (plan, column)
}

/// A subquery whose column has a name without a dot: where it marks rows, the library takes `events.string_props[plan]` for a
/// column of `events`.
fn with_plain_name(subquery: &Subquery) -> Result<Subquery> {
    let (input, column) = opened(subquery);
    let plan = LogicalPlanBuilder::from(input).project([column.alias("value")])?.build()?;
    Ok(subquery.with_plan(plan.into()))
}

/// A number made of how many rows a subquery has and how many values that are not null.
fn counts(subquery: &Subquery, number: impl FnOnce(Expr, Expr) -> Expr) -> Result<Expr> {
    let (input, column) = opened(subquery);
    let counted = [count(lit(1_i64)).alias("rows"), count(column).alias("values")];
    let plan = LogicalPlanBuilder::from(input)
        .aggregate(Vec::<Expr>::new(), counted)?
        .project([number(ident("rows"), ident("values")).alias("number")])?
        .build()?;
    Ok(Expr::ScalarSubquery(subquery.with_plan(plan.into())))
}
