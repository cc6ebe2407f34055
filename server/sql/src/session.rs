//! A session that knows the tables of one snapshot and a list of functions, and nothing else.
//!
//! There is no catalogue of files, no information schema, no store to read from, no disk to spill to, and no
//! setting that a statement could change.
//!
//! ```text
//! blank                     once, in the template: functions, rules, memory of 128 MiB for operators
//! answer_admitted           once, in a worker
//!   Tables::new             the three tables over the snapshot
//!   Planning::logical       names are looked up            No field named tenant
//!   with_params             $1, $2 get their values        $2 has no value: params holds 1
//!   with_values             scalar subqueries get theirs   errors of each, as of a statement
//!   Planning::physical      operators                      types that do not go together
//!   execute_stream          batches, as they are written   the statement takes more memory than there is for it
//!   Writer                  columns, rows, Done            a row of the answer has more than a megabyte
//! ```
//!
//! Errors before the first row are refusals alone; one that comes later ends an answer of which rows were sent.

use std::sync::Arc;

use datafusion_common::{DataFusionError, ParamValues, config::Dialect};
use datafusion_execution::{
    TaskContext,
    config::SessionConfig,
    disk_manager::{DiskManagerBuilder, DiskManagerMode},
    runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
};
use datafusion_expr::LogicalPlan;
use datafusion_physical_plan::execute_stream;
use datafusion_sql::sqlparser::ast;
use futures::StreamExt as _;
use inlay_engine::rows::Scan;
use serde_json::Value;

use inlay_sql_protocol::{Ask, Done, Refusal};

use crate::{
    answer::{Out, Writer},
    gate,
    memory::{AskForMemory, StatementMemory},
    physical::{TENANT_PARTITION_ROWS, TenantByTenant},
    refuse::refusal,
};

mod calendar;
mod cast_names;
mod distinct_on;
mod in_subqueries;
mod params;
mod regressions;
mod time_zones;

mod functions;

mod library;

mod shared_table;

mod sharing;

mod planning;

mod scalar_subqueries;

use cast_names::{is_clash, may_clash, with_named_casts};
use library::Library;
use planning::{Planning, Tables};
use scalar_subqueries::with_values;

/// A session without tables: what takes time to make and is the same for everybody.
/// Copies share its memory, functions and rules. A worker answers over it two statements without rows and then its own.
#[derive(Clone, Debug)]
pub struct Session {
    /// Dialect, threads, and settings of the library.
    config: SessionConfig,
    /// Memory for operators, and no disk.
    runtime: Arc<RuntimeEnv>,
    /// That of the runtime.
    memory: Arc<StatementMemory>,
    /// Functions and rules.
    library: Arc<Library>,
}

/// A session in which operators may take `pool_bytes` of memory; what they do not count comes on top.
///
/// `threads` is the number of partitions of each scan and each group by.
///
/// Errors: none that is expected; what the library says.
pub fn blank(threads: usize, pool_bytes: usize) -> Result<Session, Refusal> {
    let mut config = SessionConfig::new().with_target_partitions(threads);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // Positions of names in errors.
    options.sql_parser.collect_spans = true;
    // `1.5` is a double, as numeric properties are.
    options.sql_parser.parse_float_as_decimal = false;
    options.execution.collect_statistics = true;
    // It takes the least of a column for that of all arguments: beside `max(ms + 1)`, what `max(event_id)` has learnt would leave out rows.
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // First come, first served: without a disk to spill to, fair shares would refuse memory that is free.
    let memory = Arc::new(StatementMemory::new(pool_bytes));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::<StatementMemory>::clone(&memory))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
        )
        .build_arc()
        .map_err(|error| refusal(&error, &[]))?;
    let by_tenant = TenantByTenant::of(TENANT_PARTITION_ROWS);
    let library = Arc::new(Library::new(config.options(), by_tenant));
    Ok(Session { config, runtime, memory, library })
}

/// Answers a statement over a snapshot: columns and rows go to `out`, the end is returned. Whoever keeps the snapshot
///
/// For tests, and for the statements that a worker answers ahead of its own; a worker admits a statement before it has the rows.
/// spares the answer the time that taking it down takes.
///
/// Errors: why there is no answer, or not all of it.
pub async fn answer(
    session: Session,
    scan: Arc<Scan>,
    ask: &Ask,
    out: &mut dyn Out,
) -> Result<Done, Refusal> {
    answer_admitted(session, scan, gate::admit(&ask.sql)?, ask, out).await
}

/// Answers a statement that the gate has let through.
///
/// Errors: as of [`answer`].
pub async fn answer_admitted(
    session: Session,
    scan: Arc<Scan>,
    statement: ast::Statement,
    ask: &Ask,
    out: &mut dyn Out,
) -> Result<Done, Refusal> {
    let tables = Tables::new(&scan);
    let failed = |error: DataFusionError| refusal(&error, &tables.columns);
    let planning = Planning::new(&session.config, &session.library, &tables);
    let planned = async |statement| {
        let plan = with_params(planning.logical(statement).map_err(failed)?, &ask.params)?;
        let plan = with_values(plan, &planning, || session.task()).await.map_err(failed)?;
        planning.physical(plan).map_err(failed)
    };
    // Planning takes the statement apart, so a second attempt needs a copy.
    let spare = may_clash(&statement).then(|| statement.clone());
    let plan = match (planned(statement).await, spare) {
        (Err(refusal), Some(spare)) if is_clash(&refusal) => planned(with_named_casts(spare)).await,
        (plan, _) => plan,
    }?;
    let mut rows = execute_stream(plan, session.task()).map_err(failed)?;
    let mut writer = Writer::new(&rows.schema(), ask, out)?;
    while let Some(batch) = rows.next().await {
        // The limit of rows or bytes is reached: what is not computed by now is not needed.
        if !writer.write(&batch.map_err(failed)?)? {
            break;
        }
    }
    writer.finish()
}

impl Session {
    /// The same with windows within tenants computed for about so many rows at a time. For tests, whose tenants have few rows.
    pub fn with_tenant_partitions_of(mut self, rows: usize) -> Self {
        let by_tenant = TenantByTenant::of(rows);
        self.library = Arc::new(Library::new(self.config.options(), by_tenant));
        self
    }

    /// Has memory asked for where operators need more.
    pub fn ask_for_memory(&self, ask: AskForMemory) {
        self.memory.ask_by(ask);
    }

    /// What operators ask for while they work.
    fn task(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::new(
            None,
            String::new(),
            self.config.clone(),
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            Arc::clone(&self.runtime),
        ))
    }
}

/// The plan with values in the place of its parameters, or the plan itself if there are neither.
///
/// Errors: as of [`params::check`]; a value whose type does not fit its place.
fn with_params(plan: LogicalPlan, params: &[Value]) -> Result<LogicalPlan, Refusal> {
    let places = plan.get_parameter_names().map_err(|error| refusal(&error, &[]))?;
    params::check(&places, params)?;
    if params.is_empty() {
        return Ok(plan);
    }
    let values = params.iter().map(params::scalar).collect::<Result<Vec<_>, _>>()?;
    plan.with_param_values(ParamValues::from(values)).map_err(|error| refusal(&error, &[]))
}

#[cfg(test)]
mod tests;
