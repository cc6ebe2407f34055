//! What the library is given for every statement: functions by name, and the rules that improve a plan.
//!
//! It is made once in the template (`template.rs`), and every statement of every worker has the same. The rules run in this order; those in brackets are
//! the library's:
//!
//! ```text
//! analyzer      DISTINCT ON, properties as columns, nulls of IN, times of dates, signed numbers, frames, casts that are written
//!               [types are coerced, …]
//!               casts that were added, durations, constants on the right, nulls of lists, rounded casts, distinct sets as unions
//! optimizer     […], nulls of lists, [constants are computed], times in milliseconds, […], values are propagated, [filters are pushed down, …],
//!               aggregates below joins
//! of_tables     percentiles together, semi joins of groups, aggregate pushdown, distinct values as groups, distinct codes, [single distinct to groups], aggregate pushdown,
//!               dictionary group by, joins and partitions, [columns that nothing reads]
//! physical      […], names apart, [filters are pushed into scans, …], first rows, tenant by tenant
//! ```

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use datafusion_common::{
    Result,
    config::ConfigOptions,
    plan_datafusion_err,
    tree_node::{Transformed, TreeNodeRecursion},
};
use datafusion_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF, planner::ExprPlanner,
    registry::FunctionRegistry,
};
use datafusion_functions::{core, unicode};
use datafusion_functions_aggregate as functions_aggregate;
use datafusion_functions_nested as functions_nested;
use datafusion_functions_window as functions_window;
use datafusion_optimizer::{
    Analyzer, ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule,
    optimize_projections::OptimizeProjections, single_distinct_to_groupby::SingleDistinctToGroupBy,
};
use datafusion_physical_optimizer::{PhysicalOptimizerRule, optimizer::PhysicalOptimizer};

use super::{
    calendar::Extract, distinct_on::DistinctOnAsWindow, functions, in_subqueries::NullsOfIn,
};
use crate::{
    aggregate::aggregates,
    physical::{
        DROP_UNUSED_BOUNDS, KEEP_NAMES_APART, LEARN_JOIN_BOUNDS, READ_FIRST_ROWS, TenantByTenant,
    },
    rules::{
        ADD_DURATIONS, AGGREGATE_BELOW_JOINS, AGGREGATE_PUSHDOWN, CONSTANTS_RIGHT,
        COUNT_DISTINCT_CODES, DICTIONARY_GROUP_BY, DICTIONARY_JOINS, DICTIONARY_PARTITIONS,
        DISTINCT_AS_GROUPS, DistinctSetsAsUnion, FRAMES, NULLS_OF_LISTS, PERCENTILES_TOGETHER,
        PROPAGATE_VALUES, PreserveTimestampCasts, PropertiesAsColumns, ROUNDED_CASTS,
        SECONDS_OF_TIMES, SEMI_JOINS_OF_GROUPS, SIGNED_NUMBERS, TIMES_IN_MILLISECONDS,
        TIMES_OF_DATES, WHOLE_CONSTANTS,
    },
};

/// What plans are made with.
#[derive(Debug)]
pub struct Library {
    /// Syntax that stands for functions: `EXTRACT(hour FROM t)`, `a || b`, `map['key']`.
    pub syntax: Vec<Arc<dyn ExprPlanner>>,
    /// Functions that a statement may call, by name and alias.
    pub functions: Functions,
    /// Rules that make a plan valid: types, and forms that only PostgreSQL has.
    pub analyzer: Analyzer,
    /// Rules that make a plan cheaper whatever its tables are.
    pub optimizer: Optimizer,
    /// What our tables know better. It comes last: rules of the library do not expect the columns that are added.
    pub of_tables: Optimizer,
    /// Columns that nobody reads are left out.
    /// A pass of its own, for shared tables whose readers need less than before.
    pub columns: Optimizer,
    /// Rules for operators.
    pub physical: PhysicalOptimizer,
}

