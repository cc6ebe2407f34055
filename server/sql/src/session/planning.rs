//! From a statement to operators: names are looked up, and plans are made and improved.
//!
//! ```text
//! tree of the statement              as the gate has left it
//! logical plan                       tables, columns and functions are looked up                 Planning::logical
//! with values for $1, $2             session.rs
//! with values of scalar subqueries   scalar_subqueries.rs
//! analyzed plan                      types fit; DISTINCT ON, IN and casts as in PostgreSQL       library.analyzer
//! plan and shared tables             subqueries that are used several times                      share
//! improved plan                      conditions and columns at the tables                        library.optimizer
//! plan over our tables               groups below scans, numbers in place of strings             library.of_tables
//! operators                          windows, joins, shared subplans of ours                     physical::Planner
//! improved operators                 filters pushed into scans, inputs of joins swapped          library.physical
//! ```
//!
//! No rows are read here: an operator gets the row ranges that its partitions will read once it is executed.

use std::{collections::HashMap, sync::Arc};

use arrow::datatypes::{DataType, Field, Schema};
use chrono::{DateTime, Utc};
use datafusion_common::{
    Result, TableReference,
    alias::AliasGenerator,
    config::ConfigOptions,
    internal_err, plan_datafusion_err,
    tree_node::{TreeNode as _, TreeNodeRecursion},
};
use datafusion_execution::config::SessionConfig;
use datafusion_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
    execution_props::ExecutionProps,
    planner::{ContextProvider, ExprPlanner},
    registry::FunctionRegistry,
};
use datafusion_optimizer::{AnalyzerRule as _, Optimizer, OptimizerConfig};
use datafusion_physical_plan::{ExecutionPlan, execution_plan::InvariantLevel};
use datafusion_sql::{
    planner::{ParserOptions, SqlToRel},
    sqlparser::ast,
};
use inlay_engine::rows::Scan;

use super::{
    library::{Library, rules_for},
    shared_table::{SharedTable, mark_columns_read},
    sharing::{share, share_groups},
};
use crate::{
    physical::Planner,
    rules::ZEROS_WITHOUT_SIGN,
    tables::{Source, all},
};

/// Where tables are: `inlay.public.events`.
///
/// A statement may write `events`, `public.events` or `inlay.public.events`. Any other schema has no tables: `table
/// 'inlay.information_schema.tables' not found`.
const CATALOG: &str = "inlay";
const SCHEMA: &str = "public";

/// Tables over a snapshot, by name.
///
/// `events`, `events_hourly` and `events_daily`. All scans of `events` share one dictionary for each column.
pub struct Tables {
    by_name: HashMap<&'static str, Arc<dyn TableSource>>,
    /// Names of all columns, sorted.
    /// For hints where the library knows of no columns that would be valid: `did you mean count?`.
    pub columns: Vec<String>,
}

impl Tables {
    /// The tables over a snapshot.
    pub fn new(scan: &Arc<Scan>) -> Self {
        let (mut by_name, mut columns) = (HashMap::new(), Vec::new());
        for table in all(scan) {
            let name = table.name();
            let source = Source::of(table);
            columns.extend(source.schema().fields().iter().map(|field| field.name().clone()));
            by_name.insert(name, source);
        }
        columns.sort_unstable();
        columns.dedup();
        Self { by_name, columns }
    }
}

/// The planning of one statement.
///
/// It is what the library asks back while it plans: for names ([`ContextProvider`]) and for settings and the time of now ([`OptimizerConfig`]).
pub struct Planning<'a> {
    config: &'a SessionConfig,
    library: &'a Library,
    tables: &'a Tables,
    props: ExecutionProps,
}

impl<'a> Planning<'a> {
    /// Planning that begins now, which is what `now()` will be.
    ///
    /// Also in a statement that is planned twice (`cast_names.rs`), and in all of its rows.
    pub fn new(config: &'a SessionConfig, library: &'a Library, tables: &'a Tables) -> Self {
        let mut props = ExecutionProps::new();
        props.mark_start_execution(Arc::clone(config.options()));
        Self { config, library, tables, props }
    }

    /// What a statement means.
    ///
    /// The plan is as it was written, before any rule: `WITH` names are replaced by their queries, and `$1` is still a parameter.
    ///
    /// Errors: a table, column or function that there is not; types that do not go together.
    pub fn logical(&self, statement: ast::Statement) -> Result<LogicalPlan> {
        let options = ParserOptions::from(&self.config.options().sql_parser);
        SqlToRel::new_with_options(self, options).sql_statement_to_plan(statement)
    }

