//! Names for subqueries: what they come to when each is put where it is used.
//!
//! The planner does that, so twenty-five of them, each using the one before twice, would be thirty million.
//!
//! ```text
//! WITH a0 AS (SELECT 1 AS a),                                       weight 1
//!      a1 AS (SELECT * FROM a0 UNION ALL SELECT * FROM a0),         2
//!      a2 AS (SELECT * FROM a1 UNION ALL SELECT * FROM a1),         4
//!      …
//!      a6 AS (SELECT * FROM a5 UNION ALL SELECT * FROM a5)          64
//! SELECT * FROM a6                                                  64 uses, which is the limit
//! ```
//!
//! One more step and the statement is refused: `uses of tables, names in WITH put in place: at most 64`. With more than twenty names it is `names in
//! WITH: at most 20`, however they are used.

use std::{collections::HashMap, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{Ident, ObjectName, Query, Visit as _, Visitor};

use inlay_sql_protocol::Refusal;

/// Names for subqueries in a statement.
/// Each is a query that the planner plans even where nothing uses it.
const NAMED_MAX: usize = 20;
/// Uses of tables and names when all names are put in place.
/// A table counts 1, a name what its query comes to.
const USES_MAX: usize = 64;

/// Checks a statement.
///
/// Errors: when it has too many names, or comes to too much.
pub fn check(query: &Query) -> Result<(), Refusal> {
    let mut count = Count(0);
    let _: ControlFlow<()> = query.visit(&mut count);
    if count.0 > NAMED_MAX {
        return Err(Refusal::invalid(format!("names in WITH: at most {NAMED_MAX}")));
    }
    let mut names = Names { weights: HashMap::new() };
    if names.weigh(query) > USES_MAX {
        let message = format!("uses of tables, names in WITH put in place: at most {USES_MAX}");
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

/// Names for subqueries, wherever they are.
struct Count(usize);

impl Visitor for Count {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0 += query.with.iter().map(|with| with.cte_tables.len()).sum::<usize>();
        ControlFlow::Continue(())
    }
}

/// Weighs names: the number of tables that a plan reads once each name has been replaced by its query.
struct Names {
    /// What each name comes to. Of names that are used twice the heavier one counts.
    weights: HashMap<String, usize>,
}

impl Names {
    /// Learns what the names come to that a query makes.
    /// A query without tables counts 1 as well: it is a part of the plan.
    fn learn(&mut self, query: &Query) {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            let weight = self.weigh(&named.query).max(1);
            let slot = self.weights.entry(name_of(&named.alias.name)).or_default();
            *slot = weight.max(*slot);
        }
    }

    /// The uses of tables in a query, names replaced: 3 for `SELECT * FROM events JOIN a ON …` where `a` is `SELECT … FROM events JOIN events_daily`.
    fn weigh(&mut self, query: &Query) -> usize {
        self.learn(query);
        let mut uses = Uses { names: self, weight: 0 };
        // Not the whole query: its `WITH` was weighed by `learn`, and counts only as often as its names are used.
        let _: ControlFlow<()> = query.body.visit(&mut uses);
        if let Some(order_by) = &query.order_by {
            let _: ControlFlow<()> = order_by.visit(&mut uses);
        }
        uses.weight
    }
}

/// A name in lower case, quoted or not: `"A"` and `a` count as one name here, which can only make the sum larger.
fn name_of(name: &Ident) -> String {
    name.value.to_lowercase()
}

/// Adds up the weights of the tables and names that a part of a statement reads.
struct Uses<'a> {
    names: &'a mut Names,
    weight: usize,
}

impl Visitor for Uses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        // Names within are known before what uses them is counted.
        self.names.learn(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.0.last().and_then(|part| part.as_ident()).map(name_of);
        let weight = name.and_then(|name| self.names.weights.get(&name)).copied().unwrap_or(1);
        self.weight = self.weight.saturating_add(weight);
        ControlFlow::Continue(())
    }
}
