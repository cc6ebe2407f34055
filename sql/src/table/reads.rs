//! What is read of groups of rows instead of rows: which expressions can be answered from groups, and from which.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{
    Column, DataFusionError, Result, ScalarValue,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    Case, Cast, Expr, ExprSchemable as _, TableScan, cast, expr::AggregateFunction, lit,
    utils::conjunction, when,
};
use datafusion_functions_aggregate::expr_fn::{max, min, sum};
use inlay_engine::rows::Grain;

use super::{
    amounts::{Measure, Part},
    condition::Conditions,
    per_user::PerUser,
    provider::Table,
    schema::{Kind, NUMBERS, Property, STRINGS},
    shares,
    source::Provider,
    totals::Totals,
    wanted::{Key, ROWS, SPAN, USER, Wanted},
};

/// What groups of rows are read, found as expressions are looked at.
pub struct Read<'a> {
    scan: &'a TableScan,
    table: &'a Table,
    keys: Vec<(String, Key)>,
    span: Option<Grain>,
    measures: Vec<Measure>,
    /// Whether users are counted, each once.
    counts_users: bool,
}

/// How many rows of a table of groups are of a group that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Any number.
    Many,
    /// Any number, and [`USER_NUMBER`](super::wanted::USER_NUMBER) tells the users of a group apart.
    Numbered,
    /// One for each of its users.
    OneOfUser,
    /// One.
    One,
}

/// The aggregates over groups that an aggregate over rows becomes, and what is made of them.
pub struct Parts {
    /// Sums, least and most of something.
    pub aggregates: Vec<Expr>,
    /// What is made of their columns.
    pub finish: Box<dyn FnOnce(Vec<Expr>) -> Result<Expr>>,
}

impl Parts {
    fn one(aggregate: Expr) -> Self {
        Self { aggregates: vec![aggregate], finish: Box::new(first) }
    }

    /// A count: of no groups it is zero, not nothing.
    fn count(aggregate: Expr) -> Self {
        let finish = |parts| {
            let sum = first(parts)?;
            // In this order it is known that it is never nothing, as a count is.
            when(sum.clone().is_not_null(), sum).otherwise(lit(0i64))
        };
        Self { aggregates: vec![aggregate], finish: Box::new(finish) }
    }
}

fn first(parts: Vec<Expr>) -> Result<Expr> {
    let first = parts.into_iter().next();
    first.ok_or_else(|| DataFusionError::Internal("no part".to_owned()))
}

