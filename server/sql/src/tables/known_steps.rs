//! Times at which a statement's expressions of the time have another value, as far as they were computed.
//!
//! ```text
//! extract(hour FROM timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')     each hour
//! date_trunc('month', timestamp)                                                      2026-08-01, 2026-09-01, 2026-10-01
//! extract(minute FROM timestamp)                                                      nothing is known
//! ```
//!
//! Rules ask for the same expressions in each of their passes, and all hours of a table's times take milliseconds to compute: the tables of a
//! statement share what was found.

use std::{collections::HashMap, sync::Arc};

use datafusion_expr::Expr;
use inlay_engine::rows::TimeBuckets;
use parking_lot::Mutex;

/// Buckets of an expression of the time.
#[derive(Clone)]
pub struct Steps {
    /// In each of which it has one value.
    pub buckets: TimeBuckets,
    /// Whether no two buckets have the same value.
    pub is_injective: bool,
}

/// Steps of expressions; nothing for those of which none are known. Copies are the same list.
#[derive(Clone, Default)]
pub struct KnownSteps(Arc<Mutex<HashMap<Expr, Option<Steps>>>>);

impl KnownSteps {
    /// What was found for an expression, if it was looked for.
    pub fn get(&self, expr: &Expr) -> Option<Option<Steps>> {
        self.0.lock().get(expr).cloned()
    }

    /// Notes what was found.
    pub fn insert(&self, expr: Expr, found: Option<Steps>) {
        self.0.lock().insert(expr, found);
    }
}
