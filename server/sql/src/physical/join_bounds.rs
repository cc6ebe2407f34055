//! A rule for operators: a join that compares columns reads rows of its right input alone that the comparison can let pass.
//!
//! `ON e.tenant_id = r.tenant_id AND e.timestamp >= r.due` has a key and a comparison. The library tells the right input, which is mostly the
//! larger one, which keys there are; what the comparison says is checked for each pair. Once the left input has been read, its earliest `due` is known,
//! and no row before it has a partner: the scan below skips them, as it does for what a sort learns (`tables/scan_filters.rs`).
//!
//! ```text
//! SELECT … FROM renewals r LEFT JOIN events e ON e.tenant_id = r.tenant_id AND e.timestamp >= r.due
//!
//! HashJoinExec: join_type=Left, on=[(tenant_id, tenant_id)], filter=timestamp@1 >= due@0
//!   BuildBoundsExec                                  finds the least due
//!     …
//!   RowsExec: DynamicFilter [ timestamp@1 >= 2026-10-01 ]
//! ```
//!
//! It holds for joins that leave out rows of the right input without a partner. A bound is of values that comparisons of Arrow order, so
//! NaN is the greatest number; what cannot be computed for a row of the left input, where that row may have no partner at all, bounds nothing.
//! Where no scan takes a filter, as below windows, nothing is looked at.

use std::{
    cmp::Ordering,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::{
    array::{Array as _, RecordBatch},
    compute::{SortOptions, sort_to_indices},
    datatypes::DataType,
};
use datafusion_common::{
    JoinSide, JoinType, Result, ScalarValue,
    config::ConfigOptions,
    tree_node::{Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion},
};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::Operator;
use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, lit},
    utils::{collect_columns, split_conjunction},
};
use datafusion_physical_plan::{
    ExecutionPlan,
    execution_plan::replace_children_if_necessary,
    filter_pushdown::{ChildFilterDescription, FilterPushdownPhase},
    joins::{HashJoinExec, NestedLoopJoinExec, utils::JoinFilter},
    stream::RecordBatchStreamAdapter,
};
use futures::StreamExt as _;

use super::{
    barrier::{BarrierExec, unique_names},
    pass_through::{PassThrough, PassThroughExec},
    rewrite::PlanRule,
};

/// Puts operators that learn above the inputs of joins with comparisons; filters are pushed down behind it.
pub const LEARN_JOIN_BOUNDS: PlanRule =
    PlanRule { name: "learn_join_bounds", rewrite: learn_join_bounds };

/// Takes away the operators that have handed on their filters, and those that find bounds which no scan asks for.
pub const DROP_UNUSED_BOUNDS: PlanRule =
    PlanRule { name: "drop_unused_bounds", rewrite: drop_unused_bounds };

/// A join whose inputs have operators above them, one that finds bounds and one that asks for them, if its condition compares columns of both.
fn learn_join_bounds(
    plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let hash_join = plan.downcast_ref::<HashJoinExec>();
    let nested_loops = plan.downcast_ref::<NestedLoopJoinExec>();
    let (filter, kind) = match (hash_join, nested_loops) {
        // If `null_aware`, the answer depends on whether the right side has any row.
        (Some(join), _) if !join.null_aware => (join.filter(), join.join_type()),
        (_, Some(join)) => (join.filter(), join.join_type()),
        _ => return Ok(Transformed::no(plan)),
    };
    let may_learn = options.optimizer.enable_join_dynamic_filter_pushdown;
    let (Some(filter), [build, probe], true) =
        (filter, &*plan.children(), may_learn && drops_probe_rows(*kind))
    else {
        return Ok(Transformed::no(plan));
    };
    let comparisons = comparisons(filter, build, probe)?;
    if comparisons.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let learned = comparisons.iter().map(|one| Arc::clone(&one.learned)).collect();
    let build = PassThroughExec::new(Arc::clone(build), BuildBounds::of(comparisons));
    let probe = PassThroughExec::new(Arc::clone(probe), ProbeBounds(learned));
    let inputs: Vec<Arc<dyn ExecutionPlan>> = vec![Arc::new(build), Arc::new(probe)];
    Ok(Transformed::yes(replace_children_if_necessary(plan, inputs)?))
}

/// A join without the operator that asks for bounds, and with one that finds those alone for which a scan waits.
fn drop_unused_bounds(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let [build, probe] = &*plan.children() else { return Ok(Transformed::no(plan)) };
    // A barrier may have been put above them, whose work is done as well.
    let bounds = below_barrier(build).downcast_ref::<PassThroughExec<BuildBounds>>();
    let hint = below_barrier(probe).downcast_ref::<PassThroughExec<ProbeBounds>>();
    let Some((bounds, hint)) = bounds.zip(hint) else { return Ok(Transformed::no(plan)) };
    let mut used = Vec::new();
    for comparison in &bounds.purpose.0.comparisons {
        if is_asked_for(&hint.input, &comparison.learned)? {
            used.push(comparison.clone());
        }
    }
    let build = match used.is_empty() {
        true => Arc::clone(&bounds.input),
        false => {
            Arc::new(PassThroughExec::new(Arc::clone(&bounds.input), BuildBounds::of(used))) as _
        }
    };
    let inputs = vec![build, Arc::clone(&hint.input)];
    Ok(Transformed::yes(replace_children_if_necessary(plan, inputs)?))
}