impl Library {
    /// The functions and rules that statements have.
    /// `options` are the settings of the session, which some functions take over, such as `now`.
    /// `by_tenant` is the last of the rules.
    pub fn new(options: &ConfigOptions, by_tenant: TenantByTenant) -> Self {
        let ours: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
            Arc::new(PERCENTILES_TOGETHER),
            Arc::new(SEMI_JOINS_OF_GROUPS),
            Arc::new(AGGREGATE_PUSHDOWN),
            Arc::new(DISTINCT_AS_GROUPS),
            Arc::new(COUNT_DISTINCT_CODES),
            // What is left of `count(DISTINCT x)` becomes groups by x, which may be added up early.
            Arc::new(SingleDistinctToGroupBy::new()),
            Arc::new(AGGREGATE_PUSHDOWN),
            Arc::new(DICTIONARY_GROUP_BY),
            Arc::new(DICTIONARY_JOINS),
            Arc::new(DICTIONARY_PARTITIONS),
            // Columns that are not needed any more.
            Arc::new(OptimizeProjections::new()),
        ];
        // Each `insert(0, …)` comes before those above it: the last one, DISTINCT ON, runs first. It makes windows, in which the others then find
        // their casts and frames.
        let mut analyzers = Analyzer::new().rules;
        analyzers.insert(0, Arc::new(PreserveTimestampCasts::Written));
        analyzers.insert(0, Arc::new(FRAMES));
        analyzers.insert(0, Arc::new(SIGNED_NUMBERS));
        analyzers.insert(0, Arc::new(TIMES_OF_DATES));
        analyzers.insert(0, Arc::new(NullsOfIn));
        analyzers.insert(0, Arc::new(PropertiesAsColumns));
        analyzers.insert(0, Arc::new(DistinctOnAsWindow));
        analyzers.push(Arc::new(SECONDS_OF_TIMES));
        analyzers.push(Arc::new(PreserveTimestampCasts::Added));
        analyzers.push(Arc::new(ADD_DURATIONS));
        analyzers.push(Arc::new(WHOLE_CONSTANTS));
        analyzers.push(Arc::new(CONSTANTS_RIGHT));
        analyzers.push(Arc::new(NULLS_OF_LISTS));
        analyzers.push(Arc::new(ROUNDED_CASTS));
        analyzers.push(Arc::new(DistinctSetsAsUnion));
        Self {
            syntax: vec![
                Arc::new(core::planner::CoreFunctionPlanner::default()),
                Arc::new(functions_nested::planner::NestedFunctionPlanner),
                Arc::new(functions_nested::planner::FieldAccessPlanner),
                Arc::new(Extract),
                Arc::new(unicode::planner::UnicodeFunctionPlanner),
                Arc::new(functions_aggregate::planner::AggregateFunctionPlanner),
                Arc::new(functions_window::planner::WindowFunctionPlanner),
            ],
            functions: Functions::new(options),
            analyzer: Analyzer::with_rules(analyzers),
            optimizer: rules_of_the_library(),
            of_tables: Optimizer::with_rules(ours),
            columns: Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]),
            physical: operator_rules(by_tenant),
        }
    }
}

/// What only some plans have, and some rules are about.
///
/// Most statements are one table with conditions and groups: fourteen rules have nothing to do there, each of which would walk through the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanFeature {
    /// `(SELECT …)` in an expression, or `LATERAL`.
    Subquery,
    /// Rules make joins of subqueries.
    Join,
    /// `UNION` and `UNION ALL`.
    Union,
    /// Rules replace `DISTINCT` by groups.
    Distinct,
}

/// Rules that do nothing in plans without a feature. Each walks through the whole plan to find that out, once or several times.
///
/// By name, so that a rule of the library that gets another name is run always: a test sees that each of these is the name of a rule.
const RULES_BY_FEATURE: [(&str, PlanFeature); 14] = [
    ("aggregate_below_joins", PlanFeature::Join),
    ("rewrite_set_comparison", PlanFeature::Subquery),
    ("decorrelate_predicate_subquery", PlanFeature::Subquery),
    ("scalar_subquery_to_join", PlanFeature::Subquery),
    ("decorrelate_lateral_join", PlanFeature::Subquery),
    ("eliminate_join", PlanFeature::Join),
    ("extract_equijoin_predicate", PlanFeature::Join),
    ("eliminate_cross_join", PlanFeature::Join),
    ("filter_null_join_keys", PlanFeature::Join),
    ("eliminate_outer_join", PlanFeature::Join),
    ("semi_joins_of_groups", PlanFeature::Join),
    ("join_by_numbers", PlanFeature::Join),
    ("optimize_unions", PlanFeature::Union),
    ("replace_distinct_aggregate", PlanFeature::Distinct),
];

