//! Columns of dictionary codes beside columns of texts, from the table up through a plan.
//!
//! Of `SELECT tenant_id AS t FROM events WHERE …` it makes `SELECT tenant_id AS t, "number of tenant_id" FROM events WHERE …`.
//! Codes of one column are the same in all scans of a statement, so that columns of two inputs of a join can be compared by
//! them.
//!
//! From the scan up, asked for the numbers of `a.p` and `b.p` of a join of a subquery with itself:
//!
//! ```text
//! Projection: a.p, b.p
//!   Inner Join: a.user_id = b.user_id
//!     SubqueryAlias: a
//!       TableScan: shared 0 projection=[user_id, p]
//!     SubqueryAlias: b
//!       TableScan: shared 0 projection=[user_id, p]
//!
//! Projection: a.p, b.p, a.number of p, b.number of p AS number of p 2
//!   Inner Join: a.user_id = b.user_id
//!     SubqueryAlias: a
//!       TableScan: shared 0 projection=[user_id, p, number of p]
//!     SubqueryAlias: b
//!       TableScan: shared 0 projection=[user_id, p, number of p]
//! ```
//!
//! There are no numbers of `event_id`, of a computed text such as `lower(p)`, and of columns behind a `UNION`; behind a `GROUP BY` only where
//! the groups are by numbers already, which a projection above turns into texts: there the number is passed on as it is.

use std::{collections::BTreeMap, slice, sync::Arc};

use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, ExprSchema as _, JoinType, Result};
use datafusion_expr::{
    Expr, Filter, Join, LogicalPlan, Projection, SubqueryAlias, TableScan, Window,
};

use crate::tables::{Source, StatementDictionary, codes_of, scan_of};

/// A plan with columns of numbers, and what each stands for: one entry for each column that was asked for, in the same order, as
/// `number of tenant_id` with the dictionary of `tenant_id`.
pub type Numbered = (LogicalPlan, Vec<(Column, Arc<StatementDictionary>)>);

/// The number of each of some columns that have one, and what numbers stand for.
pub type NumbersOf<'a> = BTreeMap<&'a Column, (Column, Arc<StatementDictionary>)>;

/// The same plan with a column of numbers for each of these columns of texts that comes from a table, and which these are. Columns without
/// numbers are left out of the map, where [`numbered`] gives nothing at all.
///
/// Errors: none that is expected.
pub fn number_each<'a>(
    plan: &Arc<LogicalPlan>,
    columns: impl IntoIterator<Item = &'a Column>,
) -> Result<(Arc<LogicalPlan>, NumbersOf<'a>)> {
    let mut plan = Arc::clone(plan);
    let mut numbers = NumbersOf::new();
    for column in columns {
        if !numbers.contains_key(column)
            && let Some((with_number, found)) = numbered(&plan, slice::from_ref(column))?
        {
            plan = Arc::new(with_number);
            numbers.extend(found.into_iter().map(|number| (column, number)));
        }
    }
    Ok((plan, numbers))
}

/// Whether a column has texts; false for one that the schema lacks.
pub fn is_text(schema: &DFSchema, column: &Column) -> bool {
    let field = schema.field_from_column(column);
    field.is_ok_and(|field| *field.data_type() == DataType::Utf8View)
}

/// The column that an expression is, under whatever name: `tenant_id` of `tenant_id AS t`, nothing of `lower(tenant_id)`.
pub fn plain(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain(&alias.expr),
        _ => None,
    }
}

/// The same plan with a column of numbers for each of these columns of texts; nothing where one does not come from a
/// table. The columns that it had keep their names; those of numbers may stand between them.
///
/// Errors: none that is expected.
pub fn numbered(plan: &LogicalPlan, wanted: &[Column]) -> Result<Option<Numbered>> {
    match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan, wanted),
        LogicalPlan::Filter(filter) => {
            let Some((input, numbers)) = numbered(&filter.input, wanted)? else {
                return Ok(None);
            };
            let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
            Ok(Some((LogicalPlan::Filter(filter), numbers)))
        }
        LogicalPlan::SubqueryAlias(named) => of_alias(named, wanted),
        LogicalPlan::Projection(projection) => of_projection(projection, wanted),
        LogicalPlan::Join(join) => of_join(join, wanted),
        LogicalPlan::Window(window) => {
            let Some((input, numbers)) = numbered(&window.input, wanted)? else { return Ok(None) };
            let window = Window::try_new(window.window_expr.clone(), Arc::new(input))?;
            Ok(Some((LogicalPlan::Window(window), numbers)))
        }
        _ => Ok(None),
    }
}

/// Below an alias the columns have other qualifiers: `e.tenant_id` is `events.tenant_id` there, and `e.number of tenant_id` is made of
/// `events.number of tenant_id`.
fn of_alias(named: &SubqueryAlias, wanted: &[Column]) -> Result<Option<Numbered>> {
    let inner = |column: &Column| {
        let at = named.schema.index_of_column(column).ok()?;
        Some(Column::from(named.input.schema().qualified_field(at)))
    };
    let Some(inner) = wanted.iter().map(inner).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let Some((input, numbers)) = numbered(&named.input, &inner)? else { return Ok(None) };
    let indexes = numbers.iter().map(|(column, _)| input.schema().index_of_column(column));
    let indexes = indexes.collect::<Result<Vec<_>>>()?;
    let plan = SubqueryAlias::try_new(Arc::new(input), named.alias.clone())?;
    let numbers = indexes
        .into_iter()
        .zip(numbers)
        .map(|(at, (_, codes))| (Column::from(plan.schema.qualified_field(at)), codes));
    let numbers = numbers.collect();
    Ok(Some((LogicalPlan::SubqueryAlias(plan), numbers)))
}

