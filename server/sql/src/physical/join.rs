//! `JOIN`: by hash where columns must be equal, by nested loops otherwise.
//!
//! `ON lower(a.x) = lower(b.x) AND a.n < b.n`: keys that are no columns are made columns of the inputs first and dropped
//! behind the join; what is left of the condition is the join's filter.
//!
//! ```text
//! SELECT count(*) FROM events a JOIN events b ON lower(a.event_id) = lower(b.event_id) AND a.timestamp < b.timestamp
//!
//! HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(join key 2@2, join key 2@2)], filter=timestamp@0 < timestamp@1,
//!     projection=[timestamp@0, event_id@1, timestamp@3, event_id@4]
//!   ProjectionExec: expr=[timestamp@0 as timestamp, event_id@1 as event_id, lower(event_id@1) as join key 2]
//!   ProjectionExec: expr=[timestamp@0 as timestamp, event_id@1 as event_id, lower(event_id@1) as join key 2]
//! ```
//!
//! Without an equality, over a side of one row:
//!
//! ```text
//! SELECT count(*) FROM events a, (SELECT count(*) AS n FROM events) t WHERE length(a.event_id) < t.n
//!
//! NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 < n@0, projection=[n@0, event_id@1]
//! ```
//!
//! Larger sides without an equality are refused by the gate: `a join needs an equality`.

use std::{collections::HashMap, sync::Arc};

use arrow::datatypes::Schema;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, Join, JoinType};
use datafusion_physical_expr::{PhysicalExpr, expressions::Column};
use datafusion_physical_plan::{
    ExecutionPlan,
    joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, utils::JoinFilter},
    projection::{ProjectionExec, ProjectionExpr},
};

use super::exprs::Exprs;

/// The plan of a join. With `is_partitioned`, both inputs may be repartitioned by their keys.
///
/// Errors: what the library says of an expression.
pub fn plan(
    exprs: Exprs<'_>,
    join: &Join,
    [left, right]: [Arc<dyn ExecutionPlan>; 2],
    is_partitioned: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let filter = join.filter.as_ref();
    let filter =
        filter.map(|filter| join_filter(exprs, join, filter, &left, &right)).transpose()?;
    if join.on.is_empty() {
        return Ok(match (&filter, join.join_type) {
            (None, JoinType::Inner) => Arc::new(CrossJoinExec::new(left, right)),
            _ => Arc::new(NestedLoopJoinExec::try_new(left, right, filter, &join.join_type, None)?),
        });
    }
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on.iter().cloned().unzip();
    let lengths = [left.schema().fields().len(), right.schema().fields().len()];
    let (left, left_keys) = with_keys(exprs, &left_keys, join.left.schema(), left)?;
    let (right, right_keys) = with_keys(exprs, &right_keys, join.right.schema(), right)?;
    let wide = [left.schema().fields().len(), right.schema().fields().len()];
    // Whether a null key is among the rows must be known to all of them.
    let mode = match is_partitioned && !join.null_aware {
        true => PartitionMode::Auto,
        false => PartitionMode::CollectLeft,
    };
    let joined = Arc::new(HashJoinExec::try_new(
        left,
        right,
        left_keys.into_iter().zip(right_keys).collect(),
        filter,
        &join.join_type,
        None,
        mode,
        join.null_equality,
        join.null_aware,
    )?);
    if lengths == wide {
        return Ok(joined);
    }
    columns(joined, &output_columns(join.join_type, lengths, wide))
}

/// An input of a join, and its keys as columns of it: `user_id@0`, `join key 2@2`.
type WithKeys = (Arc<dyn ExecutionPlan>, Vec<Arc<dyn PhysicalExpr>>);

/// An input whose keys are columns: those that are not come behind its own.
fn with_keys(
    exprs: Exprs<'_>,
    keys: &[Expr],
    logical: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
) -> Result<WithKeys> {
    let keys = exprs.all(keys, logical)?;
    if keys.iter().all(|key| key.downcast_ref::<Column>().is_some()) {
        return Ok((input, keys));
    }
    let mut all = of_columns(&input, 0..input.schema().fields().len());
    let mut columns: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    for key in keys {
        if key.downcast_ref::<Column>().is_some() {
            columns.push(key);
            continue;
        }
        // A column of the statement may have the same name: columns are found by their index.
        let name = format!("join key {}", all.len());
        columns.push(Arc::new(Column::new(&name, all.len())));
        all.push(ProjectionExpr { expr: key, alias: name });
    }
    Ok((Arc::new(ProjectionExec::try_new(all, input)?), columns))
}

