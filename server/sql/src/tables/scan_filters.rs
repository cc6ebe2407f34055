//! Conditions that a scan checks itself: those of the statement that the engine has no index for, and those that operators
//! learn while they run.
//!
//! `ORDER BY timestamp DESC LIMIT 100` knows after the first hundred rows that older ones cannot be in the answer, a join
//! knows after its smaller side which keys the larger one can have. Both say so in an expression that changes:
//!
//! ```text
//! DynamicFilter [ empty ]                                    before the first rows
//! DynamicFilter [ timestamp > 2026-11-24T09:12:00 ]          once there are a hundred
//! ```
//!
//! A scan looks at it before each morsel of rows: one whose times lie outside is not read, and of the others only the columns
//! of the conditions are, until it is known which rows pass. Conditions of the statement are checked here alone; an operator
//! that learns one still checks every row that it gets, so rows may pass that need not. A join whose smaller side has nearly all
//! users leaves out nearly no row: what it has learned is evaluated for every 16th row of a morsel first, and for the others only where
//! fewer than 7 of 8 pass.
//!
//! What is understood of a condition, so that rows are left out before any column is read:
//!
//! ```text
//! timestamp > 5 AND timestamp <= 9                        times (6, 9), see time_bounds
//! event_id IN ('a', 'b')                                  texts ["a", "b"], for which blocks are searched
//! number of user_id IN (7, 9)                             numbers [7, 9]: the users of these codes
//! event_id LIKE '0a7f%'                                   prefix 0a7f
//! ```

