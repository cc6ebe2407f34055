//! `regr_slope(y, x) … GROUP BY z` and its like for many groups at once.
//!
//! ```text
//! SELECT plan, regr_slope(ms, tokens), covar_samp(ms, tokens) FROM … GROUP BY plan
//!
//! plan   rows  mean of tokens  mean of ms  sums of squares and products of what is off the means
//! free   3     20              7           200, 8, 40          slope 40 / 200 = 0.2, sample covariance 40 / 2 = 20
//! ```
//!
//! The library has an object for each group, to which it hands slices of rows; with two hundred groups most of the time goes into these slices.
//! States have the library's columns, and windows, groups of nothing and `DISTINCT` stay with it. Means and sums are carried on row by row (Welford), as there.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray as _, BooleanArray, Float64Array, UInt64Array},
    datatypes::{DataType, FieldRef, Float64Type, UInt64Type},
};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
    function::{AccumulatorArgs, StateFieldsArgs},
};

/// A function of the library over pairs of numbers, with groups.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OverPairs {
    library: AggregateUDF,
    statistic: Statistic,
}

/// The same function with groups; nothing for one that is not over pairs of numbers.
pub fn with_groups(library: &AggregateUDF) -> Option<AggregateUDF> {
    let statistic = Statistic::named(library.name())?;
    Some(AggregateUDF::from(OverPairs { library: library.clone(), statistic }))
}

/// What is asked of the pairs of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Statistic {
    Slope,
    Intercept,
    Count,
    R2,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
    CovarianceOfSample,
    Covariance,
}

impl Statistic {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_count" => Self::Count,
            "regr_r2" => Self::R2,
            "regr_avgx" => Self::MeanX,
            "regr_avgy" => Self::MeanY,
            "regr_sxx" => Self::SquaresX,
            "regr_syy" => Self::SquaresY,
            "regr_sxy" => Self::Products,
            "covar_samp" => Self::CovarianceOfSample,
            "covar_pop" => Self::Covariance,
            _ => return None,
        })
    }

    /// Of a regression the first argument depends on the second, and states have the sums of squares.
    fn is_regression(self) -> bool {
        !matches!(self, Self::Covariance | Self::CovarianceOfSample)
    }

    /// Its value for a group; nothing where there are too few pairs, or they do not differ.
    fn of(self, moments: &Moments) -> Option<f64> {
        let Moments { count, mean_x, mean_y, squares_x, squares_y, products } = *moments;
        let differ = count > 1 && squares_x != 0.0;
        let any = count > 0;
        match self {
            Self::Slope => differ.then(|| products / squares_x),
            Self::Intercept => differ.then(|| mean_y - products / squares_x * mean_x),
            Self::R2 => {
                (differ && squares_y != 0.0).then(|| products / squares_x * (products / squares_y))
            }
            Self::Count => Some(count as f64),
            Self::MeanX => any.then_some(mean_x),
            Self::MeanY => any.then_some(mean_y),
            Self::SquaresX => any.then_some(squares_x),
            Self::SquaresY => any.then_some(squares_y),
            Self::Products => any.then_some(products),
            Self::CovarianceOfSample => (count > 1).then(|| products / (count - 1) as f64),
            Self::Covariance => any.then(|| products / count as f64),
        }
    }
}

impl AggregateUDFImpl for OverPairs {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn aliases(&self) -> &[String] {
        self.library.aliases()
    }

    fn signature(&self) -> &Signature {
        self.library.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.library.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.library.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.library.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(MomentsOfGroups { statistic: self.statistic, groups: Vec::new() }))
    }

    fn default_value(&self, kind: &DataType) -> Result<ScalarValue> {
        self.library.default_value(kind)
    }
}

/// Pairs of numbers in sum: how many, their means, and what is off the means.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    squares_x: f64,
    squares_y: f64,
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let part = 1.0 / self.count as f64;
        let (off_x, off_y) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += off_x * part;
        self.mean_y += off_y * part;
        let off_new_mean = y - self.mean_y;
        self.squares_x += off_x * (x - self.mean_x);
        self.squares_y += off_y * off_new_mean;
        self.products += off_x * off_new_mean;
    }

    /// Adds the pairs of another group.
    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let (here, there) = (self.count as f64, other.count as f64);
        let (off_x, off_y) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let (part, both) = (there / count as f64, here * there / count as f64);
        self.squares_x += other.squares_x + off_x * off_x * both;
        self.squares_y += other.squares_y + off_y * off_y * both;
        self.products += other.products + off_x * off_y * both;
        self.mean_x += off_x * part;
        self.mean_y += off_y * part;
        self.count = count;
    }
}

/// The pairs of each group.
#[derive(Debug)]
struct MomentsOfGroups {
    statistic: Statistic,
    groups: Vec<Moments>,
}

