//! Aggregates over rows as aggregates over partial groups, and what is made of these.
//!
//! ```text
//! avg(numeric_props['ms'])    sum("sum of measure 0"), sum("count of measure 0"); the first divided by the second
//! count(*)                    sum(rows), or zero where there is no group
//! count(DISTINCT user_id)     itself, over groups by user; sum(users), or zero, over groups in which users are counted
//! bool_or(ms > 3)             max("most of measure 0"), compared with 1
//! ```
//!
//! In a plan, `aggregates` are those of the inner node and `finish` is in the projection above:
//!
//! ```text
//! Projection: … part 0 / CAST(part 1 AS Float64) AS avg(events.numeric_props['ms'])
//!   Aggregate: groupBy=[[…]], aggr=[[sum(sum of measure 0) AS part 0, sum(count of measure 0) AS part 1]]
//! ```

use arrow::datatypes::DataType;
use datafusion_common::{Column, DataFusionError, Result};
use datafusion_expr::{Cast, Expr, lit, when};
use datafusion_functions_aggregate::expr_fn::{max, min, sum};

use super::measures::MeasureStat;

/// The aggregates over groups that an aggregate over rows becomes, and what is made of them.
pub struct PartialAggregates {
    /// Sums, least and most of something: `sum("sum of measure 0")`.
    pub aggregates: Vec<Expr>,
    /// What is made of their columns, one for each aggregate, in the same order.
    pub finish: Box<dyn FnOnce(Vec<Expr>) -> Result<Expr>>,
}

impl PartialAggregates {
    /// What one aggregate over groups comes to.
    pub fn one(aggregate: Expr) -> Self {
        Self { aggregates: vec![aggregate], finish: Box::new(first) }
    }

    /// The same, and something made of its result.
    pub fn then(self, more: impl FnOnce(Expr) -> Result<Expr> + 'static) -> Self {
        let Self { aggregates, finish } = self;
        Self { aggregates, finish: Box::new(|parts| more(finish(parts)?)) }
    }

    /// A count: of no groups it is zero, not nothing.
    pub fn count(aggregate: Expr) -> Self {
        let finish = |parts| {
            let sum = first(parts)?;
            // In this order it is known that it is never nothing, as a count is.
            when(sum.clone().is_not_null(), sum).otherwise(lit(0i64))
        };
        Self { aggregates: vec![aggregate], finish: Box::new(finish) }
    }
}

/// The first part, which is the only one.
fn first(parts: Vec<Expr>) -> Result<Expr> {
    let first = parts.into_iter().next();
    first.ok_or_else(|| DataFusionError::Internal("no part".to_owned()))
}

/// A column of groups.
pub fn of_scan(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// A measure of the groups that meet a condition.
pub struct Measured {
    /// Its index among the measures.
    pub measure: usize,
    /// What keys of a group have to be like, the same for all of its rows: `event_name = 'call'`.
    pub condition: Option<Expr>,
    /// Whether other groups count as zero, rather than not at all.
    pub is_else_zero: bool,
}

impl Measured {
    /// A column of it where the condition holds: `CASE WHEN event_name = 'call' THEN "sum of measure 0" END`.
    ///
    /// Errors: none that is expected.
    pub fn part(&self, part: MeasureStat) -> Result<Expr> {
        let column = of_scan(part.column(self.measure));
        match &self.condition {
            Some(condition) if self.is_else_zero => {
                when(condition.clone(), column).otherwise(lit(0.0))
            }
            Some(condition) => when(condition.clone(), column).end(),
            None => Ok(column),
        }
    }

    /// An aggregate of it, by its name; nothing where it has none of this name.
    ///
    /// Errors: none that is expected.
    pub fn aggregate(&self, name: &str) -> Result<Option<PartialAggregates>> {
        if self.is_else_zero && name != "sum" {
            return Ok(None);
        }
        // Times are neither added nor averaged: the library has refused it.
        Ok(Some(match name {
            "count" => PartialAggregates::count(sum(self.part(MeasureStat::Count)?)),
            "sum" => PartialAggregates::one(sum(self.part(MeasureStat::Sum)?)),
            "min" => PartialAggregates::one(min(self.part(MeasureStat::Least)?)),
            "max" => PartialAggregates::one(max(self.part(MeasureStat::Most)?)),
            "avg" => PartialAggregates {
                aggregates: vec![
                    sum(self.part(MeasureStat::Sum)?),
                    sum(self.part(MeasureStat::Count)?),
                ],
                finish: Box::new(|parts| {
                    let mut parts = parts.into_iter();
                    let (sum, count) = (parts.next(), parts.next());
                    let both = sum.zip(count).map(|(sum, count)| {
                        sum / Expr::Cast(Cast::new(Box::new(count), DataType::Float64))
                    });
                    first(both.into_iter().collect())
                }),
            },
            _ => return Ok(None),
        }))
    }
}
