//! The sets of `GROUPING SETS`, `ROLLUP` and `CUBE`, and a rule of the analyzer that makes a plan of each.
//!
//! ```text
//! SELECT date_trunc('day', timestamp), string_props['plan'], count(DISTINCT user_id) FROM events GROUP BY GROUPING SETS ((1), (2))
//!
//! SELECT date_trunc('day', timestamp), NULL, count(DISTINCT user_id) FROM events GROUP BY 1 UNION ALL
//! SELECT NULL, string_props['plan'], count(DISTINCT user_id) FROM events GROUP BY 2
//! ```
//!
//! Counts and sums of all sets are added up from the groups by all columns (`aggregate_pushdown.rs`). Distinct values are not: DataFusion takes
//! each row once for each set, and lists the values of all groups of all sets at the same time. Groups of one set may be
//! counted while rows are read.
//!
//! The plan before and after, of `GROUP BY GROUPING SETS ((tenant_id), (event_name))`:
//!
//! ```text
//! Aggregate: groupBy=[[GROUPING SETS ((events.tenant_id), (events.event_name))]], aggr=[[count(DISTINCT events.string_props['plan'])]]
//!   TableScan: events
//!
//! Projection: column 0 AS tenant_id, column 1 AS event_name, column 2 AS __grouping_id, column 3 AS count(DISTINCT …)
//!   Union
//!     Projection: events.tenant_id AS column 0, Utf8View(NULL) AS column 1, UInt8(1) AS column 2, count(DISTINCT …) AS column 3
//!       Aggregate: groupBy=[[events.tenant_id]], aggr=[[count(DISTINCT events.string_props['plan'])]]
//!         TableScan: events
//!     Projection: Utf8View(NULL) AS column 0, events.event_name AS column 1, UInt8(2) AS column 2, count(DISTINCT …) AS column 3
//!       Aggregate: groupBy=[[events.event_name]], aggr=[[count(DISTINCT events.string_props['plan'])]]
//!         TableScan: events
//! ```
//!
//! `__grouping_id` is what `grouping(x)` is made of: a bit for each column, the last one the lowest, set where the column is null in the set.
//! Not rewritten: aggregates without `DISTINCT`, sets over a join, a set that stands twice, and more than 32 sets, as `CUBE` of six columns.

use std::sync::Arc;

use datafusion_common::{
    Result, ScalarValue,
    config::ConfigOptions,
    internal_err,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{Aggregate, Expr, LogicalPlan, Projection, Union, expr::GroupingSet};
use datafusion_optimizer::AnalyzerRule;

use super::{aggregate_pushdown::with_columns_of, rewrite::is_of_rows};

/// Sets that become a union, at most: each reads the table once.
const SETS_MAX: usize = 32;

/// Aggregates of distinct values by several sets of groups, as a union of one for each set.
#[derive(Debug)]
pub struct DistinctSetsAsUnion;

impl AnalyzerRule for DistinctSetsAsUnion {
    fn name(&self) -> &str {
        "distinct_sets_as_union"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let new = match &plan {
                LogicalPlan::Aggregate(aggregate) => as_union(aggregate)?,
                _ => None,
            };
            Ok(new.map_or_else(|| Transformed::no(plan), Transformed::yes))
        });
        rewritten.map(|plan| plan.data)
    }
}

/// The union of an aggregate for each set; nothing where the sets stay together.
fn as_union(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let [Expr::GroupingSet(set)] = &*aggregate.group_expr else { return Ok(None) };
    let mut has_distinct = false;
    for expr in &aggregate.aggr_expr {
        has_distinct |= expr.exists(|part| {
            Ok(matches!(part, Expr::AggregateFunction(call) if call.params.distinct))
        })?;
    }
    let (columns, sets) = grouping_sets(set)?;
    // DataFusion numbers sets that are written twice.
    let is_twice = sets.len() <= SETS_MAX
        && sets.iter().enumerate().any(|(at, set)| sets.iter().take(at).any(|other| other == set));
    // Joins and the like are not computed for each set, and a product of sets is not written out.
    let is_few = (2..=SETS_MAX).contains(&sets.len());
    if !has_distinct || !is_few || is_twice || !is_of_rows(&aggregate.input) {
        return Ok(None);
    }
    let branch = |nulls: &Vec<bool>| of_set(aggregate, &columns, nulls).map(Arc::new);
    let branches = sets.iter().map(branch).collect::<Result<_>>()?;
    let union = LogicalPlan::Union(Union::try_new(branches)?);
    let columns = union.schema().columns().into_iter().map(Expr::Column);
    with_columns_of(&aggregate.schema, columns, union).map(Some)
}

