//! Which expressions of a grouped statement can be computed from partial groups instead of rows, and from which.
//!
//! ```text
//! SELECT upper(string_props['plan']), avg(numeric_props['ms']) FROM events GROUP BY 1
//!
//! keys      string_props['plan']            upper() is computed for each group
//! measures  numeric_props['ms']             avg is the sum of sums divided by the sum of counts
//! ```
//!
//! Two ways lead to an aggregate over groups. What is the same for all rows of a group is computed from its keys, and what is not is computed
//! for each row while it is read, as a measure:
//!
//! ```text
//! by tenant and event      count(*) FILTER (WHERE event_name = 'pay')     sum(CASE WHEN event_name = 'pay' THEN rows ELSE 0 END)
//! by tenant and user       count(*) FILTER (WHERE event_name = 'pay')     the count of a measure in rows whose event is pay
//! by either                count(*) FILTER (WHERE ms > 40)                the count of a measure in rows where ms > 40
//! by tenant and user       min(date_trunc('day', timestamp))              the column earliest
//! by tenant and user       count(DISTINCT event_name)                     the column distinct 0
//! by tenant                count(DISTINCT user_id)                        sum(users), over groups by tenant in which users are counted
//! by either                count(DISTINCT event_id), stddev(ms)           rows are read
//! ```

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{
    Column, DataFusionError, Result, ScalarValue,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    BinaryExpr, Case, Cast, Expr, ExprSchemable as _, Operator, TableScan, cast,
    expr::AggregateFunction,
    lit,
    utils::{conjunction, split_conjunction},
    when,
};
use datafusion_functions_aggregate::expr_fn::{bool_and, bool_or, max, min, sum};
use inlay_engine::rows::{Grain, TimeBuckets};

use super::{
    aggregate_spec::{AggregateSpec, GroupKey, ROWS, SPAN, USER},
    case_branches::{Branch, branches},
    distinct_values::{DISTINCT_MAX, Distinct},
    groups_table::GroupsTable,
    literal_ranks::ranked,
    measures::{Measure, MeasureStat},
    partial_aggregates::{Measured, PartialAggregates, of_scan},
    partitioned_work,
    row_values::{NumberValues, RowValues},
    time_buckets::{Times, is_time, truncated},
    time_values::TimeValues,
    total_exprs::{conditional, is_number_of_few, is_total, is_total_part},
    user_groups_table::UserGroupsTable,
};
use crate::tables::{
    Conditions, EVENT, Kind, NUMBERS, Property, Provider, STRINGS, Table, TextColumn, TextOrder,
    TextValues, has_few,
};

/// Combinations of texts by which groups of users are told apart, at most.
const RANKED_MAX: usize = 4_096;
/// Texts of a property that are put in order or looked up, at most.
const ORDERED_MAX: usize = 65_536;

/// Keys and measures of the groups to read, collected while expressions are rewritten.
pub struct AggregateRewriter<'a> {
    scan: &'a TableScan,
    table: &'a Table,
    keys: Vec<(String, GroupKey)>,
    span: Option<Grain>,
    measures: Vec<Measure>,
    distinct: Vec<Distinct>,
    /// Whether groups are told apart by users, who are grouped by or counted. Texts of properties tell them apart where they are
    /// grouped by, and not for a condition's sake: such groups would be nearly as many as rows.
    is_by_user: bool,
    /// Whether something is computed of each group.
    has_aggregates: bool,
    /// Whether users are counted, each once.
    counts_users: bool,
    times: Times,
}

/// Number of rows that a table of groups has for each group of the statement.
///
/// ```text
/// GROUP BY tenant_id                                                Many         each segment gives its own
/// GROUP BY tenant_id, lower(plan), with count(DISTINCT user_id)     Numbered     one for each user and plan
/// GROUP BY tenant_id, with count(DISTINCT user_id)                  Counted
/// GROUP BY tenant_id, with count(DISTINCT user_id), max(user_id)    OneOfUser
/// GROUP BY tenant_id, user_id                                       One
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsPerGroup {
    /// Any number of rows, which have to be aggregated again.
    Many,
    /// Any number, and [`USER_NUMBER`](super::aggregate_spec::USER_NUMBER) tells the users of a group apart.
    Numbered,
    /// One row for each user of the group.
    OneOfUser,
    /// A few rows, each of which counts users that the others do not have.
    Counted,
    /// One row, which is the result of the group.
    One,
}

