//! Widgets: checked when they are saved, answered when they are shown.
//!
//! ```text
//! {"id": "by_model", "kind": "stacked_bar", "title": "Requests by model", "layout": {"x": 0, "y": 9, "w": 7, "h": 6}, "viz": {},
//!  "query": {"event_name": "api_call", "metric": "count", "group_by": "model", "filters": {"status": ["ok"]}}}
//!
//! for acme, a viewer who chose 7d and the country DE, as an Ask:
//!     tenant acme, event_name api_call, metric count, group_by model, period 7d, granularity day (auto), limit 50,
//!     texts [status in [ok], country in [DE]]
//! ```
//!
//! What a query may have depends on the kind:
//!
//! ```text
//! kind                          over time                          must have                    must not have
//! number                        its sparkline                      metric                       group_by
//! line                          always                             metric
//! area                          always                             metric                       group_by
//! stacked_bar                   always                             group_by; count or sum
//! bar                           with granularity, or no group_by   metric
//! bar_list                      no                                 metric, group_by
//! donut                         no                                 group_by; count or sum
//! table                         no                                 group_by; metric or measures
//! funnel                        no                                 two steps or more            group_by
//! text                          no                                                              any query
//!
//! 400 {"field": "widgets[3].query.group_by", "code": "missing_field", "error": "group_by is required for donut"}
//! 400 {"field": "query.metric", "code": "invalid_field", "error": "donut needs a metric whose parts add up: count or sum"}
//! 400 {"field": "query.event_name", "code": "missing_field", "error": "event_name is required in a query"}
//! ```

use std::collections::BTreeMap;

use inlay_engine::{Granularity, Group, NumberFilter, TextFilter, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::{
    app::{
        analytics::query::{
            Ask, Compare, GROUPS_MAX, QueryAnswer, QueryRow, granularity, parse_filters,
            parse_granularity, parse_metric, parse_timezone,
        },
        periods::{parse_period, period_ms},
        request::{callers::Caller, context::App},
    },
    base::{civil, json as base_json},
    error::{ApiError, Code, Result},
    store::{OneOrMany, Widget},
};

/// Groups among which that of events without the property is looked for, for further measures of a table.
const GROUPS_SEARCHED_MAX: usize = 100_000;

/// Kinds of drawing of a widget.
pub const WIDGET_KINDS: [&str; 10] = [
    "number",
    "line",
    "area",
    "bar",
    "stacked_bar",
    "bar_list",
    "donut",
    "table",
    "text",
    "funnel",
];
/// Columns of the grid.
const COLUMNS: u32 = 12;
/// Rows of the grid, at most: more is a mistake.
const ROWS_MAX: u32 = 1_000;
/// Measures of a table or steps of a funnel, at most: each is a query of its own.
const MEASURES_MAX: usize = 20;
/// Groups of a chart when its query names no limit: what is drawn, and enough for "Other".
const CHART_GROUPS: usize = 50;
/// Series of a chart over time with groups, fetched so that the rest can be drawn as "Other".
const SERIES_GROUPS: usize = 50;

/// `query` of a widget, as it is stored.
///
/// Names are those of `GET /v1/query`, and `filters`, `measures` and `steps` besides. `granularity` may be `auto`. A field that is not here is
/// refused: a misspelt one would show other data than it says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WidgetQuery {
    event_name: Option<String>,
    metric: Option<String>,
    numeric_prop: Option<String>,
    period: Option<String>,
    granularity: Option<String>,
    group_by: Option<String>,
    #[serde(default)]
    filters: BTreeMap<String, OneOrMany>,
    limit: Option<usize>,
    compare: Option<String>,
    timezone: Option<String>,
    #[serde(default)]
    measures: Vec<WidgetMeasure>,
    #[serde(default)]
    steps: Vec<FunnelStep>,
}

/// A column of a table: `{"metric": "p95", "numeric_prop": "latency_ms", "label": "p95", "format": {"style": "duration"}}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WidgetMeasure {
    metric: String,
    numeric_prop: Option<String>,
    label: Option<String>,
    format: Option<Json>,
}

/// A step of a funnel: `{"event_name": "signup", "label": "Signed up"}`; the label is the event's name without one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FunnelStep {
    event_name: String,
    label: Option<String>,
}

