//! Names of an answer's columns where the statement gives none.
//!
//! The planner would call `SELECT avg(numeric_props['ms']), avg(numeric_props['ms'])` twice by the same long name, which it then
//! refuses. Here each gets the short name that PostgreSQL has, and behind a NUL, which no statement can hold, its position:
//!
//! ```text
//! SELECT avg(numeric_props['ms']) AS "avg␀0", avg(numeric_props['ms']) AS "avg␀1"
//! ```
//!
//! [`shown`] takes the position off. A column of a table that is named once has its own name.
//!
//! ```text
//! SELECT tenant_id, e.user_id                              tenant_id, user_id         as they are
//! SELECT tenant_id, tenant_id                              tenant_id, tenant_id␀1     the second has another name inside
//! SELECT 1 AS a, 2 AS a                                    a, a␀1
//! SELECT *, tenant_id                                      *, tenant_id␀1             the star has a column of this name
//! SELECT CAST(x AS DATE), (y), (SELECT max(z) FROM t)      x␀0, y␀1, max␀2
//! SELECT numeric_props['ms'], CASE WHEN a THEN b END       ms␀0, case␀1
//! SELECT a + 1, 'text'                                     a + 1␀0, 'text'␀1          by what is written
//! ```
//!
//! Since the name inside differs from the name shown, an expression in `ORDER BY` that is selected, too, is replaced by its position.

use std::collections::HashSet;

use datafusion_sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Subscript,
    Value,
};

/// Between a name and the position of its column.
/// [`admit`](crate::gate::admit) refuses statements with a NUL, so no name of a statement has one.
const MARK: char = '\0';

/// Gives a name to each column of the answer that has none, or one that another has already.
///
/// Only of the answer, through brackets and unions: subqueries keep the names that the planner gives them, which other parts of the statement may use.
pub fn name_columns(query: &mut Query) {
    order_by_position(query);
    name_body(&mut query.body);
}

/// An expression that is ordered by and selected too is ordered by as that column.
///
/// `SELECT tenant_id, count(*) … ORDER BY count(*) DESC` becomes `… ORDER BY 2 DESC`. Columns stay, since they are found by their own name, and so do
/// constants: `ORDER BY 1` is a position already.
fn order_by_position(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(orders), .. }) = &mut query.order_by else {
        return;
    };
    // Behind a star nobody knows the position.
    let known = select.projection.iter().map_while(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let selected: Vec<&Expr> = known.collect();
    for order in orders {
        let is_column = matches!(order.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        let is_value = matches!(order.expr, Expr::Value(_));
        let at = selected.iter().position(|expr| **expr == order.expr);
        if let Some(at) = at.filter(|_| !is_column && !is_value) {
            order.expr = Expr::value(Value::Number((at + 1).to_string(), false));
        }
    }
}

/// A column's name without its position.
/// `avg␀1` is shown as `avg`, `tenant_id` as `tenant_id`.
pub fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// A message without positions behind names.
/// `no field "count␀12" in x` becomes `no field "count" in x`.
pub fn without_positions(message: &str) -> String {
    let mut parts = message.split(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// Names the columns of each SELECT of a query without those of its subqueries. Of a union each side is named; the left one gives the names.
fn name_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_items(select),
        SetExpr::Query(query) => name_body(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left);
            name_body(right);
        }
        _ => {}
    }
}

/// Names the columns of one SELECT. A name that is written twice is marked at its second use.
fn name_items(select: &mut Select) {
    let is_wildcard = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let mut used = HashSet::new();
    for (at, item) in select.projection.iter_mut().enumerate() {
        let marked = |name: &str| Ident::with_quote('"', format!("{name}{MARK}{at}"));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                // Behind a star even the first of a name may be the second: the star's columns are not known here.
                let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let is_first = used.insert(expr.to_string().to_lowercase());
                if !is_column || !is_first || has_wildcard {
                    let alias = marked(&name_of(expr));
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
            SelectItem::ExprWithAlias { alias, .. } if !used.insert(alias.value.to_lowercase()) => {
                *alias = marked(&alias.value);
            }
            _ => {}
        }
    }
}

/// The name of an expression: of the function, the property, the column, or what is written.
///
/// As in PostgreSQL it is `avg` for `avg(x)`, `x` for `x::date`, `max` for `(SELECT max(z) FROM t)`. A property has the name of its key: `ms` for
/// `numeric_props['ms']`. What has no such name is called as it is written, after patterns and rows were rewritten: `x SIMILAR TO 'a%'` is `x ~
/// '^(?s:a.*)$'`.
fn name_of(expr: &Expr) -> String {
    let name = match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => return name_of(inner),
        Expr::AtTimeZone { timestamp, .. } => return name_of(timestamp),
        Expr::Identifier(ident) => Some(ident.value.clone()),
        Expr::CompoundIdentifier(idents) => idents.last().map(|ident| ident.value.clone()),
        Expr::CompoundFieldAccess { access_chain, .. } => access_chain.last().and_then(key_of),
        Expr::Function(function) => {
            let ident = function.name.0.last().and_then(|part| part.as_ident());
            ident.map(|ident| ident.value.to_lowercase())
        }
        Expr::Case { .. } => Some("case".to_owned()),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Trim { .. } => Some("trim".to_owned()),
        Expr::Exists { .. } => Some("exists".to_owned()),
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => return name_of(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => Some(alias.value.clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| expr.to_string())
}

/// The name in `numeric_props['ms']` or `row.ms`.
/// Both are `ms`. A number or something computed, as in `list[1]`, gives no name.
fn key_of(access: &AccessExpr) -> Option<String> {
    let (AccessExpr::Dot(key) | AccessExpr::Subscript(Subscript::Index { index: key })) = access
    else {
        return None;
    };
    match key {
        Expr::Identifier(ident) => Some(ident.value.clone()),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