/// Which columns of a join are not keys that were added to its inputs: `lengths` before, `wide` with them.
///
/// A left input of two columns with one key behind them, and a right one of three columns with two: `[0, 1, 3, 4, 5]` of a `LEFT JOIN`, where 2
/// is the left key and 6 and 7 are those of the right.
fn output_columns(kind: JoinType, lengths: [usize; 2], wide: [usize; 2]) -> Vec<usize> {
    let ([left, right], [wide_left, wide_right]) = (lengths, wide);
    match kind {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            (0..left).chain(wide_left..wide_left + right).collect()
        }
        JoinType::LeftSemi | JoinType::LeftAnti => (0..left).collect(),
        JoinType::RightSemi | JoinType::RightAnti => (0..right).collect(),
        // The mark comes last.
        JoinType::LeftMark => (0..left).chain([wide_left]).collect(),
        JoinType::RightMark => (0..right).chain([wide_right]).collect(),
    }
}

/// A plan with some of its columns, by their indexes.
fn columns(input: Arc<dyn ExecutionPlan>, selected: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    let columns = of_columns(&input, selected.iter().copied());
    Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
}

/// Columns of a plan as expressions of a projection, under their names.
fn of_columns(
    input: &Arc<dyn ExecutionPlan>,
    columns: impl Iterator<Item = usize>,
) -> Vec<ProjectionExpr> {
    let schema = input.schema();
    let column = |at: usize| {
        let name = schema.field(at).name();
        ProjectionExpr { expr: Arc::new(Column::new(name, at)), alias: name.clone() }
    };
    columns.map(column).collect()
}

/// The rest of a join's condition, over a row of those columns of both inputs that it names.
///
/// Of `a.timestamp < b.timestamp` that row is `timestamp` of the left and `timestamp` of the right: the filter is `timestamp@0 < timestamp@1`
/// whatever else the inputs have.
fn join_filter(
    exprs: Exprs<'_>,
    join: &Join,
    filter: &Expr,
    left: &Arc<dyn ExecutionPlan>,
    right: &Arc<dyn ExecutionPlan>,
) -> Result<JoinFilter> {
    let named = filter.column_refs();
    let indexes = |schema: &DFSchema| {
        let found = named.iter().filter_map(|column| schema.index_of_column(column).ok());
        let mut found: Vec<usize> = found.collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let sides = [(join.left.schema(), left), (join.right.schema(), right)];
    let mut metadata = HashMap::new();
    let (mut logical_fields, mut fields) = (Vec::new(), Vec::new());
    for (schema, plan) in sides {
        metadata.extend(schema.metadata().clone());
        for at in indexes(schema) {
            let (relation, field) = schema.qualified_field(at);
            logical_fields.push((relation.cloned(), Arc::clone(field)));
            fields.push(plan.schema().field(at).clone());
        }
    }
    let logical = DFSchema::new_with_metadata(logical_fields, metadata.clone())?;
    let columns =
        JoinFilter::build_column_indices(indexes(join.left.schema()), indexes(join.right.schema()));
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    Ok(JoinFilter::new(exprs.one(filter, &logical)?, columns, schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_were_added_are_no_columns_of_the_answer() {
        let columns = |kind| output_columns(kind, [2, 3], [3, 5]);
        assert_eq!(columns(JoinType::Left), [0, 1, 3, 4, 5]);
        assert_eq!(columns(JoinType::LeftAnti), [0, 1]);
        assert_eq!(columns(JoinType::RightSemi), [0, 1, 2]);
        assert_eq!(columns(JoinType::LeftMark), [0, 1, 3]);
        assert_eq!(columns(JoinType::RightMark), [0, 1, 2, 5]);
    }
}