    /// The operators of a plan.
    ///
    /// With shared tables the order matters, since a table has to know what all of its readers read of it:
    ///
    /// ```text
    /// 1  the plan is improved; it reads shared 1, which reads shared 0
    /// 2  shared 1, then shared 0: columns that nothing reads are dropped, then each is improved
    /// 3  shared 0, then shared 1, then the plan: numbers in place of strings, which come from below
    /// 4  shared 1, then shared 0: columns that nothing reads any more are dropped
    /// 5  shared 0, then shared 1, then the plan: operators
    /// ```
    ///
    /// Errors: types that do not go together; a kind of node that no statement can have; damage of a segment.
    pub fn physical(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let (library, options) = (self.library, self.config.options());
        let plan = library.analyzer.execute_and_check(plan, options, |_, _| {})?;
        let (mut plan, mut shared) = share(plan)?;
        // Readers are known before what they read: what none of them reads is left out.
        plan = self.improved(&library.optimizer, plan)?;
        plan = share_groups(plan, &mut shared)?;
        for table in shared.iter().rev() {
            table.drop_unread_columns()?;
            table.change(|plan| self.improved(&library.optimizer, plan))?;
        }
        // Numbers of texts come from below.
        for table in &shared {
            table.change(|plan| self.improved(&library.of_tables, plan))?;
        }
        shared.iter().for_each(SharedTable::unmark);
        plan = self.improved(&library.of_tables, plan)?;
        for table in shared.iter().rev() {
            table.drop_unread_columns()?;
            table.change(|plan| self.improved(&library.columns, plan))?;
        }
        for table in &shared {
            table.compute_by(|plan| self.operators(plan))?;
        }
        self.operators(plan)
    }

    /// What rules make of a plan.
    /// The columns of shared tables that the plan reads then are marked, also by plans of other shared tables.
    fn improved(&self, rules: &Optimizer, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = rules_for(rules, &plan)?.optimize(plan, self, |_, _| {})?;
        mark_columns_read(&plan)?;
        Ok(plan)
    }

    /// The operators of a plan that the rules have improved.
    ///
    /// Errors: those of [`physical`](Self::physical); an internal one where a rule changes the columns of a plan, which would be a fault of the rule.
    fn operators(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let (library, options) = (self.library, self.config.options());
        // Once, when no other rule follows: those know products and negatives.
        let plan = ZEROS_WITHOUT_SIGN.analyze(plan, options)?;
        let mut plan = Planner { config: self.config, props: &self.props }.plan(&plan)?;
        for rule in &library.physical.rules {
            let columns = plan.schema();
            plan = rule.optimize(plan, options).map_err(|error| error.context(rule.name()))?;
            if rule.schema_check() && !has_same_columns(&columns, &plan.schema()) {
                return internal_err!("the rule {} changes the columns of a plan", rule.name());
            }
        }
        plan.apply(|operator| {
            operator.check_invariants(InvariantLevel::Executable)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}

/// Whether names and types are the same, in the same order. A rule may learn that a column has no nulls.
fn has_same_columns(before: &Schema, after: &Schema) -> bool {
    let column = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    before.fields().iter().map(column).eq(after.fields().iter().map(column))
}

/// What the rules of the optimizer ask for.
impl OptimizerConfig for Planning<'_> {
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        self.props.query_execution_start_time
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.props.alias_generator
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.config.options())
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(&self.library.functions)
    }
}

/// What names in a statement stand for. There are no variables, no table functions and no files.
impl ContextProvider for Planning<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let name = name.resolve(CATALOG, SCHEMA);
        let is_here = (&*name.catalog, &*name.schema) == (CATALOG, SCHEMA);
        let table = self.tables.by_name.get(&*name.table).filter(|_| is_here).cloned();
        table.ok_or_else(|| plan_datafusion_err!("table '{name}' not found"))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.library.syntax
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.library.functions.scalars.get(name).cloned()
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.library.functions.aggregates.get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.library.functions.windows.get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.config.options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.library.functions.scalars.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.library.functions.aggregates.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.library.functions.windows.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_may_neither_drop_nor_rename_nor_swap_columns() {
        let schema = |columns: &[(&str, DataType, bool)]| {
            let field = |(name, kind, nullable): &(&str, DataType, bool)| {
                Field::new(*name, kind.clone(), *nullable)
            };
            Schema::new(columns.iter().map(field).collect::<Vec<_>>())
        };
        let (a, b) = (("a", DataType::Int64, true), ("b", DataType::Utf8, true));
        let before = schema(&[a.clone(), b.clone()]);
        let never_null = ("a", DataType::Int64, false);
        assert!(has_same_columns(&before, &schema(&[never_null, b.clone()])));
        let renamed = ("c", DataType::Int64, true);
        for after in [vec![a.clone()], vec![b.clone(), a], vec![renamed, b]] {
            assert!(!has_same_columns(&before, &schema(&after)), "{after:?}");
        }
    }
}
