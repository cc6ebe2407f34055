//! A number for each row: what an expression over some columns of the row comes to. Conditions of aggregates are such
//! expressions, and so are numbers that depend on conditions.
//!
//! ```text
//! count(*) FILTER (WHERE event_name = 'call' AND (timestamp >= … OR numeric_props['ms'] > 500))
//!
//! And(Text(event_name = 'call'), Or(Time(timestamp >= …), Numbers(ms > 500)))
//! ```
//!
//! An expression of one text is computed for each entry of a dictionary, one of the time for each bucket of time; only one of numbers
//! is computed for each row. True is 1, false is 0, and null is NaN.
//!
//! ```text
//! row   event   time       ms     Text   Time   Numbers   Or    And
//! 0     call    earlier    700    1      0      1         1     1
//! 1     login   earlier    700    0      0      1         1     0
//! 2     call    earlier    -      1      0      NaN       NaN   NaN      the row does not count: only 1 does
//! 3     call    later      -      1      1      NaN       1     1
//! ```
//!
//! Not so computed: `length(plan) > ms` (two kinds of columns in one comparison), `1 / ms > 2` (may fail for rows that are left out).

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions},
    compute::cast,
    datatypes::{DataType, Schema, SchemaRef},
};
use datafusion_common::{
    DFSchema, DataFusionError, Result, ScalarValue,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{
    Expr, execution_props::ExecutionProps, physical_planning_context::PhysicalPlanningContext,
};
use datafusion_physical_expr::create_physical_expr;
use datafusion_physical_plan::PhysicalExpr;
use inlay_engine::rows::{Column, TimeBuckets, Values};

use super::time_values::{MorselRows, TimeValues};
use crate::tables::{Property, TextValues, broken, doubles, number_array};

/// What an expression comes to in each row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowValues {
    /// The same in each.
    Constant(f64),
    /// An expression of one text.
    Text(Arc<TextValues>),
    /// An expression of the time.
    Time(Arc<TimeValues>),
    /// An expression of numeric properties.
    Numbers(Arc<NumberValues>),
    /// `NOT a`: 1 minus it, which leaves NaN as it is.
    Not(Box<Self>),
    /// `a AND b`: false where one is, even beside a null.
    And(Box<Self>, Box<Self>),
    /// `a OR b`: true where one is, even beside a null.
    Or(Box<Self>, Box<Self>),
    /// Conditions and values, and the value where no condition holds.
    Case(Vec<(Self, Self)>, Box<Self>),
}

impl RowValues {
    /// Of each row of a morsel, in their order.
    ///
    /// Errors: damage of a segment.
    pub fn read(&self, rows: MorselRows<'_>) -> Result<Vec<f64>> {
        match self {
            Self::Constant(number) => Ok(vec![*number; rows.morsel.rows()]),
            Self::Text(values) => values.read(rows.source, rows.morsel),
            Self::Time(values) => Ok(values.read(rows)),
            Self::Numbers(values) => values.read(rows),
            Self::Not(inner) => {
                let mut values = inner.read(rows)?;
                values.iter_mut().for_each(|value| *value = 1.0 - *value);
                Ok(values)
            }
            Self::And(left, right) => Ok(combine(left.read(rows)?, &right.read(rows)?, and)),
            Self::Or(left, right) => Ok(combine(left.read(rows)?, &right.read(rows)?, or)),
            Self::Case(branches, otherwise) => {
                let mut values = otherwise.read(rows)?;
                // An earlier condition has precedence over a later one.
                for (condition, then) in branches.iter().rev() {
                    let (passes, then) = (condition.read(rows)?, then.read(rows)?);
                    let there = values.iter_mut().zip(passes).zip(then);
                    there
                        .filter(|((_, passes), _)| *passes == 1.0)
                        .for_each(|((value, _), then)| *value = then);
                }
                Ok(values)
            }
        }
    }