/// What a barrier hands rows on from, if there is one.
fn below_barrier(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    plan.downcast_ref::<BarrierExec>().map_or(plan, |barrier| &barrier.input)
}

/// Whether an operator of a plan has a filter among its expressions.
fn is_asked_for(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &Arc<DynamicFilterPhysicalExpr>,
) -> Result<bool> {
    let (id, mut found) = (filter.expression_id(), false);
    plan.apply(|operator| {
        operator.apply_expressions(&mut |expr| {
            found |= expr.exists(|part| Ok(part.expression_id() == id))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Whether rows of the right input that have no partner are in no answer of such a join.
fn drops_probe_rows(kind: JoinType) -> bool {
    match kind {
        JoinType::Inner
        | JoinType::Left
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::LeftMark
        | JoinType::RightSemi => true,
        JoinType::Right | JoinType::Full | JoinType::RightAnti | JoinType::RightMark => false,
    }
}

/// A part of a join's condition: `timestamp@1 >= due@0 + 7 days`, the column of the right input on the left.
#[derive(Debug, Clone)]
struct Comparison {
    column: Arc<dyn PhysicalExpr>,
    op: Operator,
    /// Over the left input.
    value: Arc<dyn PhysicalExpr>,
    /// What follows of it for the right input, once all values are known.
    learned: Arc<DynamicFilterPhysicalExpr>,
}

impl Comparison {
    /// Which end of the values bounds the column: the greatest of `column < value`, the least of `column > value`.
    fn is_of_greatest(&self) -> bool {
        matches!(self.op, Operator::Lt | Operator::LtEq)
    }

    /// The end of the values of a batch.
    fn end(&self, batch: &RecordBatch) -> ValueEnd {
        let end = || -> Result<Option<ScalarValue>> {
            let values = self.value.evaluate(batch)?.into_array(batch.num_rows())?;
            let order = SortOptions { descending: self.is_of_greatest(), nulls_first: false };
            let first = sort_to_indices(&values, Some(order), Some(1))?;
            let first = first.values().first().map(|at| *at as usize);
            let first = first.filter(|at| !values.is_null(*at));
            first.map(|at| ScalarValue::try_from_array(&values, at)).transpose()
        };
        match end() {
            Ok(Some(value)) => ValueEnd::Of(value),
            Ok(None) => ValueEnd::NoValue,
            Err(_) => ValueEnd::Unknown,
        }
    }
}

/// Comparisons of a join's condition that bound a column of the right input by values of the left one.
fn comparisons(
    filter: &JoinFilter,
    build: &Arc<dyn ExecutionPlan>,
    probe: &Arc<dyn ExecutionPlan>,
) -> Result<Vec<Comparison>> {
    let (build, probe) = (build.schema(), probe.schema());
    let unique = unique_names(&probe);
    let index_of = |column: &Column| filter.column_indices().get(column.index());
    // The side of all columns of an expression, if they have one.
    let side_of = |expr: &Arc<dyn PhysicalExpr>| {
        let mut sides =
            collect_columns(expr).into_iter().map(|column| Some(index_of(&column)?.side));
        let first = sides.next()??;
        sides.all(|side| side == Some(first)).then_some(first)
    };
    let of_build = |expr: &Arc<dyn PhysicalExpr>| {
        let placed = Arc::clone(expr).transform_up(|part| {
            let index = part.downcast_ref::<Column>().and_then(index_of);
            Ok(match index {
                Some(index) => {
                    let name = build.field(index.index).name();
                    Transformed::yes(Arc::new(Column::new(name, index.index)))
                }
                None => Transformed::no(part),
            })
        });
        placed.data()
    };
    let mut found = Vec::new();
    for part in split_conjunction(filter.expression()) {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else { continue };
        let (column, op, value) = match (side_of(binary.left()), side_of(binary.right())) {
            (Some(JoinSide::Right), Some(JoinSide::Left)) => {
                (binary.left(), Some(*binary.op()), binary.right())
            }
            (Some(JoinSide::Left), Some(JoinSide::Right)) => {
                (binary.right(), binary.op().swap(), binary.left())
            }
            _ => continue,
        };
        let is_order = |op: &Operator| {
            matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
        };
        let index = column.downcast_ref::<Column>().and_then(index_of);
        let (Some(op), Some(index)) = (op.filter(is_order), index) else { continue };
        if !unique.contains(&index.index) {
            continue;
        }
        let value = of_build(value)?;
        let name = probe.field(index.index).name();
        let kind = probe.field(index.index).data_type();
        if has_order(kind) && value.data_type(&build)? == *kind {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, index.index));
            let learned = DynamicFilterPhysicalExpr::new(vec![Arc::clone(&column)], lit(true));
            found.push(Comparison { column, op, value, learned: Arc::new(learned) });
        }
    }
    Ok(found)
}

/// Whether the least and the greatest of values are what comparisons go by: of numbers and times, not of lengths in months and days.
fn has_order(kind: &DataType) -> bool {
    kind.is_numeric() || kind.is_temporal() && !matches!(kind, DataType::Interval(_))
}

/// What is known of an end of values.
#[derive(Debug, Clone)]
enum ValueEnd {
    /// There is no value that is not null.
    NoValue,
    /// The least or the greatest.
    Of(ScalarValue),
    /// One could not be computed.
    Unknown,
}

impl ValueEnd {
    /// The end of these values and others.
    fn with(self, others: Self, is_of_greatest: bool) -> Self {
        match (self, others) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::NoValue, end) | (end, Self::NoValue) => end,
            (Self::Of(one), Self::Of(other)) => match one.partial_cmp(&other) {
                Some(Ordering::Greater) => Self::Of(if is_of_greatest { one } else { other }),
                Some(_) => Self::Of(if is_of_greatest { other } else { one }),
                None => Self::Unknown,
            },
        }
    }
}

/// What the left input of a join teaches the right one.
#[derive(Debug)]
struct Learning {
    comparisons: Vec<Comparison>,
    finished: Mutex<FinishedPartitions>,
}

/// Partitions of the left input that have been read.
#[derive(Debug)]
struct FinishedPartitions {
    count: usize,
    /// Of each comparison, over their rows.
    ends: Vec<ValueEnd>,
}

impl Learning {
    /// Nothing, of each comparison.
    fn no_values(&self) -> Vec<ValueEnd> {
        vec![ValueEnd::NoValue; self.comparisons.len()]
    }

    /// Ends of some values and others, of each comparison.
    fn both(
        &self,
        some: Vec<ValueEnd>,
        others: impl IntoIterator<Item = ValueEnd>,
    ) -> Vec<ValueEnd> {
        let each = some.into_iter().zip(others).zip(&self.comparisons);
        each.map(|((some, others), one)| some.with(others, one.is_of_greatest())).collect()
    }

    /// Adds the ends of one of so many partitions, and tells the right input what is known when it was the last one.
    ///
    /// Errors: none that is expected; what the library says.
    fn finish(&self, of_partition: Vec<ValueEnd>, partitions: usize) -> Result<()> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.ends = self.both(std::mem::take(&mut finished.ends), of_partition);
        finished.count += 1;
        if finished.count < partitions {
            return Ok(());
        }
        for (one, end) in self.comparisons.iter().zip(&finished.ends) {
            one.learned.update(match end {
                ValueEnd::Of(end) => {
                    let (column, end) = (Arc::clone(&one.column), lit(end.clone()));
                    Arc::new(BinaryExpr::new(column, one.op, end))
                }
                // Compared with null, no row has a partner.
                ValueEnd::NoValue => lit(false),
                ValueEnd::Unknown => continue,
            })?;
        }
        Ok(())
    }
}

