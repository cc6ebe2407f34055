//! A session that knows the tables of one snapshot and a list of functions, and nothing else.
//!
//! There is no catalogue of files, no information schema, no store to read from, no disk to spill to, and no
//! setting that a statement could change.

use std::sync::Arc;

use datafusion::{
    catalog::{
        CatalogProvider as _, CatalogProviderList as _, MemoryCatalogProvider,
        MemoryCatalogProviderList, MemorySchemaProvider, SchemaProvider as _, TableProvider as _,
    },
    common::ParamValues,
    execution::{
        SessionStateBuilder,
        context::SessionContext,
        disk_manager::{DiskManagerBuilder, DiskManagerMode},
        memory_pool::FairSpillPool,
        runtime_env::RuntimeEnvBuilder,
        session_state::SessionState,
    },
    logical_expr::{AggregateUDF, LogicalPlan},
    optimizer::{Analyzer, Optimizer, OptimizerRule},
    prelude::SessionConfig,
    sql::{parser::Statement, sqlparser::ast},
};
use futures::StreamExt as _;
use inlay_engine::rows::Scan;
use serde_json::Value;

use inlay_sql_protocol::{Ask, Done, Refusal};

use crate::{
    answer::{Out, Writer},
    gate,
    refuse::refusal,
    table::{AddUpEarly, GroupByNumbers, KeepCasts, ReadProperties, aggregates, all},
};

mod calendar;
mod functions;
mod params;

/// A session without tables: what takes time to make and is the same for everybody. Operators may take `pool_bytes`
/// of memory; what they do not count comes on top.
///
/// Errors: none that is expected; what the library says.
pub fn blank(threads: usize, pool_bytes: usize) -> Result<SessionState, Refusal> {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema("inlay", "public");
    let options = config.options_mut();
    options.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
    options.sql_parser.collect_spans = true;
    options.sql_parser.parse_float_as_decimal = false;
    options.execution.collect_statistics = true;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(pool_bytes)))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
        )
        .build_arc()
        .map_err(|error| refusal(&error, &[]))?;
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Optimizer::new().rules;
    rules.push(Arc::new(ReadProperties));
    rules.push(Arc::new(AddUpEarly));
    rules.push(Arc::new(GroupByNumbers));
    let mut analyzers = Analyzer::new().rules;
    analyzers.insert(0, Arc::new(KeepCasts::Written));
    analyzers.push(Arc::new(KeepCasts::Added));
    let mut aggregate_functions = functions::aggregates();
    aggregate_functions.extend(aggregates().into_iter().map(Arc::<AggregateUDF>::new));
    Ok(SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_expr_planners(datafusion::execution::SessionStateDefaults::default_expr_planners())
        .with_scalar_functions(functions::scalars())
        .with_aggregate_functions(aggregate_functions)
        .with_window_functions(functions::windows())
        .with_analyzer_rules(analyzers)
        .with_optimizer_rules(rules)
        .build())
}

/// Answers a statement over a snapshot: columns and rows go to `out`, the end is returned. Whoever keeps the snapshot
/// spares the answer the time that taking it down takes.
///
/// Errors: why there is no answer, or not all of it.
pub async fn answer(
    state: SessionState,
    scan: Arc<Scan>,
    ask: &Ask,
    out: &mut dyn Out,
) -> Result<Done, Refusal> {
    answer_admitted(state, scan, gate::admit(&ask.sql)?, ask, out).await
}

/// Answers a statement that the gate has let through.
///
/// Errors: as of [`answer`].
pub async fn answer_admitted(
    state: SessionState,
    scan: Arc<Scan>,
    statement: ast::Statement,
    ask: &Ask,
    out: &mut dyn Out,
) -> Result<Done, Refusal> {
    let (context, names) = session_over(state, scan).map_err(|error| refusal(&error, &[]))?;
    let state = context.state();
    let failed = |error: datafusion::error::DataFusionError| refusal(&error, &names);
    let plan = state.statement_to_plan(Statement::Statement(Box::new(statement))).await;
    let plan = with_params(plan.map_err(failed)?, &ask.params)?;
    // Whatever came through, only what reads is run.
    datafusion::execution::context::SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&plan)
        .map_err(failed)?;
    let frame = context.execute_logical_plan(plan).await.map_err(failed)?;
    let mut rows = frame.execute_stream().await.map_err(failed)?;
    let mut writer = Writer::new(&rows.schema(), ask, out)?;
    while let Some(batch) = rows.next().await {
        if !writer.write(&batch.map_err(failed)?)? {
            break;
        }
    }
    writer.finish()
}

/// A session that knows the tables of a snapshot and nothing else; and the names of their columns.
fn session_over(
    mut state: SessionState,
    scan: Arc<Scan>,
) -> datafusion::error::Result<(SessionContext, Vec<String>)> {
    let mut names: Vec<String> = Vec::new();
    let tables = MemorySchemaProvider::new();
    for table in all(&scan) {
        names.extend(table.schema().fields().iter().map(|field| field.name().clone()));
        tables.register_table(table.name().to_owned(), Arc::new(table))?;
    }
    names.sort_unstable();
    names.dedup();
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema("public", Arc::new(tables))?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog("inlay".to_owned(), Arc::new(catalog));
    state.register_catalog_list(Arc::new(list));
    Ok((SessionContext::new_with_state(state), names))
}

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