/// Choices of a viewer, which narrow the query of every widget.
#[derive(Debug, Clone, Default)]
pub struct ViewFilters {
    /// Name of the period; replaces the period of each widget.
    pub period: Option<String>,
    /// Explicit window in milliseconds since 1970, the end excluded; replaces the period.
    pub range: Option<(i64, i64)>,
    /// Filters by string property, beside those of the widget; an event must pass all.
    pub texts: Vec<TextFilter>,
    /// Bounds of numeric properties; an event must pass all.
    pub numbers: Vec<NumberFilter>,
}

/// Data of a widget.
pub enum WidgetAnswer {
    /// Rows as of `GET /v1/query`, and the small line beside a number.
    Rows {
        /// Query that the rows answer; of a funnel that of the last step.
        ask: Box<Ask>,
        /// Result of the query; of a funnel with the rows of all steps.
        answer: Box<QueryAnswer>,
        /// Rows of the same query over time; `None` unless a number has a sparkline.
        spark: Option<Vec<QueryRow>>,
    },
    /// A table of several measures: for each group one value a measure.
    Table {
        /// Query of the first measure.
        ask: Box<Ask>,
        /// Result of the first measure, for `meta`.
        answer: Box<QueryAnswer>,
        /// Label, metric, number and format of each measure.
        measures: Vec<Json>,
        /// Groups with their values.
        rows: Vec<(Group, Vec<Value>)>,
    },
    /// Text, which has no data.
    Nothing,
}

/// Checks a widget. `path` is where it stands in the request, for error fields.
///
/// `path` is empty for a request that is a widget, and `widgets[3].` in a dashboard. Drawing options are not checked: names that mean
/// nothing are stored and ignored.
///
/// Errors: the first fault of the widget, with its field.
pub fn validate(widget: &Widget, path: &str) -> Result<()> {
    let at = |field: &str| format!("{path}{field}");
    let invalid = |field: &str, message: &str| {
        ApiError::field(Code::InvalidField, at(field), message.to_owned())
    };
    if widget.id.is_empty() || widget.id.len() > 128 || widget.id.chars().any(char::is_control) {
        return Err(invalid("id", "id must have 1 to 128 bytes"));
    }
    // It stands in paths, where these mean something else.
    if widget.id == "." || widget.id == ".." {
        return Err(invalid("id", "id must not be . or .."));
    }
    if widget.title.chars().count() > 200 {
        return Err(invalid("title", "title must have at most 200 characters"));
    }
    if !WIDGET_KINDS.contains(&widget.kind.as_str()) {
        return Err(ApiError::unknown_value(&at("kind"), &widget.kind, WIDGET_KINDS));
    }
    let layout = widget.layout;
    if layout.w == 0
        || layout.h == 0
        || layout.x.saturating_add(layout.w) > COLUMNS
        || layout.x >= COLUMNS
    {
        return Err(invalid(
            "layout",
            "layout must lie on 12 columns: x from 0, w and h from 1, x + w up to 12",
        ));
    }
    if layout.y >= ROWS_MAX || layout.h > ROWS_MAX {
        return Err(invalid(
            "layout",
            "layout must lie on 1,000 rows: y from 0 to 999, h up to 1,000",
        ));
    }
    check_query(widget, &at("query"))
}

/// The query of a widget as a type. Errors: a field that is unknown or of another type, with its path below `path`.
fn read_query(query: &Map<String, Json>, path: &str) -> Result<WidgetQuery> {
    serde_path_to_error::deserialize(Json::Object(query.clone())).map_err(|error| {
        let (field, code, message) = base_json::explain(&error);
        let field = field.map_or_else(|| path.to_owned(), |field| format!("{path}.{field}"));
        ApiError::field(code, field, message)
    })
}