/// Those of some rules that may have something to do in a plan.
///
/// Of the library's optimizer twelve are left out for `SELECT 1`, and for a plan with a subquery only `optimize_unions`.
///
/// Errors: none that is expected; what the library says.
pub fn rules_for(rules: &Optimizer, plan: &LogicalPlan) -> Result<Optimizer> {
    let mut features = Vec::new();
    plan.apply_with_subqueries(|node| {
        features.extend(match node {
            // `LATERAL` joins hold one, too.
            LogicalPlan::Subquery(_) => Some(PlanFeature::Subquery),
            LogicalPlan::Join(_) => Some(PlanFeature::Join),
            LogicalPlan::Union(_) => Some(PlanFeature::Union),
            LogicalPlan::Distinct(_) => Some(PlanFeature::Distinct),
            _ => None,
        });
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Rules that run before make joins and groups of subqueries, so the rules for these are needed as well.
    if features.contains(&PlanFeature::Subquery) {
        features.extend([PlanFeature::Join, PlanFeature::Distinct]);
    }
    let is_needed = |rule: &Arc<dyn OptimizerRule + Send + Sync>| {
        let feature = RULES_BY_FEATURE.iter().find(|(name, _)| *name == rule.name());
        feature.is_none_or(|(_, feature)| features.contains(feature))
    };
    let needed = rules.rules.iter().filter(|rule| is_needed(rule)).cloned();
    Ok(Optimizer::with_rules(needed.collect()))
}

/// Rules of the library that it does without: two move parts of maps towards tables, but properties are columns already; one
/// makes groups of what is counted once, which comes behind ours.
const LEFT_OUT: [&str; 3] = [
    "extract_leaf_expressions",
    "push_down_leaf_projections",
    "single_distinct_aggregation_to_group_by",
];

/// The library's rule for what stands twice, without what it does to orders: it also leaves out keys that others determine, and takes a key of one side of a
/// join for one of the groups above it.
///
/// ```text
/// FROM (SELECT DISTINCT day …) d JOIN events e ON … GROUP BY d.day, e.plan ORDER BY d.day, e.plan      was ordered by the day alone
/// ```
#[derive(Debug)]
struct KeepOrders(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for KeepOrders {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(_) => Ok(Transformed::no(plan)),
            plan => self.0.rewrite(plan, config),
        }
    }
}

/// The rules of the library, and ours: before the one that makes one list of two, when constants are computed, before conditions are moved to
/// tables, and at the end.
fn rules_of_the_library() -> Optimizer {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !LEFT_OUT.contains(&rule.name()));
    for rule in rules.iter_mut().filter(|rule| rule.name() == "eliminate_duplicated_expr") {
        *rule = Arc::new(KeepOrders(Arc::clone(rule)));
    }
    let merging = rules.iter().position(|rule| rule.name() == "simplify_expressions").unwrap_or(0);
    rules.insert(merging, Arc::new(NULLS_OF_LISTS));
    // When constants are computed.
    let computed = rules.iter().position(|rule| rule.name() == "simplify_expressions").unwrap_or(0);
    rules.insert(computed + 1, Arc::new(TIMES_IN_MILLISECONDS));
    let moving = rules.iter().position(|rule| rule.name() == "push_down_filter").unwrap_or(0);
    rules.insert(moving, Arc::new(PROPAGATE_VALUES));
    rules.push(Arc::new(AGGREGATE_BELOW_JOINS));
    Optimizer::with_rules(rules)
}

/// Rules for operators: those of the library, ours before each time that filters are pushed down, the first time behind the one that swaps
/// inputs of joins, ours around the last time, when operators learn what they push down, and ours at the end.
///
/// One of the library's is left out: it takes a column of nulls for one with one value, and counts that.
fn operator_rules(by_tenant: TenantByTenant) -> PhysicalOptimizer {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| rule.name() != "aggregate_statistics");
    let is_pushdown = |rule: &Arc<dyn PhysicalOptimizerRule + Send + Sync>| {
        rule.name().to_lowercase().starts_with("filterpushdown")
    };
    // The last time, filters of operators that learn are pushed down.
    if let Some(last) = rules.iter().rposition(is_pushdown) {
        rules.insert(last + 1, Arc::new(DROP_UNUSED_BOUNDS));
        rules.insert(last, Arc::new(LEARN_JOIN_BOUNDS));
    }
    // From the last on, so that what is inserted moves none that is still to come.
    for at in (0..rules.len()).rev() {
        if rules.get(at).is_some_and(is_pushdown) {
            rules.insert(at, Arc::new(KEEP_NAMES_APART));
        }
    }
    // When nothing is pushed down any more: conditions of the scan come before.
    rules.push(Arc::new(READ_FIRST_ROWS));
    rules.push(Arc::new(by_tenant));
    PhysicalOptimizer::with_rules(rules)
}

/// Functions by all their names.
/// `substr` and `substring` are two entries of the same function.
#[derive(Debug)]
pub struct Functions {
    /// Of one row: `lower`, `date_trunc`, `coalesce`.
    pub scalars: HashMap<String, Arc<ScalarUDF>>,
    /// Of many rows: `count`, `percentile_cont`, and two for states of the rollup tables, `approx_distinct_merge` and `approx_percentile_merge`.
    pub aggregates: HashMap<String, Arc<AggregateUDF>>,
    /// Of the rows around a row: `rank`, `lag`.
    pub windows: HashMap<String, Arc<WindowUDF>>,
}