use std::sync::Arc;

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch, RecordBatchOptions,
        UInt32Array,
    },
    compute::{filter_record_batch, prep_null_mask_filter, take_record_batch},
    datatypes::SchemaRef,
};
use datafusion_common::{
    DataFusionError, Result, ScalarValue,
    tree_node::{Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::Operator;
use datafusion_physical_expr::{
    expressions::{BinaryExpr, Column, InListExpr, IsNullExpr, LikeExpr, Literal},
    utils::{collect_columns, split_conjunction},
};
use datafusion_physical_plan::{
    ExecutionPlan, PhysicalExpr,
    filter_pushdown::{ChildPushdownResult, FilterPushdownPropagation, PushedDown},
};

use super::time_bounds::{ALL_TIMES, TimeBounds, both, bounds};

/// A hint is evaluated for one of so many rows first: whether it leaves out rows at all.
const SAMPLED_OF: usize = 16;
/// Rows of a morsel that are worth a sample: of 2,048 it has 128.
const SAMPLED_FROM: usize = 2_048;

/// Conditions over a scan's columns, some of which change while a statement runs.
/// An expression that changes is one object: the operator writes to it, and the scan looks at it.
#[derive(Debug, Clone, Default)]
pub struct ScanFilters {
    /// What the statement asks of rows, which nobody else checks.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// What operators above check all the same. One that cannot be computed for some rows lets them pass: the operator may never be asked about
    /// these.
    hints: Vec<Arc<dyn PhysicalExpr>>,
}

impl ScanFilters {
    /// Adds what operators above check all the same.
    pub fn add_hints(&mut self, filters: impl IntoIterator<Item = Arc<dyn PhysicalExpr>>) {
        self.hints.extend(filters);
    }

    /// Adds filters that operators above have pushed down, and says of each whether it is checked here, so that it is not needed there.
    pub fn take(
        &mut self,
        pushed: ChildPushdownResult,
        is_checked: PushedDown,
    ) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
        let each = vec![is_checked; pushed.parent_filters.len()];
        let filters = pushed.parent_filters.into_iter().map(|pushed| pushed.filter);
        match is_checked {
            PushedDown::Yes => self.conditions.extend(filters),
            PushedDown::No => self.add_hints(filters),
        }
        FilterPushdownPropagation::with_parent_pushdown_result(each)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.hints.is_empty()
    }

    /// Whether an operator may learn one of them while it runs.
    /// True for a dynamic filter of a sort or a join, false for `length(user_id) > 9`.
    pub fn can_learn(&self) -> bool {
        let changes = |filter: &Arc<dyn PhysicalExpr>| {
            as_it_is_now(Arc::clone(filter)).is_ok_and(|now| now.transformed)
        };
        self.all().any(changes)
    }

    /// Shows them to whoever walks through a plan: operators learn in this way that somebody listens.
    ///
    /// Errors: those of `visit`.
    pub fn apply(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for filter in self.all() {
            if visit(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    /// What is known now; `None` as long as every row may pass.
    ///
    /// A dynamic filter that has learnt nothing is `true`, and is left out.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn current(&self, schema: &SchemaRef) -> Result<Option<KnownFilter>> {
        let known = |filters: &[Arc<dyn PhysicalExpr>]| -> Result<Vec<Arc<dyn PhysicalExpr>>> {
            let now = filters.iter().map(|filter| Ok(as_it_is_now(Arc::clone(filter))?.data));
            let mut known = now.collect::<Result<Vec<_>>>()?;
            let is_true = |known: &Arc<dyn PhysicalExpr>| {
                let literal = known.downcast_ref::<Literal>();
                literal.is_some_and(|one| *one.value() == ScalarValue::Boolean(Some(true)))
            };
            known.retain(|known| !is_true(known));
            Ok(known)
        };
        KnownFilter::of(known(&self.conditions)?, known(&self.hints)?, schema)
    }

    /// Conditions and hints.
    fn all(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.conditions.iter().chain(&self.hints)
    }
}

/// Conditions as they were at one time.
/// What operators learn afterwards is in the next one: a scan takes one for each morsel.
pub struct KnownFilter {
    /// Over `schema`: conditions of the statement, and hints behind them.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Where hints begin.
    hints_from: usize,
    /// The columns that the conditions need, by their indexes in the scan's schema.
    pub columns: Vec<usize>,
    schema: SchemaRef,
}

impl KnownFilter {
    /// The conditions over a batch of their own columns alone: of a scan with the columns 0 to 4, of which they need 1 and 3, column 3 is number 1 of that
    /// batch.
    fn of(
        mut conditions: Vec<Arc<dyn PhysicalExpr>>,
        hints: Vec<Arc<dyn PhysicalExpr>>,
        schema: &SchemaRef,
    ) -> Result<Option<Self>> {
        let hints_from = conditions.len();
        conditions.extend(hints);
        if conditions.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<usize> = Vec::new();
        for condition in &conditions {
            columns.extend(collect_columns(condition).iter().map(Column::index));
        }
        columns.sort_unstable();
        columns.dedup();
        let schema: SchemaRef = Arc::new(schema.project(&columns)?);
        let placed = |condition: Arc<dyn PhysicalExpr>| {
            let placed = condition.transform_down(|part| {
                Ok(match part.downcast_ref::<Column>() {
                    Some(column) => {
                        let at = columns.partition_point(|other| *other < column.index());
                        Transformed::yes(Arc::new(Column::new(column.name(), at)))
                    }
                    None => Transformed::no(part),
                })
            });
            placed.data()
        };
        let conditions = conditions.into_iter().map(placed).collect::<Result<_>>()?;
        Ok(Some(Self { conditions, hints_from, columns, schema }))
    }

    /// Whether no row passes, as a join says whose smaller side has no value to compare with.
    pub fn passes_none(&self) -> bool {
        let is_false = |condition: &Arc<dyn PhysicalExpr>| {
            let literal = condition.downcast_ref::<Literal>();
            literal.is_some_and(|one| *one.value() == ScalarValue::Boolean(Some(false)))
        };
        self.conditions.iter().any(is_false)
    }

    /// Times outside of which no row passes; `time` is the column of times in the scan's schema.
    /// Both ends are included; `(i64::MIN, i64::MAX)` where nothing is known.
    pub fn times(&self, time: usize) -> TimeBounds {
        let Ok(time) = self.columns.binary_search(&time) else { return ALL_TIMES };
        let all = self.conditions.iter().map(|condition| bounds(condition, time));
        all.fold(ALL_TIMES, both)
    }

    /// Texts of which every row that passes has one in a column of the scan's schema, where that is known.
    /// The shortest list, if several conditions have one.
    pub fn texts(&self, column: usize) -> Option<Vec<&str>> {
        let at = self.columns.binary_search(&column).ok()?;
        let of_all = self.conditions.iter().flat_map(split_conjunction);
        of_all.filter_map(|condition| equal_to_any(condition, at, text)).min_by_key(Vec::len)
    }

    /// Numbers of which every row that passes has one in a column of the scan's schema, where that is known.
    /// For a column of dictionary codes.
    pub fn numbers(&self, column: usize) -> Option<Vec<u32>> {
        let at = self.columns.binary_search(&column).ok()?;
        let of_all = self.conditions.iter().flat_map(split_conjunction);
        let lists = of_all.filter_map(|condition| equal_to_any(condition, at, number));
        lists.min_by_key(Vec::len)
    }

    /// Characters with which the text of every row that passes begins in a column of the scan's schema, where that is known.
    /// The longest prefix, if several conditions have one: of `LIKE '0%' AND LIKE '0a7%'` it is `0a7`.
    pub fn prefix(&self, column: usize) -> Option<&str> {
        let at = self.columns.binary_search(&column).ok()?;
        let of_all = self.conditions.iter().flat_map(split_conjunction);
        of_all.filter_map(|condition| prefix_of(condition, at)).max_by_key(|prefix| prefix.len())
    }

    /// What follows of it for the other columns than one, of the scan's schema; nothing where that is nothing.
    /// For a column that is slow to read: it is read of rows alone that pass the others.
    ///
    /// ```text
    /// cost > 7 OR (cost = 7 AND event_id > 'a')      without event_id    cost > 7 OR cost = 7
    /// cost > 7 OR event_id > 'a'                                         nothing
    /// event_id > 'a' AND 1 / cost > 7                                    nothing: it might fail where event_id says that it is not asked
    /// ```
    ///
    /// Errors: none that is expected; what the library says.
    pub fn without(&self, column: usize) -> Result<Option<Self>> {
        let Ok(at) = self.columns.binary_search(&column) else { return Ok(None) };
        let (conditions, hints) = self.conditions.split_at(self.hints_from);
        let implied = |of: &[Arc<dyn PhysicalExpr>]| {
            of.iter().filter_map(|condition| implied_without(condition, at)).collect()
        };
        let implied = Self::of(implied(conditions), implied(hints), &self.schema)?;
        Ok(implied.map(|implied| {
            let columns = implied.columns.iter().map(|column| self.columns[*column]).collect();
            Self { columns, ..implied }
        }))
    }

    /// Which of these values of a column of the scan's schema rows that pass may have; nothing where no condition looks at that column alone.
    ///
    /// Errors: what the library says of an expression.
    pub fn passing_values(&self, column: usize, values: &ArrayRef) -> Result<Option<BooleanArray>> {
        let Ok(at) = self.columns.binary_search(&column) else { return Ok(None) };
        let is_alone = |condition: &&Arc<dyn PhysicalExpr>| {
            let mut columns = collect_columns(condition).into_iter();
            columns.next().is_some_and(|found| found.index() == at) && columns.next().is_none()
        };
        let of_all = self.conditions.iter().flat_map(split_conjunction);
        let alone = of_all.filter(is_alone).map(Arc::clone).collect();
        let Some(alone) = Self::of(alone, Vec::new(), &self.schema)? else { return Ok(None) };
        alone.passing(vec![Arc::clone(values)], values.len()).map(Some)
    }

    /// Which rows pass, of their values of [`columns`](Self::columns). A condition is asked of rows alone that have passed
    /// those before it: `n <> 0 AND 10 / n > 3` divides by no zero. All pass a hint that cannot be computed for one of them, or that seems to leave out few.
    ///
    /// Errors: what the library says of a condition of the statement.
    pub fn passing(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<BooleanArray> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let mut left = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        let mut marks = vec![true; rows];
        for (at, condition) in self.conditions.iter().enumerate() {
            let is_hint = at >= self.hints_from;
            if is_hint && passes_nearly_all(condition, &left) {
                continue;
            }
            let passed = match passed_by(condition, &left) {
                Ok(passed) => passed,
                Err(_) if is_hint => continue,
                Err(error) => return Err(error),
            };
            if passed.true_count() == left.num_rows() {
                continue;
            }
            let mut each = passed.values().iter();
            let marked = marks.iter_mut().filter(|mark| **mark);
            marked.for_each(|mark| *mark = each.next().unwrap_or_default());
            left = filter_record_batch(&left, &passed)?;
            // What cannot be computed at all is no error where no row asks for it.
            if left.num_rows() == 0 {
                break;
            }
        }
        Ok(BooleanArray::from(marks))
    }
}

/// Which rows of a batch pass a condition: those for which it is true.
fn passed_by(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<BooleanArray> {
    let passed = condition.evaluate(rows)?.into_array(rows.num_rows())?;
    let passed = passed.as_boolean_opt().ok_or_else(|| {
        DataFusionError::Internal("a condition that is neither true nor false".to_owned())
    })?;
    Ok(match passed.null_count() {
        0 => passed.clone(),
        _ => prep_null_mask_filter(passed),
    })
}

/// Whether a hint is not worth its time: at least 7 of 8 rows of a sample pass. To look up the key of a row costs a join a good part of what it costs to hand
/// the row on, so a hint has to leave out some rows to pay; where exactly the two are equal differs from join to join.
///
/// False for few rows, and for a hint that counts the rows for which it is evaluated, each of which it may see once. True where it cannot be computed.
fn passes_nearly_all(hint: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> bool {
    let is_counting = || hint.exists(|part| Ok(part.is_volatile_node())).unwrap_or(true);
    if rows.num_rows() < SAMPLED_FROM || is_counting() {
        return false;
    }
    let sampled: UInt32Array = (0..rows.num_rows() as u32).step_by(SAMPLED_OF).collect();
    let passed = take_record_batch(rows, &sampled).map_err(DataFusionError::from);
    let passed = passed.and_then(|sample| passed_by(hint, &sample));
    passed.map_or(true, |passed| passed.true_count() * 8 >= passed.len() * 7)
}

/// A condition without parts that still change.
/// `transformed` says whether there were any.
fn as_it_is_now(condition: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    condition.transform_up(|part| match part.snapshot()? {
        Some(now) => Ok(Transformed::yes(now)),
        None => Ok(Transformed::no(part)),
    })
}

/// What is true wherever a condition is, of the other columns than one. Of conditions that cannot fail alone.
fn implied_without(
    condition: &Arc<dyn PhysicalExpr>,
    column: usize,
) -> Option<Arc<dyn PhysicalExpr>> {
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>()
        && let op @ (Operator::And | Operator::Or) = binary.op()
    {
        let of = |side| implied_without(side, column);
        return match (of(binary.left()), of(binary.right()), op) {
            (Some(left), Some(right), op) => Some(Arc::new(BinaryExpr::new(left, *op, right))),
            (left, right, Operator::And) => left.or(right),
            _ => None,
        };
    }
    let mut is_safe = true;
    let compares = |binary: &BinaryExpr| {
        use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
        matches!(
            binary.op(),
            Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
        )
    };
    condition
        .apply(|part| {
            is_safe &= match part.downcast_ref::<Column>() {
                Some(found) => found.index() != column,
                None => {
                    part.downcast_ref::<Literal>().is_some()
                        || part.downcast_ref::<IsNullExpr>().is_some()
                        || part.downcast_ref::<BinaryExpr>().is_some_and(compares)
                }
            };
            Ok(if is_safe { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })
        .ok()?;
    is_safe.then(|| Arc::clone(condition))
}

/// The values of which a column has to have one: `event_id = 'a'`, `event_id IN ('a', 'b')`.
///
/// `None` if a value is computed, or the list is one of `NOT IN`.
fn equal_to_any<'a, T>(
    condition: &'a Arc<dyn PhysicalExpr>,
    column: usize,
    value: fn(&'a Arc<dyn PhysicalExpr>) -> Option<T>,
) -> Option<Vec<T>> {
    let is_column = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Column>().is_some_and(|found| found.index() == column)
    };
    if let Some(list) = condition.downcast_ref::<InListExpr>() {
        let is_found = !list.negated() && is_column(list.expr());
        return is_found.then(|| list.list().iter().map(value).collect::<Option<_>>())?;
    }
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    match (binary.op(), is_column(binary.left()), is_column(binary.right())) {
        (Operator::Eq, true, _) => Some(vec![value(binary.right())?]),
        (Operator::Eq, _, true) => Some(vec![value(binary.left())?]),
        _ => None,
    }
}

/// The prefix that a pattern asks of a column: `0a7f` of `event_id LIKE '0a7f%'`, and of `LIKE '0a7f_1%'`, which asks more.
fn prefix_of(condition: &Arc<dyn PhysicalExpr>, column: usize) -> Option<&str> {
    let like = condition.downcast_ref::<LikeExpr>()?;
    let is_column = like.expr().downcast_ref::<Column>()?.index() == column;
    if !is_column || like.negated() || like.case_insensitive() {
        return None;
    }
    let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
    let prefix = pattern.split(['%', '_', '\\']).next()?;
    (!prefix.is_empty()).then_some(prefix)
}

/// A written text. Null equals none, as the empty one does: rows without an id or a user are null in a statement.
fn text(expr: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    Some(expr.downcast_ref::<Literal>()?.value().try_as_str()?.unwrap_or_default())
}

/// A number of a statement's dictionary.
fn number(expr: &Arc<dyn PhysicalExpr>) -> Option<u32> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::UInt32(number) => *number,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{StringViewArray, TimestampMillisecondArray},
        datatypes::{DataType, Field, Schema, TimeUnit},
    };
    use datafusion_physical_expr::expressions::{binary, col, in_list, lit};

    use super::*;
    use crate::tables::first_rows::FirstRows;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("user_id", DataType::Utf8View, true),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        ]))
    }

    fn at(ms: i64) -> Arc<dyn PhysicalExpr> {
        lit(ScalarValue::TimestampMillisecond(Some(ms), None))
    }

    fn compare(
        left: Arc<dyn PhysicalExpr>,
        op: Operator,
        right: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        binary(left, op, right, &schema()).unwrap()
    }

    #[test]
    fn values_of_which_a_row_has_one_are_found_in_lists_and_comparisons() {
        let schema = Schema::new(vec![
            Field::new("user_id", DataType::Utf8View, true),
            Field::new("number", DataType::UInt32, true),
        ]);
        let schema = Arc::new(schema);
        let list = |column: &str, values: Vec<ScalarValue>, negated| {
            let values = values.into_iter().map(lit).collect();
            in_list(col(column, &schema).unwrap(), values, &negated, &schema).unwrap()
        };
        let numbers = |values: &[u32]| values.iter().map(|n| ScalarValue::from(*n)).collect();
        let known = |condition| KnownFilter::of(vec![condition], vec![], &schema).unwrap().unwrap();
        let one_of = known(list("number", numbers(&[7, 9]), false));
        assert_eq!((one_of.numbers(1), one_of.texts(0)), (Some(vec![7, 9]), None));
        assert_eq!(known(list("number", numbers(&[7, 9]), true)).numbers(1), None);
        let users = ["a", "b"].map(ScalarValue::from).to_vec();
        let one_of = known(list("user_id", users, false));
        assert_eq!((one_of.numbers(0), one_of.texts(0)), (None, Some(vec!["a", "b"])));
        let equal = binary(lit(5u32), Operator::Eq, col("number", &schema).unwrap(), &schema);
        assert_eq!(known(equal.unwrap()).numbers(1), Some(vec![5]));
    }

    #[test]
    fn a_pattern_says_how_texts_begin() {
        let like = |negated, pattern: &str| -> Arc<dyn PhysicalExpr> {
            let user = col("user_id", &schema()).unwrap();
            Arc::new(LikeExpr::new(negated, false, user, lit(pattern)))
        };
        let prefix = |condition: Arc<dyn PhysicalExpr>| {
            let known = KnownFilter::of(vec![condition], vec![], &schema()).unwrap().unwrap();
            known.prefix(0).map(str::to_owned)
        };
        let of = |pattern| prefix(like(false, pattern));
        assert_eq!(of("0a7f%").as_deref(), Some("0a7f"));
        assert_eq!(of("0a_f%").as_deref(), Some("0a"));
        assert_eq!(of("0a\\%f").as_deref(), Some("0a"));
        assert_eq!(of("%0a"), None);
        assert_eq!(prefix(like(true, "0a%")), None);
        let both = compare(like(false, "0%"), Operator::And, like(false, "0a7%"));
        assert_eq!(prefix(both).as_deref(), Some("0a7"));
        assert_eq!(prefix(compare(like(false, "0%"), Operator::Or, like(false, "0a7%"))), None);
    }

    #[test]
    fn values_of_a_column_pass_by_the_conditions_on_it_alone() {
        let user = |op, text: &str| {
            let text = lit(ScalarValue::Utf8View(Some(text.to_owned())));
            compare(col("user_id", &schema()).unwrap(), op, text)
        };
        let late = compare(col("timestamp", &schema()).unwrap(), Operator::Gt, at(5));
        let or = compare(user(Operator::Eq, "b"), Operator::Or, late.clone());
        let all = compare(user(Operator::GtEq, "b"), Operator::And, late.clone());
        let conditions = vec![all, or, user(Operator::Lt, "d")];
        let known = KnownFilter::of(conditions, vec![], &schema()).unwrap().unwrap();
        let users: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c", "d"]));
        let passing = known.passing_values(0, &users).unwrap();
        assert_eq!(passing, Some(BooleanArray::from(vec![false, true, true, false])));
        let known = KnownFilter::of(vec![late], vec![], &schema()).unwrap().unwrap();
        assert_eq!(known.passing_values(0, &users).unwrap(), None);
    }

    #[test]
    fn conditions_without_a_column_are_true_wherever_all_are() {
        let schema = Schema::new(vec![
            Field::new("event_id", DataType::Utf8, true),
            Field::new("user_id", DataType::Utf8, true),
            Field::new("cost", DataType::Int64, true),
        ]);
        let schema = Arc::new(schema);
        let compare = |name: &str, op, value: ScalarValue| {
            binary(col(name, &schema).unwrap(), op, lit(value), &schema).unwrap()
        };
        let cost = |op| compare("cost", op, ScalarValue::from(7i64));
        let id = || compare("event_id", Operator::Gt, ScalarValue::from("a"));
        let join = |left, op, right| binary(left, op, right, &schema).unwrap();
        let without = |conditions: Vec<Arc<dyn PhysicalExpr>>| {
            let known = KnownFilter::of(conditions, vec![], &schema).unwrap().unwrap();
            known.without(0).unwrap().map(|known| {
                (known.columns, known.conditions.iter().map(ToString::to_string).collect())
            })
        };
        let tie = || join(cost(Operator::Eq), Operator::And, id());
        let after = || join(cost(Operator::Gt), Operator::Or, tie());
        let both = (vec![2], vec!["cost@0 > 7 OR cost@0 = 7".to_owned()]);
        assert_eq!(without(vec![after()]), Some(both.clone()));
        assert_eq!(without(vec![id(), after()]), Some(both));
        assert_eq!(without(vec![join(cost(Operator::Gt), Operator::Or, id())]), None);
        assert_eq!(without(vec![id()]), None);
        let ten = || lit(ScalarValue::from(10i64));
        let part = binary(ten(), Operator::Divide, col("cost", &schema).unwrap(), &schema).unwrap();
        assert_eq!(without(vec![id(), join(part, Operator::Gt, ten())]), None);
        // Nothing is said without the column.
        assert_eq!(without(vec![cost(Operator::Gt)]), None);
    }

    #[test]
    fn a_hint_that_leaves_out_few_rows_is_not_evaluated_for_all() {
        let times = TimestampMillisecondArray::from_iter_values(0..4_096);
        let passing = |conditions, hints| {
            let known = KnownFilter::of(conditions, hints, &schema()).unwrap().unwrap();
            assert_eq!(known.columns, [1]);
            let passing = known.passing(vec![Arc::new(times.clone())], times.len());
            passing.unwrap().true_count()
        };
        let from = |ms| compare(col("timestamp", &schema()).unwrap(), Operator::GtEq, at(ms));
        assert_eq!(passing(vec![], vec![from(400)]), 4_096);
        assert_eq!(passing(vec![], vec![from(2_000)]), 2_096);
        // A condition of the statement is checked here alone.
        assert_eq!(passing(vec![from(400)], vec![from(500)]), 3_696);
    }

    /// The earliest two of a sample would count twice, and rows behind the first of them would be left out.
    #[test]
    fn a_hint_that_counts_rows_sees_each_once() {
        let fields = [
            Field::new("number", DataType::UInt32, false),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        ];
        let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
        let column = |name: &str| col(name, &schema).unwrap();
        let first = FirstRows::new(vec![column("number")], column("timestamp"), false, 2);
        let known = KnownFilter::of(vec![], vec![Arc::new(first)], &schema).unwrap().unwrap();
        let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![7; SAMPLED_FROM]));
        let times = TimestampMillisecondArray::from_iter_values(0..SAMPLED_FROM as i64);
        let passing = known.passing(vec![numbers, Arc::new(times)], SAMPLED_FROM).unwrap();
        assert_eq!(passing.values().set_indices().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn without_a_condition_there_is_nothing_to_look_at() {
        let mut filters = ScanFilters::default();
        filters.add_hints([lit(true)]);
        assert!(filters.current(&schema()).unwrap().is_none());
    }
}