/// Checks a query against the table at the head of this file.
fn check_query(widget: &Widget, path: &str) -> Result<()> {
    let query = read_query(&widget.query, path)?;
    let at = |field: &str| format!("{path}.{field}");
    let missing = |field: &str, why: &str| {
        Err(ApiError::field(Code::MissingField, at(field), format!("{field} is required {why}")))
    };
    let refused = |field: &str, why: &str| {
        Err(ApiError::field(Code::InvalidField, at(field), why.to_owned()))
    };
    let kind = widget.kind.as_str();
    if kind == "text" {
        return match widget.query.keys().next() {
            Some(field) => refused(field, "a text asks nothing"),
            None => Ok(()),
        };
    }
    if kind == "funnel" {
        if query.steps.len() < 2 {
            return missing("steps", "with at least two steps");
        }
    } else if query.event_name.as_deref().is_none_or(str::is_empty) {
        return missing("event_name", "in a query");
    }
    if query.measures.len() > MEASURES_MAX || query.steps.len() > MEASURES_MAX {
        let field = if query.steps.is_empty() { "measures" } else { "steps" };
        let message = format!("{field} has at most {MEASURES_MAX} entries");
        return Err(ApiError::field(Code::OutOfRange, at(field), message));
    }
    if !query.measures.is_empty() && kind != "table" {
        return refused("measures", "only a table takes measures");
    }
    if !query.steps.is_empty() && kind != "funnel" {
        return refused("steps", "only a funnel takes steps");
    }
    match &query.metric {
        Some(metric) => {
            parse_metric(&at("metric"), metric, query.numeric_prop.as_deref())?;
        }
        None if query.measures.is_empty() && kind != "funnel" => {
            return missing("metric", "in a query");
        }
        None => {}
    }
    for (index, measure) in query.measures.iter().enumerate() {
        let field = at(&format!("measures[{index}].metric"));
        parse_metric(&field, &measure.metric, measure.numeric_prop.as_deref())?;
    }
    if let Some(period) = &query.period {
        parse_period(&at("period"), period)?;
    }
    if let Some(name) = query.granularity.as_deref().filter(|name| *name != "auto") {
        parse_granularity(&at("granularity"), name)?;
    }
    if let Some(name) = &query.timezone {
        parse_timezone(&at("timezone"), name)?;
    }
    if query.limit.is_some_and(|limit| !(1..=GROUPS_MAX).contains(&limit)) {
        return Err(ApiError::field(
            Code::OutOfRange,
            at("limit"),
            format!("limit must be from 1 to {GROUPS_MAX}"),
        ));
    }
    match query.compare.as_deref() {
        None | Some("none" | "previous") => {}
        Some(other) => {
            return Err(ApiError::unknown_value(&at("compare"), other, ["none", "previous"]));
        }
    }
    let is_additive = matches!(query.metric.as_deref(), Some("count" | "sum"));
    match kind {
        "number" | "area" | "funnel" if query.group_by.is_some() => {
            refused("group_by", &format!("{kind} shows one series"))
        }
        "bar_list" | "donut" | "stacked_bar" | "table" if query.group_by.is_none() => {
            missing("group_by", &format!("for {kind}"))
        }
        "donut" | "stacked_bar" if !is_additive => {
            refused("metric", &format!("{kind} needs a metric whose parts add up: count or sum"))
        }
        _ => Ok(()),
    }
}

/// A widget that is answered without being saved.
///
/// `POST /v1/widgets/preview/data` fills it in while an editor types; `GET …/widgets/{widget_id}/data` from a draft.
pub struct Preview {
    /// Definition of the widget, checked like one to be saved.
    pub widget: Widget,
    /// Tenant whose events are read; `None` is all tenants, which API keys may not ask for.
    pub tenant: Option<String>,
    /// Name of a period that replaces the period of the widget.
    pub period: Option<String>,
    /// Accepted values by string property, beside the filters of the widget.
    pub filters: BTreeMap<String, OneOrMany>,
}

/// Period of a preview that names none.
const PREVIEW_PERIOD: &str = "30d";

impl App {
    /// Answers a widget that is not saved.
    ///
    /// Errors: faults of the widget under `widget.`, of the period as `overrides.period`; a key that names no tenant.
    pub fn preview_widget(&self, caller: &Caller, preview: &Preview) -> Result<WidgetAnswer> {
        validate(&preview.widget, "widget.")?;
        if preview.tenant.is_none() && caller.is_key() {
            return Err(ApiError::field(Code::MissingField, "tenant_id", "tenant_id is required"));
        }
        if let Some(period) = &preview.period {
            parse_period("overrides.period", period)?;
        }
        let filters = preview
            .filters
            .iter()
            .map(|(name, accepted)| (name.clone(), accepted.values()))
            .collect();
        let view = ViewFilters {
            period: preview.period.clone(),
            texts: parse_filters(&filters),
            ..ViewFilters::default()
        };
        let (namespace, tenant) = (caller.environment.namespace(), preview.tenant.as_deref());
        self.widget_answer(namespace, tenant, &preview.widget, &view, PREVIEW_PERIOD)
    }

