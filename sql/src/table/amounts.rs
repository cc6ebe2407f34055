//! What a number comes to in a group of rows: how many have it, their sum, the least, the most.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, Int64Builder};

/// What a column of a property says of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// How many rows have the property.
    Count,
    /// Their sum.
    Sum,
    /// The smallest.
    Least,
    /// The largest.
    Most,
}

impl Part {
    /// All of them, in the order of their columns.
    pub const ALL: [Self; 4] = [Self::Count, Self::Sum, Self::Least, Self::Most];

    /// The column of a property, which no statement can name.
    pub fn column(self, property: &str) -> String {
        match self {
            Self::Count => format!("count of {property}"),
            Self::Sum => format!("sum of {property}"),
            Self::Least => format!("least of {property}"),
            Self::Most => format!("most of {property}"),
        }
    }
}

/// What a number comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Amount {
    /// Of no rows.
    pub const NONE: Self =
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    /// Adds a row's number. NaN stands for a row that lacks it; there is one zero.
    pub fn add(&mut self, number: f64) {
        if !number.is_nan() {
            let number = number + 0.0;
            self.count += 1;
            self.sum += number;
            self.least = self.least.min(number);
            self.most = self.most.max(number);
        }
    }
}

/// The columns of a property, a row for each amount.
pub fn columns(amounts: impl ExactSizeIterator<Item = Amount> + Clone) -> Vec<ArrayRef> {
    let mut counts = Int64Builder::with_capacity(amounts.len());
    amounts.clone().for_each(|amount| counts.append_value(amount.count as i64));
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(counts.finish())];
    for value in
        [|amount: Amount| amount.sum, |amount: Amount| amount.least, |amount: Amount| amount.most]
    {
        let mut numbers = Float64Builder::with_capacity(amounts.len());
        for amount in amounts.clone() {
            numbers.append_option((amount.count > 0).then(|| value(amount)));
        }
        arrays.push(Arc::new(numbers.finish()));
    }
    arrays
}