    /// Makes buckets as fine as they need to be for it: `timestamp >= TIMESTAMP '2026-11-06'` adds one boundary.
    pub fn refine(&self, buckets: &mut TimeBuckets) {
        match self {
            Self::Constant(_) | Self::Text(_) | Self::Numbers(_) => {}
            Self::Time(values) => buckets.merge(values.buckets()),
            Self::Not(inner) => inner.refine(buckets),
            Self::And(left, right) | Self::Or(left, right) => {
                left.refine(buckets);
                right.refine(buckets);
            }
            Self::Case(branches, otherwise) => {
                for (condition, then) in branches {
                    condition.refine(buckets);
                    then.refine(buckets);
                }
                otherwise.refine(buckets);
            }
        }
    }
}

/// Two lists of truth values as one.
fn combine(mut values: Vec<f64>, others: &[f64], both: fn(f64, f64) -> f64) -> Vec<f64> {
    values.iter_mut().zip(others).for_each(|(value, other)| *value = both(*value, *other));
    values
}

/// Both of two truth values: false where one is, whatever the other is.
fn and(one: f64, other: f64) -> f64 {
    if one == 0.0 || other == 0.0 { 0.0 } else { one * other }
}

/// Either of two truth values: true where one is, whatever the other is.
fn or(one: f64, other: f64) -> f64 {
    1.0 - and(1.0 - one, 1.0 - other)
}

/// What an expression of numeric properties comes to, computed for each row.
#[derive(Debug)]
pub struct NumberValues {
    /// The properties that are read: `ms`.
    properties: Vec<String>,
    /// As it stands in the statement; two of the same expression are equal.
    expr: Expr,
    /// The expression over a batch with a column for each property.
    evaluated: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl PartialEq for NumberValues {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

impl NumberValues {
    /// Of an expression of these properties that is true, false, one of a few written numbers or null, and cannot fail for any numbers.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn new(properties: &[&Property], expr: Expr) -> Result<Self> {
        let fields = properties.iter().map(|property| property.field());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (props, subqueries) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let of = DFSchema::try_from(Arc::clone(&schema))?;
        // Constants that were computed may be zeros with a sign, which kernels tell from those of rows.
        let compared = expr.clone().transform(|part| match part {
            Expr::Literal(ScalarValue::Float64(Some(0.0)), metadata) => {
                Ok(Transformed::yes(Expr::Literal(ScalarValue::Float64(Some(0.0)), metadata)))
            }
            part => Ok(Transformed::no(part)),
        })?;
        let evaluated = create_physical_expr(&compared.data, &of, &props, &subqueries)?;
        let properties = properties.iter().map(|property| property.name.clone()).collect();
        Ok(Self { properties, expr, evaluated, schema })
    }

    fn read(&self, MorselRows { source, morsel, .. }: MorselRows<'_>) -> Result<Vec<f64>> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.properties.len());
        for name in &self.properties {
            let column = Column::Number(name.clone());
            let Values::Numbers(numbers) = source.read(morsel, &column).map_err(broken)? else {
                return Err(DataFusionError::Internal("a number has another type".to_owned()));
            };
            columns.push(Arc::new(number_array(numbers)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(morsel.rows()));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let values = self.evaluated.evaluate(&batch)?.into_array(morsel.rows())?;
        Ok(doubles(&cast(&values, &DataType::Float64)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_has_three_values() {
        let (no, yes, unknown) = (0.0, 1.0, f64::NAN);
        let is =
            |found: f64, expected: f64| found == expected || found.is_nan() && expected.is_nan();
        for (one, other, both, either) in [
            (no, no, no, no),
            (no, yes, no, yes),
            (yes, yes, yes, yes),
            (no, unknown, no, unknown),
            (yes, unknown, unknown, yes),
            (unknown, unknown, unknown, unknown),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert!(is(and(one, other), both), "{one} and {other}");
                assert!(is(or(one, other), either), "{one} or {other}");
            }
        }
    }
}