    /// Answers a widget for a tenant under a viewer's filters.
    ///
    /// The period of `view` goes before that of the widget, that before `default_period`. The widget was checked when it was saved.
    pub fn widget_answer(
        &self,
        namespace: inlay_engine::Namespace,
        tenant: Option<&str>,
        widget: &Widget,
        view: &ViewFilters,
        default_period: &str,
    ) -> Result<WidgetAnswer> {
        let query = read_query(&widget.query, "query")?;
        if widget.kind == "text" {
            return Ok(WidgetAnswer::Nothing);
        }
        let ask = ask_of(widget, &query, tenant, view, default_period);
        if widget.kind == "funnel" {
            return self.funnel(namespace, &ask, &query);
        }
        if !query.measures.is_empty() {
            return self.table(namespace, &ask, &query);
        }
        let answer = self.answer(namespace, &ask)?;
        let wants_spark =
            widget.kind == "number" && widget.viz.get("sparkline") == Some(&Json::Bool(true));
        let spark = if wants_spark {
            let granularity = Some(auto_granularity(&ask));
            // The sparkline shows the window itself: what came before it is in the number's change.
            let ask = Ask { granularity, compare: None, ..ask.clone() };
            Some(self.answer(namespace, &ask)?.rows)
        } else {
            None
        };
        Ok(WidgetAnswer::Rows { ask: Box::new(ask), answer: Box::new(answer), spark })
    }

    /// The first measure decides which groups are shown; the others are asked for just these.
    ///
    /// Of 20 measures over `country` the first is asked with the widget's limit; the others have a filter on the countries that it gave.
    fn table(
        &self,
        namespace: inlay_engine::Namespace,
        ask: &Ask,
        query: &WidgetQuery,
    ) -> Result<WidgetAnswer> {
        let ask_measure = |measure: &WidgetMeasure| Ask {
            metric: measure.metric.clone(),
            numeric_prop: measure.numeric_prop.clone(),
            compare: None,
            explain: false,
            ..ask.clone()
        };
        let first_ask = ask_measure(&query.measures[0]);
        let first = self.answer(namespace, &first_ask)?;
        let mut rows: Vec<(Group, Vec<Value>)> =
            first.rows.iter().map(|row| (row.group.clone().flatten(), vec![row.value])).collect();
        for measure in query.measures.iter().skip(1) {
            let ask = Ask { limit: GROUPS_MAX, ..ask_measure(measure) };
            let mut values: BTreeMap<Group, Value> = BTreeMap::new();
            let mut add = |ask: &Ask| -> Result<()> {
                let answer = self.answer(namespace, ask)?;
                values.extend(answer.rows.into_iter().map(|row| (row.group.flatten(), row.value)));
                Ok(())
            };
            // The groups of the first measure alone, however many there are: `plan` of `pro` or `team`.
            let named: Vec<String> =
                rows.iter().filter_map(|(group, _)| group.as_deref().map(str::to_owned)).collect();
            let has_nameless = named.len() < rows.len();
            if let Some(group_by) = ask.group_by.clone().filter(|_| !named.is_empty()) {
                let mut of_named = ask.clone();
                of_named.texts.push(TextFilter { name: group_by, any_of: named });
                add(&of_named)?;
            }
            // Events without the property cannot be filtered for: their group is looked for among all.
            if has_nameless {
                add(&Ask { limit: GROUPS_SEARCHED_MAX, ..ask })?;
            }
            for (group, row) in &mut rows {
                row.push(values.get(group).copied().unwrap_or(Value::Null));
            }
        }
        let measures = query
            .measures
            .iter()
            .map(|measure| {
                serde_json::json!({
                    "label": measure.label.as_deref().unwrap_or(&measure.metric),
                    "metric": measure.metric, "numeric_prop": measure.numeric_prop, "format": measure.format,
                })
            })
            .collect();
        Ok(WidgetAnswer::Table {
            ask: Box::new(first_ask),
            answer: Box::new(first),
            measures,
            rows,
        })
    }

    /// Distinct users of each step, independently of each other.
    ///
    /// `[signup, invite, pay]` are three queries, by default for `count_unique`: a user who paid without an invite counts in the third.
    fn funnel(
        &self,
        namespace: inlay_engine::Namespace,
        ask: &Ask,
        query: &WidgetQuery,
    ) -> Result<WidgetAnswer> {
        let mut rows = Vec::new();
        let mut last = None;
        for step in &query.steps {
            let ask = Ask {
                event_name: step.event_name.clone(),
                metric: query.metric.clone().unwrap_or_else(|| "count_unique".to_owned()),
                granularity: None,
                compare: None,
                explain: false,
                ..ask.clone()
            };
            let answer = self.answer(namespace, &ask)?;
            let label = step.label.as_deref().unwrap_or(&step.event_name);
            rows.extend(
                answer
                    .rows
                    .iter()
                    .map(|row| QueryRow { group: Some(Some(label.into())), ..row.clone() }),
            );
            last = Some((ask, answer));
        }
        let Some((ask, answer)) = last else { return Ok(WidgetAnswer::Nothing) };
        let answer = QueryAnswer { rows, ..answer };
        Ok(WidgetAnswer::Rows { ask: Box::new(ask), answer: Box::new(answer), spark: None })
    }
}

