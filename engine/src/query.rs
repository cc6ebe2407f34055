//! Queries over events, and the shape of an answer.

use std::{ops::Range, sync::Arc};

use crate::{
    base::time::{DAY_MS, Granularity, HOUR_MS},
    error::{Error, Result},
    event::Namespace,
};

/// Buckets of one answer, at most: ten years of hours.
pub const BUCKETS_MAX: usize = 100_000;
/// Groups of an answer where the query sets no number.
const GROUPS_DEFAULT: usize = 100;

/// The aggregate that is computed over the matching events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Number of events.
    Count,
    /// Number of distinct users, exactly.
    Distinct,
    /// Number of distinct users, approximately.
    DistinctApprox,
    /// Sum of a number; 0 of nothing.
    Sum,
    /// Mean of a number.
    Avg,
    /// Smallest value of a number; null without values.
    Min,
    /// Largest value of a number; null without values.
    Max,
    /// Exact percentile of a number, in percent, interpolated between closest ranks.
    Percentile(u8),
    /// Approximate percentile of a number, in percent.
    PercentileApprox(u8),
}

impl Metric {
    /// All values of [`Metric::kind`].
    pub const KINDS: [&str; 9] = [
        "count",
        "distinct",
        "distinct_approx",
        "sum",
        "avg",
        "min",
        "max",
        "percentile",
        "percentile_approx",
    ];

    /// Name of the metric without its percentile, as the metrics about queries use it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Distinct => "distinct",
            Self::DistinctApprox => "distinct_approx",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Percentile(_) => "percentile",
            Self::PercentileApprox(_) => "percentile_approx",
        }
    }

    /// Whether it is computed over a numeric property.
    pub fn needs_number(self) -> bool {
        !matches!(self, Self::Count | Self::Distinct | Self::DistinctApprox)
    }

    /// Whether the answer is an estimate.
    pub fn is_approximate(self) -> bool {
        matches!(self, Self::DistinctApprox | Self::PercentileApprox(_))
    }
}

/// Only events whose string property has one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFilter {
    /// Name of a string property. Events without the property do not match.
    pub name: String,
    /// Accepted values; none accepts nothing.
    pub any_of: Vec<String>,
}

/// Only events whose numeric property lies within these bounds, both included.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberFilter {
    /// Name of a numeric property. Events without the property do not match.
    pub name: String,
    /// Smallest accepted number.
    pub min: f64,
    /// Largest accepted number.
    pub max: f64,
}

/// One metric over the events of one name in a namespace, by time bucket and group.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Namespace whose events are read.
    pub namespace: Namespace,
    /// One tenant, or all of the namespace.
    pub tenant: Option<String>,
    /// Name of the events, matched exactly.
    pub event: String,
    /// The aggregate to compute.
    pub metric: Metric,
    /// Numeric property that the metric is computed over; ignored by metrics without one.
    pub number: Option<String>,
    /// Start of the window in milliseconds since 1970, included.
    pub from_ms: i64,
    /// End of the window in milliseconds since 1970, excluded.
    pub to_ms: i64,
    /// Width of the buckets; `None` for one answer over the window.
    pub granularity: Option<Granularity>,
    /// String property to group by.
    pub group_by: Option<String>,
    /// All of them must hold.
    pub texts: Vec<TextFilter>,
    /// All of them must hold.
    pub numbers: Vec<NumberFilter>,
    /// The largest groups by value over the window that are answered.
    pub groups_max: usize,
    /// Exactly these groups, in this order, instead of the largest.
    pub groups: Option<Vec<Group>>,
    /// Starts of the buckets, rising; they replace the starts that the granularity gives.
    pub starts: Option<Vec<i64>>,
}

impl Query {
    /// How many events of a name a namespace has in a window: the plain question that others add to.
    pub fn count(namespace: Namespace, event: &str, window: Range<i64>) -> Self {
        Self {
            namespace,
            tenant: None,
            event: event.to_owned(),
            metric: Metric::Count,
            number: None,
            from_ms: window.start,
            to_ms: window.end,
            granularity: None,
            group_by: None,
            texts: Vec::new(),
            numbers: Vec::new(),
            groups_max: GROUPS_DEFAULT,
            groups: None,
            starts: None,
        }
    }

    /// Checks the rules that the types do not enforce.
    ///
    /// Errors: `Invalid` naming the field.
    pub fn validate(&self) -> Result<()> {
        if self.metric.needs_number() && self.number.is_none() {
            return Err(Error::invalid("numeric_prop", "is required for this metric"));
        }
        if self.from_ms > self.to_ms {
            return Err(Error::invalid("from", "lies after to"));
        }
        if self.may_have_many_buckets() && self.buckets().is_none() {
            return Err(Error::invalid(
                "granularity",
                format!("gives more than {BUCKETS_MAX} buckets"),
            ));
        }
        Ok(())
    }

    /// Upper bound of the number of buckets, ignoring `starts`: the shortest month has 28 days.
    fn buckets_at_most(&self) -> usize {
        let shortest_ms = match self.granularity {
            None => return 1,
            Some(Granularity::Hour) => HOUR_MS,
            Some(Granularity::Day) => DAY_MS,
            Some(Granularity::Week) => 7 * DAY_MS,
            Some(Granularity::Month) => 28 * DAY_MS,
        };
        let steps = self.to_ms.saturating_sub(self.from_ms).max(0) / shortest_ms;
        usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(2)
    }

    fn may_have_many_buckets(&self) -> bool {
        self.starts.is_some() || self.buckets_at_most() > BUCKETS_MAX
    }

    /// Starts of the buckets that meet the window; one for the whole window without granularity.
    /// `None` when they are too many.
    pub fn buckets(&self) -> Option<Vec<i64>> {
        if let Some(starts) = &self.starts {
            return (starts.len() <= BUCKETS_MAX).then(|| starts.clone());
        }
        let Some(granularity) = self.granularity else { return Some(vec![self.from_ms]) };
        let mut starts = Vec::with_capacity(self.buckets_at_most().min(BUCKETS_MAX));
        let mut start = granularity.floor(self.from_ms);
        while start < self.to_ms {
            if starts.len() == BUCKETS_MAX {
                return None;
            }
            starts.push(start);
            start = granularity.next(start);
        }
        Some(starts)
    }
}

/// One number of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count of events or of distinct users.
    Integer(u64),
    /// Sums, means, percentiles.
    Number(f64),
    /// No event had a value for the metric.
    Null,
}

impl Value {
    /// As a float, for ordering and drawing; `None` for null.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(value as f64),
            Self::Number(value) => Some(value),
            Self::Null => None,
        }
    }
}

/// A group: the value of the property, or `None` for events that lack it.
pub type Group = Option<Arc<str>>;

/// An answer: a matrix of groups by buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Starts of the buckets; one without granularity.
    pub buckets: Vec<i64>,
    /// Groups, largest first; one of `None` without grouping.
    pub groups: Vec<Group>,
    /// `values[group][bucket]`.
    pub values: Vec<Vec<Value>>,
    /// Groups that matched, returned or not.
    pub groups_total: usize,
    /// Rows that were read.
    pub rows_scanned: u64,
    /// The finest rollup that gave a part of the answer, `None` when none did.
    pub rollup: Option<RollupGrain>,
}

/// Stretch of time that one entry of a rollup adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RollupGrain {
    /// Whole UTC days.
    Day,
    /// Whole UTC hours, from a rollup of hours or from the row counts of the run directory.
    Hour,
}