fn of_scan(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl<'a> Read<'a> {
    /// Of a scan of a table; nothing yet.
    pub fn new(scan: &'a TableScan, table: &'a Table) -> Self {
        Self {
            scan,
            table,
            keys: Vec::new(),
            span: None,
            measures: Vec::new(),
            counts_users: false,
        }
    }

    /// The table of the groups, and how many of its rows are of a group that is asked for; nothing where rows are better read
    /// one by one.
    ///
    /// Errors: damage of a segment.
    pub fn provider(
        self,
        groups: &[Expr],
        conditions: Conditions,
    ) -> Result<Option<(Arc<dyn Provider>, Rows)>> {
        let Self { mut keys, span, measures, counts_users, .. } = self;
        for (_, key) in &mut keys {
            if let Key::Time(grain) = key {
                *grain = (*grain).max(span.unwrap_or(*grain));
            }
        }
        let mut wanted = Wanted::new(keys, span, measures, conditions.filter.clone());
        let scan = self.table.scan_of_rows();
        if !wanted.has(&Key::User) {
            let totals = Totals::new(scan, wanted, conditions);
            return Ok(totals
                .is_worth_it()?
                .then(|| (Arc::new(shares::Table(totals)) as Arc<_>, Rows::Many)));
        }
        let is_alone = conditions.tenants.as_ref().is_some_and(|tenants| tenants.len() == 1);
        let has_texts = wanted.keys.iter().any(|(_, key)| matches!(key, Key::Text(_)));
        if has_texts || !(is_alone || wanted.has(&Key::Tenant)) {
            return Ok(None);
        }
        let is_group = |(name, key): &(String, Key)| {
            groups.iter().any(|group| match key {
                Key::Time(grain) => truncated(group) == Some(*grain),
                _ => matches!(group, Expr::Column(column) if column.name == *name),
            })
        };
        // Users of two tenants who are called alike have two numbers, and one text.
        let is_of_one = |(name, key): &(String, Key)| match key {
            Key::Tenant => is_group(&(name.clone(), Key::Tenant)),
            _ => false,
        };
        let rows = if !wanted.keys.iter().all(|key| key.1 == Key::User || is_group(key)) {
            match counts_users && (is_alone || wanted.keys.iter().any(is_of_one)) {
                true => Rows::Numbered,
                false => Rows::Many,
            }
        } else if !counts_users && wanted.keys.iter().all(is_group) {
            Rows::One
        } else {
            Rows::OneOfUser
        };
        // Users seldom do the same twice in an hour: their groups are nearly as many as rows, and must be grouped again.
        if matches!(rows, Rows::Many | Rows::Numbered) && wanted.grain() == Some(Grain::Hour) {
            return Ok(None);
        }
        if rows == Rows::Numbered {
            wanted = wanted.with_user_numbers();
        }
        let per_user = PerUser::new(scan, wanted, conditions);
        Ok(per_user.is_possible().then(|| (Arc::new(shares::Table(per_user)) as Arc<_>, rows)))
    }

    /// Whether groups are told apart by an expression.
    ///
    /// Errors: none that is expected.
    pub fn takes_group(&mut self, expr: &Expr) -> Result<bool> {
        let is_user = |expr: &Expr| Ok(matches!(expr, Expr::Column(column) if column.name == USER));
        if expr.exists(is_user)? {
            self.add_key(USER.to_owned(), Key::User);
        }
        self.takes_key(expr)
    }

    /// Whether an expression says the same of all rows of a group; its columns become keys.
    ///
    /// Errors: none that is expected.
    pub fn takes_key(&mut self, expr: &Expr) -> Result<bool> {
        let mut is_taken = true;
        let mut found: Vec<(String, Key)> = Vec::new();
        expr.apply(|part| {
            if let Some(grain) = grain_of(part) {
                found.push(("timestamp".to_owned(), Key::Time(grain)));
                return Ok(TreeNodeRecursion::Jump);
            }
            let Expr::Column(column) = part else { return Ok(TreeNodeRecursion::Continue) };
            match self.key(&column.name) {
                Some(key) => found.push((column.name.clone(), key)),
                None => is_taken = false,
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_taken {
            found.into_iter().for_each(|(name, key)| self.add_key(name, key));
        }
        Ok(is_taken)
    }

    fn add_key(&mut self, name: String, key: Key) {
        match self.keys.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Key::Time(known))) => {
                if let Key::Time(grain) = key {
                    *known = grain.max(*known);
                }
            }
            Some(_) => {}
            None => self.keys.push((name, key)),
        }
    }

    fn key(&self, column: &str) -> Option<Key> {
        match column {
            "tenant_id" => Some(Key::Tenant),
            "event_name" => Some(Key::Event),
            // Groups are by user only where that was asked for.
            USER => self.keys.iter().find(|(name, _)| name == USER).map(|(_, key)| key.clone()),
            _ => self.property(column, STRINGS).map(Key::Text),
        }
    }

    /// The name of a property that has a column.
    fn property(&self, column: &str, map: &str) -> Option<String> {
        let is_it = |property: &&Property| property.map == map && property.field().name() == column;
        self.table.properties().iter().find(is_it).map(|property| property.name.clone())
    }

    /// The measure that an expression is.
    fn measure(&mut self, expr: &Expr) -> Option<Measure> {
        let Expr::Column(column) = expr else { return None };
        let measure = match is_time(expr) {
            true => Measure::Time,
            false => Measure::Property(self.property(&column.name, NUMBERS)?),
        };
        if !self.measures.contains(&measure) {
            self.measures.push(measure.clone());
        }
        Some(measure)
    }

    /// A measure, and what of it an aggregate is asked for: `CASE WHEN event_name = 'call' THEN timestamp END`, where the
    /// condition is the same for all rows of a group.
    fn measured(&mut self, expr: &Expr, filter: Option<&Expr>) -> Result<Option<Measured>> {
        let (of, mut conditions, is_else_zero) = match expr {
            Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
                let [(condition, then)] = &**when_then_expr else { return Ok(None) };
                let is_else_zero = match else_expr.as_deref() {
                    None => false,
                    Some(Expr::Literal(value, _)) if value.is_null() => false,
                    Some(Expr::Literal(ScalarValue::Float64(Some(0.0)), _)) => true,
                    Some(_) => return Ok(None),
                };
                (&**then, vec![(**condition).clone()], is_else_zero)
            }
            _ => (expr, Vec::new(), false),
        };
        let Some(measure) = self.measure(of) else { return Ok(None) };
        // Rows that a filter leaves out are not zero.
        if is_else_zero && filter.is_some() {
            return Ok(None);
        }
        conditions.extend(filter.cloned());
        for condition in &conditions {
            if !self.takes_key(condition)? {
                return Ok(None);
            }
        }
        Ok(Some(Measured { measure, condition: conjunction(conditions), is_else_zero }))
    }

    /// The first or the last hour, day or week of a group by user, as the least or most of a column of the group.
    fn takes_span(&mut self, name: &str, expr: &Expr) -> Result<Option<Expr>> {
        let is_by = |wanted: fn(&Key) -> bool| self.keys.iter().any(|(_, key)| wanted(key));
        let Some(grain) = truncated(expr) else { return Ok(None) };
        if !is_by(|key| *key == Key::User) || is_by(|key| matches!(key, Key::Time(_))) {
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

    /// An aggregate over rows as aggregates over groups.
    ///
    /// Errors: none that is expected.
    pub fn takes_aggregate(&mut self, expr: &Expr) -> Result<Option<Parts>> {
        let AggregateFunction { func, params } = match expr {
            Expr::Alias(alias) => return self.takes_aggregate(&alias.expr),
            Expr::AggregateFunction(function) => function,
            _ => return Ok(None),
        };
        if let ("count", [Expr::Column(column)]) = (func.name(), &*params.args)
            && params.distinct
            && column.name == USER
            && params.filter.is_none()
            && params.order_by.is_empty()
            && params.null_treatment.is_none()
        {
            self.counts_users = true;
            self.add_key(USER.to_owned(), Key::User);
            return Ok(Some(Parts::one(expr.clone())));
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
        if let Some(measured) = self.measured(&only, filter)? {
            return measured.aggregate(func.name());
        }
        if let Some(filter) = filter {
            // Only rows are counted by a condition; sums of keys would need a state for each answer to it.
            let is_all = matches!(&only, Expr::Literal(value, _) if !value.is_null());
            if func.name() != "count" || !is_all || !self.takes_key(filter)? {
                return Ok(None);
            }
            let some = when(filter.clone(), of_scan(ROWS)).otherwise(lit(0i64))?;
            return Ok(Some(Parts::count(sum(some))));
        }
        if let "min" | "max" = func.name()
            && let Some(column) = self.takes_span(func.name(), &only)?
        {
            let extreme = if func.name() == "min" { min(column) } else { max(column) };
            return Ok(Some(Parts::one(extreme)));
        }
        if !self.takes_key(&only)? {
            return Ok(None);
        }
        let nothing = || Expr::Literal(ScalarValue::Int64(None), None);
        let kind = only.get_type(&*self.scan.projected_schema);
        Ok(match (func.name(), kind) {
            ("count", _) if matches!(&only, Expr::Literal(value, _) if !value.is_null()) => {
                Some(Parts::count(sum(of_scan(ROWS))))
            }
            ("count", _) => {
                let some = when(only.is_not_null(), of_scan(ROWS)).otherwise(nothing())?;
                Some(Parts::count(sum(some)))
            }
            ("sum", Ok(DataType::Int64)) => Some(Parts::one(sum(only * of_scan(ROWS)))),
            ("sum", Ok(DataType::Float64)) => {
                Some(Parts::one(sum(only * cast(of_scan(ROWS), DataType::Float64))))
            }
            ("min", Ok(_)) => Some(Parts::one(min(only))),
            ("max", Ok(_)) => Some(Parts::one(max(only))),
            _ => None,
        })
    }
}

/// A measure of the groups that meet a condition.
struct Measured {
    measure: Measure,
    condition: Option<Expr>,
    /// Whether other groups count as zero, rather than not at all.
    is_else_zero: bool,
}

impl Measured {
    fn part(&self, part: Part) -> Result<Expr> {
        let column = of_scan(self.measure.column(part));
        match &self.condition {
            Some(condition) if self.is_else_zero => {
                when(condition.clone(), column).otherwise(lit(0.0))
            }
            Some(condition) => when(condition.clone(), column).end(),
            None => Ok(column),
        }
    }

    /// An aggregate of it, by its name.
    fn aggregate(&self, name: &str) -> Result<Option<Parts>> {
        if self.is_else_zero && name != "sum" {
            return Ok(None);
        }
        // Times are neither added nor averaged: the library has refused it.
        Ok(Some(match name {
            "count" => Parts::count(sum(self.part(Part::Count)?)),
            "sum" => Parts::one(sum(self.part(Part::Sum)?)),
            "min" => Parts::one(min(self.part(Part::Least)?)),
            "max" => Parts::one(max(self.part(Part::Most)?)),
            "avg" => Parts {
                aggregates: vec![sum(self.part(Part::Sum)?), sum(self.part(Part::Count)?)],
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

/// How finely an expression tells times apart, if it is a part of the time that hours, days or weeks have in common.
fn grain_of(expr: &Expr) -> Option<Grain> {
    match expr {
        Expr::ScalarFunction(call) => {
            let [Expr::Literal(part, _), time] = &*call.args else { return None };
            let part = part.try_as_str().flatten().filter(|_| is_time(time))?.to_lowercase();
            match (call.func.name(), &*part) {
                ("date_part" | "date_trunc", "hour") => Some(Grain::Hour),
                ("date_part" | "date_trunc", "week") => Some(Grain::Week),
                ("date_part" | "date_trunc", "day" | "month" | "quarter" | "year")
                | ("date_part", "dow" | "isodow" | "doy" | "isoyear") => Some(Grain::Day),
                _ => None,
            }
        }
        Expr::Cast(Cast { expr, field }) => {
            (*field.data_type() == DataType::Date32 && is_time(expr)).then_some(Grain::Day)
        }
        _ => None,
    }
}

/// The grain that an expression cuts times to: it rises with them and has another value for each hour, day or week.
fn truncated(expr: &Expr) -> Option<Grain> {
    let grain = grain_of(expr)?;
    let part = match grain {
        Grain::Week => "week",
        Grain::Day => "day",
        Grain::Hour => "hour",
    };
    let is_cut = match expr {
        Expr::ScalarFunction(call) => {
            let is_part = |arg: &Expr| {
                matches!(arg, Expr::Literal(value, _)
                    if value.try_as_str().flatten().is_some_and(|text| text.eq_ignore_ascii_case(part)))
            };
            call.func.name() == "date_trunc" && call.args.first().is_some_and(is_part)
        }
        // A date.
        _ => true,
    };
    is_cut.then_some(grain)
}

/// Whether an expression is the time itself, in one unit or another, in UTC.
fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Column(column) => column.name == Kind::Events.time_column(),
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Timestamp(_, None)) && is_time(expr)
        }
        _ => false,
    }
}