/// The query for a widget's metric as one number over a window: all groups together.
///
/// An alert's query: without buckets, groups and comparison, over the window that the rule says.
///
/// Errors: a query that cannot be read, since it was stored by a newer build.
pub fn watch_ask(widget: &Widget, tenant: Option<&str>, range: (i64, i64)) -> Result<Ask> {
    let query = read_query(&widget.query, "query")?;
    let view = ViewFilters { range: Some(range), ..ViewFilters::default() };
    let ask = ask_of(widget, &query, tenant, &view, PREVIEW_PERIOD);
    Ok(Ask { granularity: None, group_by: None, compare: None, explain: false, ..ask })
}

/// The query of a widget for a tenant and a viewer's choices.
fn ask_of(
    widget: &Widget,
    query: &WidgetQuery,
    tenant: Option<&str>,
    view: &ViewFilters,
    default_period: &str,
) -> Ask {
    let own: BTreeMap<String, Vec<String>> =
        query.filters.iter().map(|(name, accepted)| (name.clone(), accepted.values())).collect();
    let mut texts = parse_filters(&own);
    texts.extend(view.texts.iter().cloned());
    let period =
        view.period.as_ref().or(query.period.as_ref()).map_or(default_period, String::as_str);
    let mut ask = Ask {
        tenant: tenant.map(str::to_owned),
        event_name: query.event_name.clone().unwrap_or_default(),
        metric: query.metric.clone().unwrap_or_else(|| "count".to_owned()),
        numeric_prop: query.numeric_prop.clone(),
        period: Some(period.to_owned()),
        range: view.range,
        granularity: None,
        group_by: query.group_by.clone(),
        texts,
        numbers: view.numbers.clone(),
        limit: query.limit.unwrap_or(CHART_GROUPS),
        fill: true,
        compare: (query.compare.as_deref() == Some("previous")).then_some(Compare::Previous),
        explain: false,
        timezone: query.timezone.as_deref().and_then(civil::zone),
    };
    let over_time = match widget.kind.as_str() {
        "line" | "area" | "stacked_bar" => true,
        "bar" => query.granularity.is_some() || query.group_by.is_none(),
        _ => false,
    };
    if over_time {
        let named = query.granularity.as_deref().and_then(granularity);
        ask.granularity = Some(named.unwrap_or_else(|| auto_granularity(&ask)));
        // A chart draws a few series and the others as one: it needs these to draw them.
        ask.limit = if ask.group_by.is_some() { ask.limit.max(SERIES_GROUPS) } else { ask.limit };
    } else if matches!(widget.kind.as_str(), "donut" | "bar_list" | "bar") {
        ask.limit = ask.limit.max(CHART_GROUPS);
    }
    ask
}

/// Hours up to a day, days up to 120, weeks beyond.
fn auto_granularity(ask: &Ask) -> Granularity {
    const DAY_MS: i64 = 86_400_000;
    let length = match ask.range {
        Some((from, to)) => to - from,
        None => ask.period.as_deref().and_then(period_ms).unwrap_or(DAY_MS),
    };
    match length {
        ..=DAY_MS => Granularity::Hour,
        _ if length <= 120 * DAY_MS => Granularity::Day,
        _ => Granularity::Week,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_lies_on_the_grid() {
        let fault = |x: u32, y: u32, w: u32, h: u32| {
            let query = serde_json::json!({"event_name": "api_call", "metric": "count"});
            let layout = serde_json::json!({"x": x, "y": y, "w": w, "h": h});
            let widget = serde_json::json!({"id": "a", "kind": "number", "title": "", "query": query, "viz": {}, "layout": layout});
            let widget: Widget = serde_json::from_value(widget).unwrap();
            validate(&widget, "").err().and_then(|error| error.field)
        };
        assert_eq!(fault(11, 999, 1, 1_000), None);
        for (x, y, w, h) in
            [(11, 0, 2, 1), (12, 0, 1, 1), (0, 0, 0, 1), (0, 1_000, 1, 1), (0, 0, 1, 1_001)]
        {
            assert_eq!(fault(x, y, w, h).as_deref(), Some("layout"), "{x} {y} {w} {h}");
        }
    }
}