impl<'a> AggregateRewriter<'a> {
    /// Of a scan of a table, for groups and aggregates over its columns; nothing yet.
    ///
    /// Errors: none that is expected.
    pub fn new(
        scan: &'a TableScan,
        table: &'a Table,
        groups: &[Expr],
        aggregates: &[Expr],
    ) -> Result<Self> {
        let mut is_by_user = aggregates.iter().any(counts_users);
        for group in groups {
            is_by_user |= group.exists(|expr| Ok(is_user(expr)))?;
        }
        Ok(Self {
            scan,
            table,
            keys: Vec::new(),
            span: None,
            measures: Vec::new(),
            distinct: Vec::new(),
            is_by_user,
            has_aggregates: !aggregates.is_empty(),
            counts_users: false,
            times: Times::of(table),
        })
    }

    /// The table of the groups, and how many of its rows are of a group that is asked for; nothing where rows are better read
    /// one by one. `names_users` says whether anything else is asked of users than how many there are.
    ///
    /// Errors: damage of a segment.
    pub fn provider(
        self,
        groups: &[Expr],
        conditions: Conditions,
        names_users: bool,
    ) -> Result<Option<(Arc<dyn Provider>, RowsPerGroup)>> {
        let Self { keys, span, measures, distinct, counts_users, times, .. } = self;
        let mut spec =
            AggregateSpec::new(keys, span, measures, distinct, conditions.filter.clone());
        let scan = self.table.scan_of_rows();
        if !spec.has(&GroupKey::User) {
            let totals = GroupsTable::new(scan, spec, conditions);
            return Ok(totals.is_worth_it()?.then(|| {
                (Arc::new(partitioned_work::Table(totals)) as Arc<_>, RowsPerGroup::Many)
            }));
        }
        let is_alone = conditions.tenants.as_ref().is_some_and(|tenants| tenants.len() == 1);
        if spec.ranks()?.combinations > RANKED_MAX || !(is_alone || spec.has(&GroupKey::Tenant)) {
            return Ok(None);
        }
        let mut own_buckets = Vec::new();
        for group in groups {
            own_buckets.extend(times.own_buckets(group)?);
        }
        let is_group = |(name, key): &(String, GroupKey)| match key {
            GroupKey::Time(buckets) => own_buckets.contains(buckets),
            _ => groups
                .iter()
                .any(|group| matches!(group, Expr::Column(column) if column.name == *name)),
        };
        // Users of two tenants who are called alike have two numbers, and one text.
        let is_of_one = |(name, key): &(String, GroupKey)| match key {
            GroupKey::Tenant => is_group(&(name.clone(), GroupKey::Tenant)),
            _ => false,
        };
        let rows = if !spec.keys.iter().all(|key| key.1 == GroupKey::User || is_group(key)) {
            match counts_users && (is_alone || spec.keys.iter().any(is_of_one)) {
                true => RowsPerGroup::Numbered,
                false => RowsPerGroup::Many,
            }
        } else if !counts_users && spec.keys.iter().all(is_group) {
            RowsPerGroup::One
        } else if counts_users && !names_users {
            RowsPerGroup::Counted
        } else {
            RowsPerGroup::OneOfUser
        };
        // Users seldom do the same twice in an hour: their groups are nearly as many as rows, and must be grouped again.
        let buckets = spec.buckets();
        let (first_ms, last_ms) = times.span();
        let hours = TimeBuckets::from(Grain::Hour).count(first_ms, last_ms);
        let is_by_hour_or_finer =
            buckets.grain >= Some(Grain::Hour) || buckets.boundaries.len() > hours;
        if matches!(rows, RowsPerGroup::Many | RowsPerGroup::Numbered) && is_by_hour_or_finer {
            return Ok(None);
        }
        // Distinct counts of two rows of a group cannot be added: both may have counted a value.
        if rows != RowsPerGroup::One && !spec.distinct.is_empty() {
            return Ok(None);
        }
        spec = match rows {
            RowsPerGroup::Numbered => spec.with_user_numbers(),
            RowsPerGroup::Counted => spec.with_user_counts(),
            RowsPerGroup::Many | RowsPerGroup::OneOfUser | RowsPerGroup::One => spec,
        };
        let per_user = UserGroupsTable::new(scan, spec, conditions);
        Ok(per_user
            .is_possible()?
            .then(|| (Arc::new(partitioned_work::Table(per_user)) as Arc<_>, rows)))
    }

