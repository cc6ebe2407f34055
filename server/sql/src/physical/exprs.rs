//! Expressions of a logical plan as operators evaluate them.
//!
//! A logical expression names its columns, a physical one has their indexes: `events.numeric_props['ms'] > 5` over the columns `event_id` and
//! `numeric_props['ms']` is `numeric_props['ms']@1 > 5`. Integers do not wrap:
//!
//! ```text
//! SELECT 9223372036854775807 + count(*) FROM events
//! Arithmetic overflow: Overflow happened on: 9223372036854775807 + 2000
//! ```

use std::sync::Arc;

use datafusion_common::{
    DFSchema, Result,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{
    Expr, SortExpr, execution_props::ExecutionProps, expr::physical_name,
    physical_planning_context::PhysicalPlanningContext,
};
use datafusion_physical_expr::{
    PhysicalExpr, PhysicalSortExpr, create_physical_expr, create_physical_exprs,
    create_physical_sort_exprs, expressions::BinaryExpr,
};

/// What expressions are made with: when the statement began, and where results of scalar subqueries will be.
#[derive(Clone, Copy, Debug)]
pub struct Exprs<'a> {
    /// When the statement began, which is what `now()` gives.
    pub props: &'a ExecutionProps,
    /// The index of each scalar subquery among the results of the statement.
    pub subqueries: &'a PhysicalPlanningContext,
}

impl Exprs<'_> {
    /// An expression over rows of this schema.
    ///
    /// Errors: a column that the schema lacks; types that do not go together.
    pub fn one(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        checked(create_physical_expr(expr, schema, self.props, self.subqueries)?)
    }

    /// Expressions over rows of this schema.
    pub fn all(&self, exprs: &[Expr], schema: &DFSchema) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let exprs = create_physical_exprs(exprs, schema, self.props, self.subqueries)?;
        exprs.into_iter().map(checked).collect()
    }

    /// An expression, and the name of its column: `upper(string_props['plan']@0)` and `group 0` of `upper(string_props['plan']) AS group 0`.
    pub fn named(&self, expr: &Expr, schema: &DFSchema) -> Result<(Arc<dyn PhysicalExpr>, String)> {
        Ok((self.one(expr, schema)?, physical_name(expr)?))
    }

    /// An order of rows of this schema: `timestamp@1 DESC`, with where nulls come.
    pub fn order(&self, exprs: &[SortExpr], schema: &DFSchema) -> Result<Vec<PhysicalSortExpr>> {
        let exprs = create_physical_sort_exprs(exprs, schema, self.props, self.subqueries)?;
        let order = |order: PhysicalSortExpr| {
            Ok(PhysicalSortExpr { expr: checked(order.expr)?, options: order.options })
        };
        exprs.into_iter().map(order).collect()
    }
}

/// An expression whose integers do not wrap: what is too large is an error, as in PostgreSQL. Each binary operator in it gets the check;
/// comparisons and doubles are as before.
pub fn checked(expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let checked = expr.transform_up(|part| {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(part));
        };
        let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
        let checked = BinaryExpr::new(left, *binary.op(), right).with_fail_on_overflow(true);
        Ok(Transformed::yes(Arc::new(checked)))
    });
    checked.map(|expr| expr.data)
}
