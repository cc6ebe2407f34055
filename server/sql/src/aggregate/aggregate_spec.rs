//! What a grouped read computes: group keys, measures, and the columns of its batches.
//!
//! `SELECT tenant_id, count(*), sum(numeric_props['ms']) FROM events GROUP BY 1` has the key `tenant_id`, one measure, and the columns
//! `tenant_id`, `rows`, `count of measure 0`, `sum of measure 0`, `least of measure 0` and `most of measure 0`.
//!
//! ```text
//! SELECT tenant_id, user_id, min(date_trunc('day', timestamp)), count(DISTINCT event_name), max(string_props['plan']) … GROUP BY 1, 2
//!
//! keys      tenant_id: Tenant, user_id: User
//! span      Day                              columns earliest, latest
//! measures  Text(plan)                       count, sum, least and most of measure 0: the most is a rank, shown as a text
//! distinct  Events { count: 2 }              column distinct 0
//! ```
//!
//! Names of columns are those of the table for keys; the others have a space or a NUL, or are those of no column of `events`, so that they
//! are mistaken for none.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, BooleanArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use datafusion_common::Result;
use inlay_engine::rows::{Filter, Grain, Morsel, Source, TimeBuckets};

use super::{
    distinct_values::Distinct,
    measures::{Measure, MeasureState},
    partitioned_work::LearnedFilter,
};
use crate::tables::{Kind, TextOrder, broken};

/// The column of numbers of rows.
pub const ROWS: &str = "rows";
/// The columns of where the first and the last minute, hour, day or week begin in which a group has rows.
pub const SPAN: [&str; 2] = ["earliest", "latest"];
/// The column of users.
pub const USER: &str = "user_id";
/// The column of how many users each group has: of groups that are not by user, where users are counted.
pub const USERS: &str = "users";
/// The column of numbers that a tenant's users have in one statement.
pub const USER_NUMBER: &str = "number of user_id\0";
/// Bytes of an array with a slot for each group that there could be; where there could be more, slots are
/// made for the groups that occur.
pub const DENSE_GROUPS_BYTES: usize = 16 << 20;

/// A key by which rows are grouped.
///
/// ```text
/// GROUP BY tenant_id, event_name                        Tenant, Event
/// GROUP BY date_trunc('day', timestamp)                 Time(by the day)
/// GROUP BY upper(string_props['plan'])                  Text("plan")
/// GROUP BY tenant_id, user_id, string_props['plan']     Tenant, User, Rank(texts of plan in order)
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupKey {
    /// The column `tenant_id`.
    Tenant,
    /// The column `event_name`.
    Event,
    /// The bucket of the event's time.
    Time(TimeBuckets),
    /// The column `user_id`.
    User,
    /// A string property, by the numbers of a segment.
    Text(String),
    /// A string property, by the ranks of its texts: of groups by user, which are those of all sources.
    Rank(Arc<TextOrder>),
}

/// String properties by whose ranks groups are told apart. A combination of them is a number: each rank, counted from 1 and with
/// 0 for rows without the property, times the step of its property.
///
/// Two plans and four countries make 3 × 5 = 15 combinations:
///
/// ```text
/// plan      free 0, pro 1             step 1, values 3
/// country   AT 0, DE 1, FR 2, IT 3    step 3, values 5
///
/// pro in FR: (1 + 1) × 1 + (2 + 1) × 3 = 11          back: 11 / 1 % 3 - 1 = 1, 11 / 3 % 5 - 1 = 2
/// no plan in AT: 0 + (0 + 1) × 3 = 3
/// ```
#[derive(Debug)]
pub struct RankCombinations {
    /// The properties, their steps, and how many values each has with that of rows without it.
    orders: Vec<(Arc<TextOrder>, usize, usize)>,
    /// How many combinations there could be; 1 without properties.
    pub combinations: usize,
}