    /// Makes keys of what an expression of `GROUP BY` is of; false where it is of anything else.
    ///
    /// Errors: none that is expected.
    pub fn takes_group(&mut self, expr: &Expr) -> Result<bool> {
        if expr.exists(|expr| Ok(is_user(expr)))? {
            self.add_key(USER.to_owned(), GroupKey::User);
        }
        // Without aggregates (DISTINCT, inputs of joins) it is faster to scan rows with numbers of texts.
        if self.is_by_user && self.has_aggregates {
            for column in expr.column_refs() {
                if let Some(order) = self.order(&column.name, RANKED_MAX)? {
                    self.add_key(column.name.clone(), GroupKey::Rank(order));
                }
            }
        }
        self.takes_key(expr)
    }

    /// Makes keys of the columns of an expression, so that it is the same for all rows of a group; false, and no keys, where it is of
    /// anything else.
    ///
    /// Errors: none that is expected.
    pub fn takes_key(&mut self, expr: &Expr) -> Result<bool> {
        let Some(found) = self.keys_of(expr)? else { return Ok(false) };
        found.into_iter().for_each(|(name, key)| self.add_key(name, key));
        Ok(true)
    }

    /// The keys that an expression is of, if it is of nothing else.
    fn keys_of(&self, expr: &Expr) -> Result<Option<Vec<(String, GroupKey)>>> {
        let mut is_taken = true;
        let mut found: Vec<(String, GroupKey)> = Vec::new();
        expr.apply(|part| {
            if let Some(buckets) = self.times.buckets(part)? {
                found.push((Kind::Events.time_column().to_owned(), GroupKey::Time(buckets)));
                return Ok(TreeNodeRecursion::Jump);
            }
            let Expr::Column(column) = part else { return Ok(TreeNodeRecursion::Continue) };
            match self.key(&column.name) {
                Some(key) => found.push((column.name.clone(), key)),
                None => is_taken = false,
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(is_taken.then_some(found))
    }

    /// Adds a key, once; buckets of a time that is a key already become as fine as both need.
    fn add_key(&mut self, name: String, key: GroupKey) {
        match self.keys.iter_mut().find(|(known, _)| *known == name) {
            Some((_, GroupKey::Time(known))) => {
                if let GroupKey::Time(buckets) = key {
                    known.merge(&buckets);
                }
            }
            Some(_) => {}
            None => self.keys.push((name, key)),
        }
    }

    /// The key that a column is, or nothing where groups are not told apart by it.
    fn key(&self, column: &str) -> Option<GroupKey> {
        match column {
            "tenant_id" => Some(GroupKey::Tenant),
            "event_name" => Some(GroupKey::Event),
            // Groups are by user, and by user and text, only where that was asked for.
            // A time is no key by itself: buckets say what is known of it.
            _ if column == USER || self.is_by_user => {
                let is_it = |(name, key): &&(String, GroupKey)| {
                    name == column && matches!(key, GroupKey::User | GroupKey::Rank(_))
                };
                self.keys.iter().find(is_it).map(|(_, key)| key.clone())
            }
            _ => Some(GroupKey::Text(self.property(column, STRINGS)?.name.clone())),
        }
    }

    /// The property that a column is.
    fn property(&self, column: &str, map: &str) -> Option<&Property> {
        let is_it = |property: &&Property| property.map == map && property.field().name() == column;
        self.table.properties().iter().find(is_it)
    }

    /// The measure that an expression is by itself.
    fn plain_measure(&self, expr: &Expr, function: &str) -> Result<Option<Measure>> {
        let Expr::Column(column) = expr else { return Ok(None) };
        if is_time(expr) {
            return Ok(Some(Measure::Time));
        }
        if let Some(property) = self.property(&column.name, NUMBERS) {
            return Ok(Some(Measure::Property(property.name.clone())));
        }
        if self.is_by_user && ["min", "max"].contains(&function) {
            return Ok(self.order(&column.name, ORDERED_MAX)?.map(Measure::Text));
        }
        Ok(None)
    }

    /// The order of a string property's texts, if there are no more than that.
    fn order(&self, column: &str, values_max: usize) -> Result<Option<Arc<TextOrder>>> {
        let Some(property) = self.property(column, STRINGS) else { return Ok(None) };
        let order = TextOrder::new(&self.table.scan_of_rows(), property.clone(), values_max)?;
        Ok(order.map(Arc::new))
    }

    /// What an expression comes to by the texts of one column, if it is over one and cannot fail.
    fn text_values(&self, expr: &Expr) -> Result<Option<Arc<TextValues>>> {
        let columns = expr.column_refs();
        let column = match columns.iter().next() {
            Some(column) if columns.len() == 1 && column.name == EVENT => TextColumn::Event,
            Some(column) if columns.len() == 1 => match self.property(&column.name, STRINGS) {
                Some(property)
                    if has_few(&self.table.scan_of_rows(), &property.name, ORDERED_MAX)? =>
                {
                    TextColumn::Property(property.clone())
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if !is_total(expr) {
            return Ok(None);
        }
        Ok(Some(Arc::new(TextValues::new(column, expr.clone())?)))
    }

    /// What an expression of the time comes to by buckets of time, if it cannot fail. Where times tell groups apart, they are keys.
    fn time_values(&self, expr: &Expr) -> Result<Option<Arc<TimeValues>>> {
        let is_by_time = self.keys.iter().any(|(_, key)| matches!(key, GroupKey::Time(_)));
        if !self.is_by_user || is_by_time {
            return Ok(None);
        }
        let (mut buckets, mut is_of_time, mut is_total) = (TimeBuckets::default(), false, true);
        expr.apply(|part| {
            if let Some(found) = self.times.buckets(part)? {
                buckets.merge(&found);
                is_of_time = true;
                return Ok(TreeNodeRecursion::Jump);
            }
            is_total = !matches!(part, Expr::Column(_)) && is_total_part(part);
            Ok(if is_total { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        if !is_of_time || !is_total {
            return Ok(None);
        }
        TimeValues::new(expr.clone(), buckets, self.times.span())
    }

    /// What an expression of numeric properties comes to, if it is a condition or one of a few written numbers, and cannot fail.
    fn number_values(&self, expr: &Expr) -> Result<Option<Arc<NumberValues>>> {
        let mut columns: Vec<&Column> = expr.column_refs().into_iter().collect();
        columns.sort_unstable();
        let properties = columns.iter().map(|column| self.property(&column.name, NUMBERS));
        let properties = properties.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty());
        let Some(properties) = properties.filter(|_| is_total(expr)) else { return Ok(None) };
        let kind = expr.get_type(&*self.scan.projected_schema);
        if !matches!(kind, Ok(DataType::Boolean)) && !is_number_of_few(expr) {
            return Ok(None);
        }
        Ok(Some(Arc::new(NumberValues::new(&properties, expr.clone())?)))
    }

    /// What a condition, or one of a few written numbers, comes to in each row, if it can be computed without a batch of rows and
    /// cannot fail.
    fn row_values(&self, expr: &Expr) -> Result<Option<RowValues>> {
        if let Some(values) = self.text_values(expr)? {
            return Ok(Some(RowValues::Text(values)));
        }
        if let Some(values) = self.time_values(expr)? {
            return Ok(Some(RowValues::Time(values)));
        }
        if let Some(values) = self.number_values(expr)? {
            return Ok(Some(RowValues::Numbers(values)));
        }
        let boxed = |expr| Ok::<_, DataFusionError>(self.row_values(expr)?.map(Box::new));
        Ok(match expr {
            Expr::Alias(alias) => self.row_values(&alias.expr)?,
            Expr::Not(inner) => boxed(inner)?.map(RowValues::Not),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                boxed(left)?.zip(boxed(right)?).map(|(left, right)| RowValues::And(left, right))
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                boxed(left)?.zip(boxed(right)?).map(|(left, right)| RowValues::Or(left, right))
            }
            Expr::Literal(value, _) if is_number_of_few(expr) => match value {
                ScalarValue::Int64(Some(number)) => Some(RowValues::Constant(*number as f64)),
                ScalarValue::Float64(Some(number)) => Some(RowValues::Constant(*number)),
                _ => Some(RowValues::Constant(f64::NAN)),
            },
            Expr::Cast(Cast { expr: inner, .. }) if is_number_of_few(expr) => {
                self.row_values(inner)?
            }
            Expr::Case(Case { expr: None, when_then_expr, else_expr })
                if is_number_of_few(expr) =>
            {
                let mut branches = Vec::with_capacity(when_then_expr.len());
                for (condition, then) in when_then_expr {
                    let (condition, then) = (self.row_values(condition)?, self.row_values(then)?);
                    let Some(branch) = condition.zip(then) else { return Ok(None) };
                    branches.push(branch);
                }
                let otherwise = match else_expr {
                    Some(expr) => self.row_values(expr)?,
                    None => Some(RowValues::Constant(f64::NAN)),
                };
                otherwise.map(|otherwise| RowValues::Case(branches, Box::new(otherwise)))
            }
            _ => None,
        })
    }

    /// The same; nothing where keys tell rows apart as well, and groups are few.
    fn row_values_unless_keys(&self, expr: &Expr) -> Result<Option<RowValues>> {
        match self.is_by_user || self.keys_of(expr)?.is_none() {
            true => self.row_values(expr),
            false => Ok(None),
        }
    }

    /// A measure, and what of it an aggregate is asked for: `CASE WHEN event_name = 'call' THEN timestamp END`, where the
    /// condition is the same for all rows of a group, or is computed for each row.
    fn measured(
        &mut self,
        function: &str,
        expr: &Expr,
        filter: Option<&Expr>,
    ) -> Result<Option<Measured>> {
        let (of, condition, is_else_zero) = conditional(expr).unwrap_or((expr, None, false));
        if let Some(measure) = self.plain_measure(of, function)? {
            // Rows that a filter leaves out are not zero.
            if is_else_zero && filter.is_some() {
                return Ok(None);
            }
            return self.measured_where(measure, condition.into_iter().chain(filter), is_else_zero);
        }
        if is_number_of_few(expr)
            && let Some(values) = self.row_values_unless_keys(expr)?
        {
            return self.measured_where(Measure::Computed(values), filter, false);
        }
        Ok(None)
    }

    /// A measure in rows that meet some conditions.
    fn measured_where<'e>(
        &mut self,
        mut measure: Measure,
        conditions: impl IntoIterator<Item = &'e Expr>,
        is_else_zero: bool,
    ) -> Result<Option<Measured>> {
        let mut of_groups = Vec::new();
        for condition in conditions.into_iter().flat_map(split_conjunction) {
            if let Some(condition) = self.row_values_unless_keys(condition)? {
                measure = Measure::Where { of: Box::new(measure), condition, is_else_zero };
            } else if self.takes_key(condition)? {
                of_groups.push(condition.clone());
            } else {
                return Ok(None);
            }
        }
        let known = self.measures.iter().position(|known| *known == measure);
        let at = known.unwrap_or(self.measures.len());
        if known.is_none() {
            self.measures.push(measure);
        }
        Ok(Some(Measured { measure: at, condition: conjunction(of_groups), is_else_zero }))
    }

    /// What is counted once in a group by user.
    fn takes_distinct(&mut self, expr: &Expr) -> Result<Option<PartialAggregates>> {
        if !self.keys.iter().any(|(_, key)| *key == GroupKey::User) {
            return Ok(None);
        }
        let scan = self.table.scan_of_rows();
        let distinct = match expr {
            Expr::Column(column) if column.name == EVENT => Distinct::events(&scan),
            Expr::Column(column) => match self.order(&column.name, DISTINCT_MAX)? {
                Some(order) => Some(Distinct::texts(order)?),
                None => None,
            },
            _ => truncated(expr).and_then(|grain| Distinct::starts(&scan, grain)),
        };
        Ok(distinct.map(|distinct| {
            let at = self.distinct.len();
            self.distinct.push(distinct);
            PartialAggregates::count(sum(of_scan(Distinct::column(at))))
        }))
    }

    /// The first or the last minute, hour, day or week of a group by user, as the least or most of a column of the group.
    fn takes_span(&mut self, name: &str, expr: &Expr) -> Result<Option<Expr>> {
        let is_by = |spec: fn(&GroupKey) -> bool| self.keys.iter().any(|(_, key)| spec(key));
        let Some(grain) = truncated(expr) else { return Ok(None) };
        if !is_by(|key| *key == GroupKey::User) || is_by(|key| matches!(key, GroupKey::Time(_))) {
            return Ok(None);
        }
        self.span = self.span.max(Some(grain));
        let [earliest, latest] = SPAN;
        let column = if name == "min" { earliest } else { latest };
        let with_column = expr.clone().transform(|part| match part {
            Expr::Column(_) => Ok(Transformed::yes(of_scan(column))),
            part => Ok(Transformed::no(part)),
        });
        Ok(Some(with_column?.data))
    }

    /// The sum of an expression that is one of several properties, or the negative of one, by conditions of groups.
    fn takes_sum_of_branches(&mut self, expr: &Expr) -> Result<Option<PartialAggregates>> {
        let Some(found) = branches(expr) else { return Ok(None) };
        let (mut aggregates, mut signs) = (Vec::new(), Vec::new());
        for Branch { conditions, of, is_negative } in found {
            let Some(measure) = self.plain_measure(of, "sum")?.filter(|one| *one != Measure::Time)
            else {
                return Ok(None);
            };
            let Some(measured) = self.measured_where(measure, &conditions, false)? else {
                return Ok(None);
            };
            aggregates.push(sum(measured.part(MeasureStat::Sum)?));
            signs.push(is_negative);
        }
        let finish = move |parts: Vec<Expr>| {
            let is_nothing = conjunction(parts.iter().map(|part| part.clone().is_null()));
            let mut total = lit(0.0);
            for (part, is_negative) in parts.into_iter().zip(signs) {
                let part = when(part.clone().is_not_null(), part).otherwise(lit(0.0))?;
                total = if is_negative { total - part } else { total + part };
            }
            let nothing = Expr::Literal(ScalarValue::Float64(None), None);
            when(is_nothing.unwrap_or_else(|| lit(true)), nothing).otherwise(total)
        };
        Ok(Some(PartialAggregates { aggregates, finish: Box::new(finish) }))
    }

    /// An aggregate over rows as aggregates over groups.
    ///
    /// Errors: none that is expected.
    pub fn takes_aggregate(&mut self, expr: &Expr) -> Result<Option<PartialAggregates>> {
        let AggregateFunction { func, params } = match expr {
            Expr::Alias(alias) => return self.takes_aggregate(&alias.expr),
            Expr::AggregateFunction(function) => function,
            _ => return Ok(None),
        };
        if counts_users(expr) {
            self.counts_users = true;
            self.add_key(USER.to_owned(), GroupKey::User);
            return Ok(Some(PartialAggregates::count(expr.clone())));
        }
        if let Some(once) = counted_once(expr) {
            return self.takes_distinct(once);
        }
        if params.distinct || !params.order_by.is_empty() || params.null_treatment.is_some() {
            return Ok(None);
        }
        let only = match (&*params.args, func.name()) {
            ([], "count") => lit(1i64),
            ([only], _) => only.clone(),
            _ => return Ok(None),
        };
        let filter = params.filter.as_deref();
        if let Some(measured) = self.measured(func.name(), &only, filter)? {
            return measured.aggregate(func.name());
        }
        if func.name() == "sum"
            && filter.is_none()
            && let Some(parts) = self.takes_sum_of_branches(&only)?
        {
            return Ok(Some(parts));
        }
        if let "min" | "max" = func.name()
            && let Some((numbers, literals)) = ranked(&only)
            && let Some(measured) = self.measured(func.name(), &numbers, filter)?
        {
            return Ok(measured
                .aggregate(func.name())?
                .map(|parts| parts.then(move |number| literals.value(number))));
        }
        if let "bool_or" | "bool_and" = func.name()
            && let Some(values) = self.row_values_unless_keys(&only)?
            && let Some(measured) = self.measured_where(Measure::Computed(values), filter, false)?
        {
            let name = if func.name() == "bool_or" { "max" } else { "min" };
            let parts = measured.aggregate(name)?;
            return Ok(parts.map(|parts| parts.then(|number| Ok(number.eq(lit(1.0))))));
        }
        let is_all = matches!(&only, Expr::Literal(value, _) if !value.is_null());
        if func.name() == "count" && (filter.is_some() || !is_all) {
            let is_there = only.clone().is_not_null();
            let conditions = (!is_all).then_some(&is_there).into_iter().chain(filter);
            let is_of_keys = |condition: &Expr| Ok(self.keys_of(condition)?.is_some());
            let are_of_keys = conditions.clone().map(is_of_keys).collect::<Result<Vec<_>>>()?;
            if self.is_by_user || are_of_keys.contains(&false) {
                let measured = self.measured_where(Measure::Rows, conditions, false)?;
                return measured.map_or(Ok(None), |measured| measured.aggregate("count"));
            }
        }
        if let Some(filter) = filter {
            // Only rows are counted by a condition; sums of keys would need a state for each answer to it.
            if func.name() != "count" || !is_all || !self.takes_key(filter)? {
                return Ok(None);
            }
            let some = when(filter.clone(), of_scan(ROWS)).otherwise(lit(0i64))?;
            return Ok(Some(PartialAggregates::count(sum(some))));
        }
        if let "min" | "max" = func.name()
            && let Some(column) = self.takes_span(func.name(), &only)?
        {
            let extreme = if func.name() == "min" { min(column) } else { max(column) };
            return Ok(Some(PartialAggregates::one(extreme)));
        }
        if !self.takes_key(&only)? {
            return Ok(None);
        }
        let nothing = || Expr::Literal(ScalarValue::Int64(None), None);
        let kind = only.get_type(&*self.scan.projected_schema);
        Ok(match (func.name(), kind) {
            ("count", _) if is_all => Some(PartialAggregates::count(sum(of_scan(ROWS)))),
            ("count", _) => {
                let some = when(only.is_not_null(), of_scan(ROWS)).otherwise(nothing())?;
                Some(PartialAggregates::count(sum(some)))
            }
            ("sum", Ok(DataType::Int64)) => Some(PartialAggregates::one(sum(only * of_scan(ROWS)))),
            ("sum", Ok(DataType::Float64)) => {
                Some(PartialAggregates::one(sum(only * cast(of_scan(ROWS), DataType::Float64))))
            }
            ("min", Ok(_)) => Some(PartialAggregates::one(min(only))),
            ("max", Ok(_)) => Some(PartialAggregates::one(max(only))),
            ("bool_or", Ok(_)) => Some(PartialAggregates::one(bool_or(only))),
            ("bool_and", Ok(_)) => Some(PartialAggregates::one(bool_and(only))),
            _ => None,
        })
    }
}

/// Whether an expression asks anything else of users than how many there are.
///
/// Errors: none that is expected.
pub fn names_users(expr: &Expr) -> Result<bool> {
    Ok(!counts_users(expr) && expr.exists(|part| Ok(is_user(part)))?)
}

/// Whether an expression is the column of users.
fn is_user(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == USER)
}

/// The argument of `count(DISTINCT argument)`.
fn counted_once(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Alias(alias) => counted_once(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let is_plain = params.distinct
                && params.filter.is_none()
                && params.order_by.is_empty()
                && params.null_treatment.is_none();
            let [only] = &*params.args else { return None };
            (is_plain && func.name() == "count").then_some(only)
        }
        _ => None,
    }
}

/// Whether an expression counts users, each once.
fn counts_users(expr: &Expr) -> bool {
    counted_once(expr).is_some_and(is_user)
}
