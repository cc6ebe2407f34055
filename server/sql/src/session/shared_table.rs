//! A subquery that several places of a statement read, as a table.
//!
//! Of `WITH spend AS (SELECT user_id, sum(…) AS cost, count(*) AS n …)` only the columns are computed that some place reads. Places that
//! group or join by `user_id` get its numbers, as from a table of events: then the subquery hands on numbers, and texts only where somebody reads them.
//! It is planned in steps (`planning.rs`): columns are left out of readers before they are left out of the tables that these read, and numbers are added to
//! tables before their readers ask for them.
//!
//! Readers know a column by its number in the table's schema, which never changes; where it stands in the plan does. Of `spend`, if one use reads `cost`
//! and another one joins by `user_id`:
//!
//! ```text
//!                          user_id   cost   n      number of user_id
//! at first                 0         1      2
//! n is read by none        0         1      -
//! numbers are asked for    0         1      -      2
//! user_id is read by none  -         0      -      1                    SELECT cost, "number of user_id" …
//! ```
//!
//! A condition above a scan of such a table stays there (`pushdown` is `Unsupported`): rows that one reader does not need another one may.

use std::{collections::HashMap, fmt, sync::Arc};

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::{Column, Result, ScalarValue, internal_err, tree_node::TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan, Projection, TableProviderFilterPushDown};
use datafusion_physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use crate::{
    physical::SharedPlan,
    rules::{is_of_groups, known_values, numbered, value_count},
    tables::{
        NumberColumn, Provider, ScanRequest, Source, StatementDictionary, WithNumbers,
        number_column,
    },
};

/// A subquery that is computed once. Copies are the same table.
#[derive(Clone)]
pub struct SharedTable {
    /// Its place among those of a statement.
    /// From 0 on, which makes its name: `shared 0`.
    at: usize,
    state: Arc<Mutex<State>>,
}

struct State {
    /// What the table is made of, as far as it has been improved.
    plan: Arc<LogicalPlan>,
    /// One for each field of `schema`.
    columns: Vec<SharedColumn>,
    /// As readers see it: it only grows, by columns of numbers at its end.
    schema: SchemaRef,
    /// What computes it, once all is known that is read of it.
    operators: Option<SharedPlan>,
}

/// A column as readers know it.
struct SharedColumn {
    /// Its place in the plan, which changes as columns are left out and added.
    /// `None` once nothing reads it.
    place: Option<usize>,
    /// Whether a plan has been seen to read it since columns were dropped or marks were removed.
    is_read: bool,
    /// What it can be, once somebody has asked: tables of groups do not tell.
    known_values: Option<Option<Vec<ScalarValue>>>,
    /// For a column of numbers: that of the texts, and what numbers stand for.
    numbers: Option<(usize, Arc<StatementDictionary>)>,
}

impl SharedColumn {
    fn new(place: usize, numbers: Option<(usize, Arc<StatementDictionary>)>) -> Self {
        Self { place: Some(place), is_read: false, known_values: None, numbers }
    }
}

impl SharedTable {
    /// The table of a subquery, with all of its columns.
    /// None of them is marked as read, and there are no operators yet.
    pub fn new(at: usize, plan: LogicalPlan) -> Self {
        let schema = Arc::clone(plan.schema().inner());
        let column = |place| SharedColumn::new(place, None);
        let columns = (0..schema.fields().len()).map(column).collect();
        let state = State { plan: Arc::new(plan), columns, schema, operators: None };
        Self { at, state: Arc::new(Mutex::new(state)) }
    }

    /// The name of its scans.
    pub fn name(&self) -> String {
        format!("shared {}", self.at)
    }

    /// Puts another plan with the same columns in the place of its own.
    /// The plan is not locked while it changes: rules may look at the table meanwhile.
    ///
    /// Errors: as of `change`.
    pub fn change(&self, change: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>) -> Result<()> {
        let plan = Arc::clone(&self.state.lock().plan);
        let plan = Arc::new(change(Arc::unwrap_or_clone(plan))?);
        self.state.lock().plan = plan;
        Ok(())
    }

    /// Drops columns that no plan has been marked to read since the last time.
    ///
    /// The plan gets a projection of the others, in the order of the schema. The marks are removed, too: the next pass sees what is read then.
    ///
    /// Errors: none that is expected.
    pub fn drop_unread_columns(&self) -> Result<()> {
        let mut state = self.state.lock();
        let State { plan, columns, .. } = &mut *state;
        let all = plan.schema().columns();
        let mut exprs = Vec::new();
        // The numbers of a text that has two names are one column.
        let mut moved: HashMap<usize, usize> = HashMap::new();
        for column in columns {
            let is_read = std::mem::take(&mut column.is_read);
            column.place = column.place.filter(|_| is_read).map(|place| {
                *moved.entry(place).or_insert_with(|| {
                    exprs.push(Expr::Column(Column::clone(&all[place])));
                    exprs.len() - 1
                })
            });
        }
        // Rows are counted by any column.
        if exprs.is_empty() {
            exprs.extend(all.into_iter().next().map(Expr::Column));
        }
        let narrower = Projection::try_new(exprs, Arc::clone(plan))?;
        *plan = Arc::new(LogicalPlan::Projection(narrower));
        Ok(())
    }