impl RankCombinations {
    /// The combination of each row of a morsel; nothing where there is only one.
    ///
    /// Errors: damage of a segment.
    pub fn read(&self, source: &Source, morsel: &Morsel) -> Result<Vec<u32>> {
        let mut rows = vec![0; if self.orders.is_empty() { 0 } else { morsel.rows() }];
        for (order, step, _) in &self.orders {
            for (row, rank) in rows.iter_mut().zip(order.read(source, morsel)?) {
                *row += if rank.is_nan() { 0 } else { (rank as u32 + 1) * *step as u32 };
            }
        }
        Ok(rows)
    }

    /// The texts of a property in some combinations, null where a combination is without it.
    ///
    /// Errors: damage of a segment.
    pub fn texts(
        &self,
        of: &Arc<TextOrder>,
        combinations: impl Iterator<Item = usize>,
    ) -> Result<ArrayRef> {
        let order = self.orders.iter().find(|(order, ..)| order == of);
        let (step, values) = order.map_or((1, 1), |(_, step, values)| (*step, *values));
        let rank = |combination: usize| Some((combination / step % values).checked_sub(1)? as u32);
        of.texts(&combinations.map(rank).collect())
    }
}

/// What is added up by what.
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// Names of columns, and what they are: `("tenant_id", Tenant)`.
    pub keys: Vec<(String, GroupKey)>,
    /// The grain of the first and the last time of a group, if they are asked for: by the day, the first and the last day on which a user was seen.
    pub span: Option<Grain>,
    /// What is added up.
    pub measures: Vec<Measure>,
    /// What is counted once in each group; only where a group is in one row.
    pub distinct: Vec<Distinct>,
    /// What rows must be like: conditions on properties, which are not the same for all rows of a series.
    pub filter: Filter,
    /// Whether users have a column of numbers.
    pub has_user_numbers: bool,
    /// Whether users are no key, but counted in each group.
    pub counts_users: bool,
    /// A column for each key, that of the rows, those of the span, those of each measure, of what is distinct, and that of the users' numbers or
    /// their count.
    pub schema: SchemaRef,
}

impl AggregateSpec {
    /// With the columns that follow from it. A key that is a column of `events` has its type there, a property is a text that may be null.
    pub fn new(
        keys: Vec<(String, GroupKey)>,
        span: Option<Grain>,
        measures: Vec<Measure>,
        distinct: Vec<Distinct>,
        filter: Filter,
    ) -> Self {
        let mut fields: Vec<Field> = Vec::new();
        for (name, key) in &keys {
            let of_table = Kind::Events.columns().into_iter().find(|field| field.name() == name);
            let text = || Field::new(name, DataType::Utf8View, true);
            fields.push(match key {
                GroupKey::Text(_) | GroupKey::Rank(_) => text(),
                _ => of_table.unwrap_or_else(text),
            });
        }
        fields.push(Field::new(ROWS, DataType::Int64, false));
        if span.is_some() {
            let time = DataType::Timestamp(TimeUnit::Millisecond, None);
            fields.extend(SPAN.map(|name| Field::new(name, time.clone(), false)));
        }
        fields.extend(measures.iter().enumerate().flat_map(|(at, measure)| measure.fields(at)));
        fields.extend((0..distinct.len()).map(Distinct::field));
        let schema = Arc::new(Schema::new(fields));
        let (has_user_numbers, counts_users) = (false, false);
        Self { keys, span, measures, distinct, filter, has_user_numbers, counts_users, schema }
    }

    /// The same with a column of numbers of users.
    pub fn with_user_numbers(self) -> Self {
        let number = Field::new(USER_NUMBER, DataType::UInt64, true);
        Self { has_user_numbers: true, ..self.with_column(number) }
    }

    /// Groups by the other keys, with a column of how many users each has.
    pub fn with_user_counts(self) -> Self {
        let Self { mut keys, span, measures, distinct, filter, .. } = self;
        keys.retain(|(_, key)| *key != GroupKey::User);
        let spec = Self::new(keys, span, measures, distinct, filter);
        Self { counts_users: true, ..spec.with_column(Field::new(USERS, DataType::Int64, false)) }
    }

    fn with_column(self, field: Field) -> Self {
        let fields = self.schema.fields().iter().cloned().chain([Arc::new(field)]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, ..self }
    }