/// Finds the bounds of a join's left input.
#[derive(Debug, Clone)]
struct BuildBounds(Arc<Learning>);

impl BuildBounds {
    fn of(comparisons: Vec<Comparison>) -> Self {
        let ends = vec![ValueEnd::NoValue; comparisons.len()];
        let finished = Mutex::new(FinishedPartitions { count: 0, ends });
        Self(Arc::new(Learning { comparisons, finished }))
    }
}

impl PassThrough for BuildBounds {
    const NAME: &'static str = "BuildBoundsExec";

    fn look_at(
        &self,
        batches: SendableRecordBatchStream,
        partitions: usize,
    ) -> SendableRecordBatchStream {
        let learning = Arc::clone(&self.0);
        let schema = batches.schema();
        let ends = learning.no_values();
        let batches = futures::stream::unfold(Some((batches, ends)), move |state| {
            let learning = Arc::clone(&learning);
            async move {
                let (mut batches, ends) = state?;
                match batches.next().await {
                    Some(Ok(batch)) => {
                        let here = learning.comparisons.iter().map(|one| one.end(&batch));
                        let ends = learning.both(ends, here);
                        Some((Ok(batch), Some((batches, ends))))
                    }
                    Some(Err(error)) => Some((Err(error), None)),
                    None => learning.finish(ends, partitions).err().map(|error| (Err(error), None)),
                }
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.fuse()))
    }
}

/// Asks a join's right input for rows within the bounds of the left one.
#[derive(Debug, Clone)]
struct ProbeBounds(Vec<Arc<DynamicFilterPhysicalExpr>>);

impl PassThrough for ProbeBounds {
    const NAME: &'static str = "ProbeBoundsExec";

    fn filters(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        phase: FilterPushdownPhase,
        from_above: &[Arc<dyn PhysicalExpr>],
    ) -> Result<ChildFilterDescription> {
        let filters = ChildFilterDescription::from_child(from_above, input)?;
        Ok(match phase {
            FilterPushdownPhase::Post => {
                let learned = self.0.iter().map(|filter| Arc::clone(filter) as _);
                filters.with_self_filters(learned.collect())
            }
            FilterPushdownPhase::Pre => filters,
        })
    }
}
