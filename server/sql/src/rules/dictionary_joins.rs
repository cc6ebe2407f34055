//! Optimizer rule: joins compare dictionary codes instead of texts, and skip keys that are constant.
//!
//! `FROM events v JOIN events x ON x.tenant_id = v.tenant_id AND x.user_id = v.user_id WHERE v.tenant_id = 'acme'` has rows of
//! one tenant on both sides, since DataFusion has pushed the condition to both: tenants need not be compared. Users
//! of both sides come from the table, which has codes for them: a code is hashed and compared several times as fast as
//! a text.
//!
//! ```text
//! Inner Join: a.tenant_id = b.tenant_id, a.user_id = b.user_id
//!   SubqueryAlias: a
//!     TableScan: events projection=[tenant_id, user_id], full_filters=[events.tenant_id = Utf8View("acme")]
//!   SubqueryAlias: b
//!     TableScan: events projection=[tenant_id, user_id], full_filters=[events.tenant_id = Utf8View("acme")]
//!
//! Projection: a.tenant_id, a.user_id, b.tenant_id, b.user_id
//!   Inner Join: a.number of user_id = b.number of user_id
//!     SubqueryAlias: a
//!       TableScan: events projection=[tenant_id, user_id, number of user_id], full_filters=[events.tenant_id = Utf8View("acme")]
//!     SubqueryAlias: b
//!       TableScan: events projection=[tenant_id, user_id, number of user_id], full_filters=[events.tenant_id = Utf8View("acme")]
//! ```
//!
//! Where one side has no numbers, as groups that were added up early, its texts are looked up:
//!
//! ```text
//! e.tenant_id = b.tenant_id, e.user_id = b.user_id
//! e.number of tenant_id = number_of(b.tenant_id), e.number of user_id = number_of(b.user_id)
//! ```
//!
//! `a.tenant_id = b.user_id` stays a comparison of texts: the dictionary of one column says nothing of the other's numbers.

use std::sync::Arc;

use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::{Expr, Join, LogicalPlan, Projection};
use datafusion_optimizer::ApplyOrder;

use super::{
    dictionary_columns::{is_text, numbered, plain, with_inputs},
    known_values::known_values,
    rewrite::{NodeRule, is_of_groups},
};
use crate::tables::{StatementDictionary, number_column, number_of};

/// Replaces texts by their numbers in the keys of joins.
pub const DICTIONARY_JOINS: NodeRule = NodeRule {
    name: "join_by_numbers",
    order: ApplyOrder::BottomUp,
    rewrite: |plan| match plan {
        LogicalPlan::Join(join) => rewritten(join),
        _ => Ok(None),
    },
};

/// An input with the number of one of its columns, and what numbers stand for: the plan, `e.number of user_id`, the dictionary of
/// `user_id`.
type WithNumber = (LogicalPlan, (Column, Arc<StatementDictionary>));

/// The join by fewer keys or by numbers; nothing where all keys stay as they are.
fn rewritten(join: &Join) -> Result<Option<LogicalPlan>> {
    let mut on = telling(join);
    let (mut left, mut right) = (Arc::clone(&join.left), Arc::clone(&join.right));
    let mut is_numbered = false;
    // Inputs grow from key to key: each adds a number column to one or both.
    for (left_key, right_key) in &mut on {
        let (Some(of_left), Some(of_right)) = (plain(left_key), plain(right_key)) else { continue };
        if !is_text(left.schema(), of_left) || !is_text(right.schema(), of_right) {
            continue;
        }
        let one = |input: &LogicalPlan, column: &Column| -> Result<Option<WithNumber>> {
            let found = numbered(input, std::slice::from_ref(column))?;
            Ok(found.and_then(|(input, mut numbers)| Some((input, numbers.pop()?))))
        };
        let (found_left, found_right) = (one(&left, of_left)?, one(&right, of_right)?);
        let codes = match (&found_left, &found_right) {
            // Numbers of another column stand for other texts.
            (Some((_, (_, left))), Some((_, (_, right)))) if !Arc::ptr_eq(left, right) => continue,
            (Some((_, (_, codes))), Some(_)) => Arc::clone(codes),
            (Some((_, (number, codes))), None) if pays(number, &left, &right) => Arc::clone(codes),
            (None, Some((_, (number, codes)))) if pays(number, &right, &left) => Arc::clone(codes),
            _ => continue,
        };
        // Texts that do not come straight from a table are looked up.
        let looked_up = number_of(&codes);
        let number = |key: &mut Expr, input: &mut Arc<LogicalPlan>, found: Option<WithNumber>| {
            *key = match found {
                Some((with_number, (number, _))) => {
                    *input = Arc::new(with_number);
                    Expr::Column(number)
                }
                None => looked_up.call(vec![key.clone()]),
            };
        };
        number(left_key, &mut left, found_left);
        number(right_key, &mut right, found_right);
        is_numbered = true;
    }
    if !is_numbered && on.len() == join.on.len() {
        return Ok(None);
    }
    let Some(plan) = with_inputs(join, left, right, on) else { return Ok(None) };
    if !is_numbered {
        return Ok(Some(plan));
    }
    // The statement's own columns, without those of numbers.
    let columns = join.schema.iter().map(|field| Expr::Column(Column::from(field))).collect();
    Ok(Projection::try_new(columns, Arc::new(plan)).ok().map(LogicalPlan::Projection))
}

/// Whether texts of an input without numbers are better looked up than compared. `number` is the number column of the
/// side that has numbers.
///
/// Users are many, and to look one up takes as long as to compare texts: it pays where each is looked up once, and joined with many rows.
fn pays(number: &Column, numbered: &LogicalPlan, other: &LogicalPlan) -> bool {
    !number.name.starts_with(&number_column("user_id"))
        || is_of_groups(other) && !is_of_groups(numbered)
}

/// The keys of a join without those that are the same in all rows of both inputs; one is left.
///
/// ```text
/// a.tenant_id = b.tenant_id, a.user_id = b.user_id     both sides of acme alone     a.user_id = b.user_id
/// a.tenant_id = b.tenant_id                            both sides of acme alone     stays: a join by hash needs a key
/// ```
fn telling(join: &Join) -> Vec<(Expr, Expr)> {
    let mut on = join.on.clone();
    // Whether a key is null decides there.
    if join.null_aware {
        return on;
    }
    let is_same = |(left, right): &(Expr, Expr)| {
        let left = plain(left).and_then(|column| constant(&join.left, column));
        let right = plain(right).and_then(|column| constant(&join.right, column));
        left.is_some() && left == right
    };
    let some_differ = !on.iter().all(is_same);
    let mut is_first = !some_differ;
    on.retain(|pair| !is_same(pair) || std::mem::take(&mut is_first));
    on
}

/// What a column is in all rows of a plan, where its conditions say so; never null.
fn constant(plan: &LogicalPlan, column: &Column) -> Option<ScalarValue> {
    match &*known_values(plan, column)? {
        [value] => Some(value.clone()),
        _ => None,
    }
}