    /// How groups are told apart by time: one bucket where no key is a time.
    pub fn buckets(&self) -> TimeBuckets {
        let of_key = self.keys.iter().find_map(|(_, key)| match key {
            GroupKey::Time(buckets) => Some(buckets.clone()),
            _ => None,
        });
        of_key.unwrap_or_default()
    }

    /// How finely times have to be known: by the keys, and for the span, distinct days and conditions beside them. Groups by the week that
    /// count distinct days need days.
    pub fn finest(&self) -> TimeBuckets {
        let mut finest = self.buckets();
        let of_distinct = self.distinct.iter().filter_map(Distinct::grain).max();
        finest.grain = finest.grain.max(self.span).max(of_distinct);
        self.measures.iter().for_each(|measure| measure.refine(&mut finest));
        finest
    }

    /// Whether it is a key.
    pub fn has(&self, spec: &GroupKey) -> bool {
        self.keys.iter().any(|(_, key)| key == spec)
    }

    /// Which of these tenants have groups that pass what is learned of them; nothing where all may have some.
    pub fn passing_tenants(
        &self,
        learned: &LearnedFilter,
        tenants: &ArrayRef,
    ) -> Option<BooleanArray> {
        let column = self.keys.iter().position(|(_, key)| *key == GroupKey::Tenant)?;
        learned.passing_values(column, tenants)
    }

    /// String properties by whose ranks groups are told apart.
    ///
    /// Errors: damage of a segment.
    pub fn ranks(&self) -> Result<RankCombinations> {
        let mut ranks = RankCombinations { orders: Vec::new(), combinations: 1 };
        for (_, key) in &self.keys {
            if let GroupKey::Rank(order) = key {
                let (step, values) = (ranks.combinations, order.len()?.saturating_add(1));
                ranks.orders.push((Arc::clone(order), step, values));
                ranks.combinations = step.saturating_mul(values);
            }
        }
        Ok(ranks)
    }

    /// Whether names of events are told apart.
    pub fn needs_names(&self) -> bool {
        let counts_events = |distinct: &Distinct| matches!(distinct, Distinct::Events { .. });
        self.has(&GroupKey::Event) || self.distinct.iter().any(counts_events)
    }

    /// How many groups of a source there could be, by keys that whole row ranges have: of 3 tenants and 30 days 90, whatever happened.
    pub fn outer_groups(&self, source: &Source) -> usize {
        let named = match (self.has(&GroupKey::Tenant), self.has(&GroupKey::Event)) {
            (true, true) => source.series().len(),
            (true, false) => source.tenants().len(),
            (false, true) => source.names().len(),
            (false, false) => 1,
        };
        let (first_ms, last_ms) = bounds(source);
        named.saturating_mul(self.buckets().count(first_ms, last_ms))
    }

    /// How many groups of a source there could be, if they can be counted and fit into memory. There are at most as many as
    /// rows. With one measure a group has 40 bytes, so 419,430 groups fit.
    ///
    /// Errors: damage of a segment.
    pub fn groups(&self, source: &Source, rows: usize) -> Result<Option<usize>> {
        let mut groups = Some(self.outer_groups(source));
        for (_, key) in &self.keys {
            if let GroupKey::Text(name) = key {
                let values = source.values(name).map_err(broken)?;
                groups = groups.and_then(|groups| groups.checked_mul(values.checked_add(1)?));
            }
        }
        // Indexes go beyond the rows.
        let fits = |groups: &usize| {
            let bytes = (*groups).min(rows).checked_mul(self.group_bytes());
            bytes.is_some_and(|bytes| bytes <= DENSE_GROUPS_BYTES)
        };
        Ok(groups.filter(fits))
    }

    /// Bytes of a group: its count of rows, and four numbers of each measure.
    pub fn group_bytes(&self) -> usize {
        size_of::<u64>() + self.measures.len() * size_of::<MeasureState>()
    }
}

/// The first and the last time of a source, in milliseconds since 1970; zero for both where it has no rows.
pub fn bounds(source: &Source) -> (i64, i64) {
    let first = source.series().iter().map(|series| series.first_ms).min().unwrap_or_default();
    let last = source.series().iter().map(|series| series.last_ms).max().unwrap_or_default();
    (first, last)
}