/// The groups of one set, with the columns of all: of each column of the groups whether it is null in this set.
fn of_set(aggregate: &Aggregate, columns: &[Expr], nulls: &[bool]) -> Result<LogicalPlan> {
    let fields = aggregate.schema.fields();
    let of_set = columns.iter().zip(nulls).filter(|(_, is_null)| !**is_null);
    let groups = of_set.map(|(column, _)| column.clone()).collect();
    let (input, calls) = (Arc::clone(&aggregate.input), aggregate.aggr_expr.clone());
    let groups = Aggregate::try_new(input, groups, calls)?;
    let mut made = groups.schema.columns().into_iter().map(Expr::Column);
    let mut exprs = Vec::with_capacity(fields.len());
    for (is_null, field) in nulls.iter().zip(fields) {
        exprs.push(match is_null {
            true => Expr::Literal(ScalarValue::try_from(field.data_type())?, None),
            false => made.next().unwrap_or_else(|| Expr::Literal(ScalarValue::Null, None)),
        });
    }
    // Which columns are null, behind them: the last one is the lowest bit.
    let id = nulls.iter().fold(0_u64, |id, is_null| id << 1 | u64::from(*is_null));
    if let Some(field) = fields.get(columns.len()) {
        let id = ScalarValue::UInt64(Some(id)).cast_to(field.data_type())?;
        exprs.push(Expr::Literal(id, None));
    }
    exprs.extend(made);
    // Columns of several tables may have one name.
    let exprs = exprs.into_iter().enumerate();
    let exprs = exprs.map(|(at, expr)| expr.alias(format!("column {at}"))).collect();
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, groups)?))
}

/// The columns of all sets, and for each set which of the columns are null in it.
///
/// ```text
/// ROLLUP (a, b)                    a, b     [[true, true], [false, true], [false, false]]     (), (a), (a, b)
/// CUBE (a, b)                      a, b     [[false, false], [true, false], [false, true], [true, true]]
/// GROUPING SETS ((b), (a, b), ())  b, a     [[false, true], [false, false], [true, true]]
/// ```
///
/// Errors: a cube of 32 columns or more.
pub fn grouping_sets(set: &GroupingSet) -> Result<(Vec<Expr>, Vec<Vec<bool>>)> {
    Ok(match set {
        GroupingSet::Rollup(columns) => {
            let set = |length| (0..columns.len()).map(|at| at >= length).collect();
            (columns.clone(), (0..=columns.len()).map(set).collect())
        }
        GroupingSet::Cube(columns) => {
            let Some(sets) = u32::try_from(columns.len()).ok().and_then(|n| 1_u32.checked_shl(n))
            else {
                return internal_err!("a cube of {} columns", columns.len());
            };
            let set = |bits: u32| (0..columns.len()).map(|at| bits >> at & 1 == 1).collect();
            (columns.clone(), (0..sets).map(set).collect())
        }
        GroupingSet::GroupingSets(sets) => {
            let mut columns: Vec<Expr> = Vec::new();
            for column in sets.iter().flatten() {
                if !columns.contains(column) {
                    columns.push(column.clone());
                }
            }
            let set =
                |set: &Vec<Expr>| columns.iter().map(|column| !set.contains(column)).collect();
            let sets = sets.iter().map(set).collect();
            (columns, sets)
        }
    })
}

#[cfg(test)]
mod tests {
    use datafusion_expr::col;

    use super::*;

    #[test]
    fn each_set_says_which_columns_are_null() {
        let (a, b) = (col("a"), col("b"));
        let both = || vec![a.clone(), b.clone()];
        let (columns, sets) = grouping_sets(&GroupingSet::Rollup(both())).unwrap();
        assert_eq!(columns, both());
        assert_eq!(sets, [[true, true], [false, true], [false, false]]);
        let (_, mut sets) = grouping_sets(&GroupingSet::Cube(both())).unwrap();
        sets.sort();
        assert_eq!(sets, [[false, false], [false, true], [true, false], [true, true]]);
        let sets = vec![vec![b.clone()], vec![a.clone(), b.clone()], vec![]];
        let (columns, sets) = grouping_sets(&GroupingSet::GroupingSets(sets)).unwrap();
        assert_eq!(columns, [b, a]);
        assert_eq!(sets, [[false, true], [false, false], [true, true]]);
    }
}