    /// Forgets which columns are read.
    /// Numbers may have been added since, and strings may not be read any more.
    pub fn unmark(&self) {
        self.state.lock().columns.iter_mut().for_each(|column| column.is_read = false);
    }

    /// Has it computed by the operators of its plan.
    /// Once, whatever number of readers there are; from then on `scan` works.
    ///
    /// Errors: as of `operators`.
    pub fn compute_by(
        &self,
        operators: impl FnOnce(LogicalPlan) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.state.lock().plan);
        let operators = SharedPlan::new(operators(Arc::unwrap_or_clone(plan))?);
        self.state.lock().operators = Some(operators);
        Ok(())
    }
}

/// Marks the columns of shared tables that a plan reads.
///
/// Errors: none.
pub fn mark_columns_read(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<Source>()
            && let Some(table) = source.table::<SharedTable>()
        {
            let mut state = table.state.lock();
            match &scan.projection {
                Some(columns) => columns.iter().for_each(|at| state.columns[*at].is_read = true),
                None => state.columns.iter_mut().for_each(|column| column.is_read = true),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

impl State {
    /// The number column of a column of texts, which is added to the plan if it is not there yet.
    ///
    /// `None` where the column is no string, was dropped, or comes from no table of events: a string that is computed has no number.
    fn number_of(&mut self, name: &str) -> Result<Option<NumberColumn>> {
        let Some((at, field)) = self.schema.column_with_name(name) else { return Ok(None) };
        if *field.data_type() != DataType::Utf8View {
            return Ok(None);
        }
        let known = self.columns.iter().enumerate().find_map(|(number, column)| {
            let (of, codes) = column.numbers.as_ref()?;
            (*of == at).then(|| (self.schema.field(number).name().clone(), Arc::clone(codes)))
        });
        if known.is_some() {
            return Ok(known);
        }
        let Some(place) = self.columns[at].place else { return Ok(None) };
        let before = self.plan.schema().columns();
        let Some((plan, mut numbers)) = numbered(&self.plan, &[before[place].clone()])? else {
            return Ok(None);
        };
        let Some((number, codes)) = numbers.pop() else { return Ok(None) };
        let place_of = |column: &Column| plan.schema().index_of_column(column);
        // The plan with numbers may have its columns elsewhere: each is found again by its name.
        for column in &mut self.columns {
            if let Some(place) = &mut column.place {
                *place = place_of(&before[*place])?;
            }
        }
        let place = place_of(&number)?;
        let name = number_column(name);
        let field = plan.schema().field(place).as_ref().clone().with_name(&name);
        let fields = self.schema.fields().iter().cloned().chain([Arc::new(field)]);
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self.columns.push(SharedColumn::new(place, Some((at, Arc::clone(&codes)))));
        self.plan = Arc::new(plan);
        Ok(Some((name, codes)))
    }
}

impl fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTable").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Provider for SharedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.state.lock().schema)
    }

    fn pushdown(&self, _: &Expr) -> TableProviderFilterPushDown {
        TableProviderFilterPushDown::Unsupported
    }

    /// Values that the column has in all rows, by what the plan says, for example `['acme']` below `WHERE tenant_id = 'acme'`. Asked once for each column, and
    /// remembered.
    fn known_values(&self, column: &str) -> Option<Vec<ScalarValue>> {
        let mut state = self.state.lock();
        let State { plan, columns, schema, .. } = &mut *state;
        let column = columns.get_mut(schema.index_of(column).ok()?)?;
        let find =
            || known_values(plan, &Column::from(plan.schema().qualified_field(column.place?)));
        column.known_values.get_or_insert_with(find).clone()
    }

    fn value_count(&self, column: &str) -> Result<Option<usize>> {
        let state = self.state.lock();
        let at = state.schema.index_of(column).ok();
        let place = at.and_then(|at| state.columns.get(at)).and_then(|column| column.place);
        let Some(place) = place else { return Ok(None) };
        value_count(&state.plan, &Column::from(state.plan.schema().qualified_field(place)))
    }

    fn is_grouped(&self) -> bool {
        is_of_groups(&self.state.lock().plan)
    }

    fn with_numbers(&self, names: &[&str]) -> Result<Option<WithNumbers>> {
        let mut state = self.state.lock();
        let mut found = Vec::new();
        for name in names {
            let Some(number) = state.number_of(name)? else { return Ok(None) };
            found.push(number);
        }
        Ok(Some((Arc::new(self.clone()), found)))
    }

    /// The operator that reads some columns of what is computed once.
    ///
    /// Errors: an internal one before [`compute_by`](Self::compute_by), or for a column that was dropped.
    fn scan(&self, request: ScanRequest<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let state = self.state.lock();
        let place = |at: &usize| state.columns.get(*at).and_then(|column| column.place);
        let all: Vec<usize> = (0..state.columns.len()).collect();
        let columns = request.projection.unwrap_or(&all);
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        let names = columns.iter().map(|at| state.schema.field(*at).name());
        match (&state.operators, places) {
            (Some(operators), Some(places)) => Ok(operators.read(&places, names)),
            _ => internal_err!("a shared table without a plan"),
        }
    }
}
