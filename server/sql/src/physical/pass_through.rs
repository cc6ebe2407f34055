//! Operators that hand on the rows of their input, in the same partitions and order.
//!
//! They stand in a plan for the sake of filters: one decides which of them go further down (`barrier.rs`), one learns the bounds of a join's
//! smaller side from its rows, and one asks the larger side for rows within these bounds alone (`join_bounds.rs`).
//!
//! ```text
//! HashJoinExec: filter=timestamp@1 >= due@0
//!   BuildBoundsExec           batches are looked at as they go by
//!     …
//!   ProbeBoundsExec           one more filter for the input
//!     RowsExec
//! ```

use std::{fmt, sync::Arc};

use datafusion_common::{
    Result, Statistics, config::ConfigOptions, internal_err, tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _,
    PhysicalExpr, PlanProperties, StatisticsArgs,
    filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase},
};

/// What an operator that hands on rows is there for.
pub trait PassThrough: fmt::Debug + Clone + Send + Sync + 'static {
    /// The operator's name in a plan.
    const NAME: &'static str;

    /// Which filters the input is asked for, of those that come from above and of its own: all from above, unless the operator says otherwise.
    ///
    /// Errors: what the library says.
    fn filters(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        phase: FilterPushdownPhase,
        from_above: &[Arc<dyn PhysicalExpr>],
    ) -> Result<ChildFilterDescription> {
        let _ = phase;
        ChildFilterDescription::from_child(from_above, input)
    }

    /// The batches of one of so many partitions of the input, which are handed on as they are.
    fn look_at(
        &self,
        batches: SendableRecordBatchStream,
        partitions: usize,
    ) -> SendableRecordBatchStream {
        let _ = partitions;
        batches
    }
}

/// An operator that hands on the rows of its input.
#[derive(Debug)]
pub struct PassThroughExec<P: PassThrough> {
    /// Where the rows come from.
    pub input: Arc<dyn ExecutionPlan>,
    /// What it is there for.
    pub purpose: P,
}

impl<P: PassThrough> PassThroughExec<P> {
    /// The operator above an input.
    pub fn new(input: Arc<dyn ExecutionPlan>, purpose: P) -> Self {
        Self { input, purpose }
    }
}

impl<P: PassThrough> DisplayAs for PassThroughExec<P> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(P::NAME)
    }
}

impl<P: PassThrough> ExecutionPlan for PassThroughExec<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input]: [_; 1] = children.try_into().or_else(|_| internal_err!("not one input"))?;
        Ok(Arc::new(Self { input, purpose: self.purpose.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Counted now: rules behind those that push filters down may divide the input anew.
        let partitions = self.input.output_partitioning().partition_count();
        let batches = self.input.execute(partition, context)?;
        Ok(self.purpose.look_at(batches, partitions))
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let of_input = self.purpose.filters(&self.input, phase, &filters)?;
        Ok(FilterDescription::new().with_child(of_input))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("not one input"),
        }
    }
}