impl Functions {
    fn new(options: &ConfigOptions) -> Self {
        let scalars = functions::scalars().into_iter().map(|function| {
            // `now` has the time zone of the session.
            function.inner().with_updated_config(options).map_or(function, Arc::new)
        });
        let states = aggregates().into_iter().map(Arc::new);
        Self {
            scalars: by_name(scalars, |function| (function.name(), function.aliases())),
            aggregates: by_name(functions::aggregates().into_iter().chain(states), |function| {
                (function.name(), function.aliases())
            }),
            windows: by_name(functions::windows(), |function| {
                (function.name(), function.aliases())
            }),
        }
    }
}

/// A map with an entry for each name and each alias; of two functions with the same name the later one counts.
fn by_name<T>(
    functions: impl IntoIterator<Item = Arc<T>>,
    names: impl Fn(&T) -> (&str, &[String]),
) -> HashMap<String, Arc<T>> {
    let mut all = HashMap::new();
    for function in functions {
        let (name, aliases) = names(&function);
        for alias in aliases {
            all.insert(alias.clone(), Arc::clone(&function));
        }
        all.insert(name.to_owned(), Arc::clone(&function));
    }
    all
}

/// As rules of the optimizer look for functions.
impl FunctionRegistry for Functions {
    fn udfs(&self) -> HashSet<String> {
        self.scalars.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn udafs(&self) -> HashSet<String> {
        self.aggregates.keys().cloned().collect()
    }

    fn udwfs(&self) -> HashSet<String> {
        self.windows.keys().cloned().collect()
    }

    fn udf(&self, name: &str) -> Result<Arc<ScalarUDF>> {
        found(&self.scalars, name)
    }

    fn higher_order_function(&self, name: &str) -> Result<Arc<HigherOrderUDF>> {
        found(&HashMap::new(), name)
    }

    fn udaf(&self, name: &str) -> Result<Arc<AggregateUDF>> {
        found(&self.aggregates, name)
    }

    fn udwf(&self, name: &str) -> Result<Arc<WindowUDF>> {
        found(&self.windows, name)
    }

    fn expr_planners(&self) -> Vec<Arc<dyn ExprPlanner>> {
        Vec::new()
    }
}

/// A function by its name, or the error `there is no function …` of a rule that asked for one that is not offered.
fn found<T>(functions: &HashMap<String, Arc<T>>, name: &str) -> Result<Arc<T>> {
    functions.get(name).cloned().ok_or_else(|| plan_datafusion_err!("there is no function {name}"))
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{LogicalPlanBuilder, lit};

    use super::*;
    use crate::physical::TENANT_PARTITION_ROWS;

    #[test]
    fn rules_are_left_out_where_a_plan_lacks_what_they_are_about() {
        let library =
            Library::new(&ConfigOptions::default(), TenantByTenant::of(TENANT_PARTITION_ROWS));
        let names = |rules: &Optimizer| -> Vec<String> {
            rules.rules.iter().map(|rule| rule.name().to_owned()).collect()
        };
        let all = [names(&library.optimizer), names(&library.of_tables)].concat();
        // A rule that the library calls something else in another version would always be left in.
        for (name, _) in RULES_BY_FEATURE {
            assert!(all.iter().any(|rule| rule == name), "{name}");
        }
        let one = || LogicalPlanBuilder::values(vec![vec![lit(1)]]).unwrap();
        let left_out = |plan: LogicalPlanBuilder| {
            let plan = plan.build().unwrap();
            let left = names(&rules_for(&library.optimizer, &plan).unwrap());
            let gone = names(&library.optimizer).into_iter().filter(|name| !left.contains(name));
            gone.collect::<Vec<_>>()
        };
        assert_eq!(left_out(one()).len(), 12);
        let joined =
            one().cross_join(one().project([lit(1).alias("n")]).unwrap().build().unwrap()).unwrap();
        assert!(!left_out(joined).contains(&"eliminate_cross_join".to_owned()));
        let union = one().union(one().build().unwrap()).unwrap();
        assert!(!left_out(union).contains(&"optimize_unions".to_owned()));
        let distinct = one().distinct().unwrap();
        assert!(!left_out(distinct).contains(&"replace_distinct_aggregate".to_owned()));
        let subquery = Arc::new(one().build().unwrap());
        let scalar = one().filter(datafusion_expr::scalar_subquery(subquery).gt(lit(0))).unwrap();
        assert_eq!(left_out(scalar), ["optimize_unions"]);
    }
}