impl MomentsOfGroups {
    /// The columns of x and y: `regr_slope(y, x)` names them the other way round, `covar_samp(x, y)` does not.
    fn pair<'a>(&self, values: &'a [ArrayRef]) -> Result<(&'a Float64Array, &'a Float64Array)> {
        let column = |at: usize| values.get(at).and_then(|column| column.as_primitive_opt());
        let (x, y) = if self.statistic.is_regression() { (1, 0) } else { (0, 1) };
        match column(x).zip(column(y)) {
            Some(pair) => Ok(pair),
            None => internal_err!("{:?} of what are no numbers", self.statistic),
        }
    }

    /// The columns of a state, as the library has them: covariances have no squares.
    fn columns(&self, groups: &[Moments]) -> Vec<ArrayRef> {
        let numbers = |of: fn(&Moments) -> f64| -> ArrayRef {
            Arc::new(groups.iter().map(|group| Some(of(group))).collect::<Float64Array>())
        };
        let counts: UInt64Array = groups.iter().map(|group| Some(group.count)).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(counts)];
        columns.extend([numbers(|group| group.mean_x), numbers(|group| group.mean_y)]);
        if self.statistic.is_regression() {
            columns.extend([numbers(|group| group.squares_x), numbers(|group| group.squares_y)]);
        }
        columns.push(numbers(|group| group.products));
        columns
    }
}

impl GroupsAccumulator for MomentsOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.groups.resize(groups, Moments::default());
        let (x, y) = self.pair(values)?;
        let pairs = x.values().iter().zip(y.values()).zip(group_indices);
        if filter.is_none() && x.null_count() == 0 && y.null_count() == 0 {
            pairs.for_each(|((x, y), group)| self.groups[*group].add(*x, *y));
            return Ok(());
        }
        for (row, ((x_value, y_value), group)) in pairs.enumerate() {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if passes && x.is_valid(row) && y.is_valid(row) {
                self.groups[*group].add(*x_value, *y_value);
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.groups.resize(groups, Moments::default());
        let Some((counts, numbers)) = states.split_first() else {
            return internal_err!("a state without columns");
        };
        let counts = counts.as_primitive::<UInt64Type>();
        let numbers: Vec<_> =
            numbers.iter().map(|column| column.as_primitive::<Float64Type>()).collect();
        for (row, group) in group_indices.iter().enumerate() {
            let number = |at: usize| numbers.get(at).map_or(0.0, |column| column.value(row));
            let [squares_x, squares_y, products] = match self.statistic.is_regression() {
                true => [number(2), number(3), number(4)],
                false => [0.0, 0.0, number(2)],
            };
            let (count, mean_x, mean_y) = (counts.value(row), number(0), number(1));
            let other = Moments { count, mean_x, mean_y, squares_x, squares_y, products };
            self.groups[*group].merge(&other);
        }
        Ok(())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emit_to.take_needed(&mut self.groups);
        Ok(self.columns(&groups))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        Ok(match self.statistic {
            Statistic::Count => {
                Arc::new(groups.iter().map(|group| Some(group.count)).collect::<UInt64Array>())
            }
            statistic => {
                Arc::new(groups.iter().map(|group| statistic.of(group)).collect::<Float64Array>())
            }
        })
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = Self { statistic: self.statistic, groups: Vec::new() };
        let rows = values.first().map_or(0, |column| column.len());
        each.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        Ok(self.columns(&each.groups))
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(numbers: &[Option<f64>]) -> ArrayRef {
        Arc::new(numbers.iter().copied().collect::<Float64Array>())
    }

    fn answer(
        statistic: Statistic,
        emit: impl Fn(&mut MomentsOfGroups) -> ArrayRef,
    ) -> Vec<Option<f64>> {
        let mut groups = MomentsOfGroups { statistic, groups: Vec::new() };
        emit(&mut groups).as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn groups_go_through_states_of_groups_and_of_rows() {
        // The head's example, a pair without one of its numbers, and a group of one.
        let y = column(&[Some(5.0), Some(7.0), Some(9.0), None, Some(1.0)]);
        let x = column(&[Some(10.0), Some(20.0), Some(30.0), Some(4.0), Some(2.0)]);
        let regression = [Arc::clone(&y), Arc::clone(&x)];
        for (statistic, expected) in [
            (Statistic::Slope, [Some(0.2), None]),
            (Statistic::Intercept, [Some(3.0), None]),
            (Statistic::R2, [Some(1.0), None]),
            (Statistic::MeanX, [Some(20.0), Some(2.0)]),
            (Statistic::SquaresY, [Some(8.0), Some(0.0)]),
            (Statistic::CovarianceOfSample, [Some(20.0), None]),
            (Statistic::Covariance, [Some(40.0 / 3.0), Some(0.0)]),
        ] {
            let at_once = answer(statistic, |groups| {
                groups.update_batch(&regression, &[0, 0, 0, 0, 1], None, 2).unwrap();
                groups.evaluate(EmitTo::All).unwrap()
            });
            let of_parts = answer(statistic, |groups| {
                let filter = BooleanArray::from(vec![Some(true), None, Some(false), None, None]);
                groups.update_batch(&regression, &[0, 0, 0, 0, 1], Some(&filter), 1).unwrap();
                let first = groups.state(EmitTo::All).unwrap();
                let rows = groups.convert_to_state(&regression, None).unwrap();
                let rest: Vec<_> = rows.iter().map(|column| column.slice(1, 4)).collect();
                groups.merge_batch(&rest, &[0, 0, 0, 1], 2).unwrap();
                groups.merge_batch(&first, &[0], 2).unwrap();
                groups.evaluate(EmitTo::All).unwrap()
            });
            for (here, expected) in at_once.iter().chain(&of_parts).zip(expected.iter().cycle()) {
                let is_close = here.zip(*expected).is_some_and(|(a, b)| (a - b).abs() < 1e-12);
                assert!(is_close || here == expected, "{statistic:?}: {at_once:?} {of_parts:?}");
            }
        }
    }
}