/// Projections pass numbers on: those of their input, and those of which they make texts.
fn of_projection(projection: &Projection, wanted: &[Column]) -> Result<Option<Numbered>> {
    // Texts that the projection makes of numbers have these; others come from below.
    let mut found: Vec<Option<(Column, Arc<StatementDictionary>)>> = Vec::new();
    let mut below = Vec::new();
    for column in wanted {
        let at = projection.schema.index_of_column(column).ok();
        let Some(expr) = at.and_then(|at| projection.expr.get(at)) else { return Ok(None) };
        let known = codes_of(expr);
        if known.is_none() {
            let Some(column) = plain(expr) else { return Ok(None) };
            below.push(column.clone());
        }
        found.push(known);
    }
    let (input, more) = if below.is_empty() {
        (Arc::clone(&projection.input), Vec::new())
    } else {
        match numbered(&projection.input, &below)? {
            Some((input, numbers)) => (Arc::new(input), numbers),
            None => return Ok(None),
        }
    };
    // In the order that was asked for: known ones where they are known, the others as they come from below.
    let mut more = more.into_iter();
    let numbers = found.into_iter().filter_map(|known| known.or_else(|| more.next()));
    let mut exprs = projection.expr.clone();
    let numbers = numbers.map(|(column, codes)| (handed_on(&column, &mut exprs), codes)).collect();
    let plan = Projection::try_new(exprs, input)?;
    Ok(Some((LogicalPlan::Projection(plan), numbers)))
}

/// A column of numbers as one of a projection. Two of them, of both inputs of a join below, may have the same name, which would be one under an
/// alias.
fn handed_on(column: &Column, exprs: &mut Vec<Expr>) -> Column {
    let expr = Expr::Column(column.clone());
    let known = exprs.iter().find(|one| (*one).clone().unalias() == expr);
    if let Some(known) = known {
        let (relation, name) = known.qualified_name();
        return Column::new(relation, name);
    }
    let is_taken = |name: &str| exprs.iter().any(|one| one.qualified_name().1 == name);
    if !is_taken(&column.name) {
        exprs.push(expr);
        return column.clone();
    }
    let names = (2..).map(|number| format!("{} {number}", column.name));
    let name = names.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
    exprs.push(expr.alias(&name));
    Column::new_unqualified(name)
}

/// A join hands on the columns of both inputs, or those of one; through a mark join no numbers are passed.
fn of_join(join: &Join, wanted: &[Column]) -> Result<Option<Numbered>> {
    let (has_left, has_right) = match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => (true, true),
        JoinType::LeftSemi | JoinType::LeftAnti => (true, false),
        JoinType::RightSemi | JoinType::RightAnti => (false, true),
        JoinType::LeftMark | JoinType::RightMark => return Ok(None),
    };
    let is_left = |column: &Column| has_left && join.left.schema().has_column(column);
    let is_right = |column: &Column| has_right && join.right.schema().has_column(column);
    let of_left: Vec<Column> = wanted.iter().filter(|one| is_left(one)).cloned().collect();
    let of_right: Vec<Column> =
        wanted.iter().filter(|one| !is_left(one) && is_right(one)).cloned().collect();
    if of_left.len() + of_right.len() < wanted.len() {
        return Ok(None);
    }
    let side = |input: &Arc<LogicalPlan>, wanted: &[Column]| -> Result<Option<_>> {
        if wanted.is_empty() {
            return Ok(Some((Arc::clone(input), Vec::new())));
        }
        Ok(numbered(input, wanted)?.map(|(input, numbers)| (Arc::new(input), numbers)))
    };
    let Some((left, left_numbers)) = side(&join.left, &of_left)? else { return Ok(None) };
    let Some((right, right_numbers)) = side(&join.right, &of_right)? else { return Ok(None) };
    let (mut left_numbers, mut right_numbers) =
        (left_numbers.into_iter(), right_numbers.into_iter());
    let numbers = wanted.iter().filter_map(|column| match is_left(column) {
        true => left_numbers.next(),
        false => right_numbers.next(),
    });
    let numbers = numbers.collect();
    Ok(with_inputs(join, left, right, join.on.clone()).map(|plan| (plan, numbers)))
}

/// The same join of other inputs by other keys. Nothing where their columns have the same names.
///
/// Filter, kind and what null keys mean stay; so columns that the filter names have to be in the inputs still.
pub fn with_inputs(
    join: &Join,
    left: Arc<LogicalPlan>,
    right: Arc<LogicalPlan>,
    on: Vec<(Expr, Expr)>,
) -> Option<LogicalPlan> {
    let joined = Join::try_new(
        left,
        right,
        on,
        join.filter.clone(),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    );
    joined.ok().map(LogicalPlan::Join)
}

/// A scan reads numbers of columns of its table. Nothing where the table has none of one, as of `event_id`.
fn of_scan(scan: &TableScan, wanted: &[Column]) -> Result<Option<Numbered>> {
    let Some(Source(table)) = scan.source.downcast_ref() else { return Ok(None) };
    let names: Vec<&str> = wanted.iter().map(|column| column.name.as_str()).collect();
    let Some((wider, fields)) = table.with_numbers(&names)? else {
        return Ok(None);
    };
    let schema = wider.schema();
    // What was read, found by name: there may be more columns before it now.
    let mut columns = Vec::new();
    for field in scan.projected_schema.fields() {
        columns.push(schema.index_of(field.name())?);
    }
    for (name, _) in &fields {
        columns.push(schema.index_of(name)?);
    }
    let plan = scan_of(scan, wider, columns)?;
    let name = scan.table_name.clone();
    let column = |(field, codes)| (Column::new(Some(name.clone()), field), codes);
    let numbers = fields.into_iter().map(column).collect();
    Ok(Some((plan, numbers)))
}
