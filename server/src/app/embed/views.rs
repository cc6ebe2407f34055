//! What a viewer is answered: the dashboard as he may see it, data of its widgets, values to filter
//! by, and one slice of a widget broken down further.
//!
//! Every answer is asked of the one gate to data with the viewer's tenant and locks; see
//! `limits` for what may be asked.
//!
//! ```text
//! GET  /v1/embed/dashboard    200 {"id": "0190…", "name": "Usage", "widgets": […], "periods": ["24h", "7d", "30d", "90d"], "allows_dates": true,
//!                                  "offered": {"dimensions": ["plan"], "numbers": []}, "expires_in_seconds": 599, …}
//! POST /v1/embed/data {"widgets": ["calls"], "filters": {"dimensions": {"plan": "pro"}}}
//!                             200 {"widgets": {"calls": {"data": [{"value": 5}], "meta": {…}}}, "expires_in_seconds": 599}
//! POST /v1/embed/values {"dimension": "plan"}
//!                             200 {"values": [{"value": "pro", "count": 5}, {"value": "free", "count": 3}], "has_more": false}
//!                  {…, "search": "REE"}    {"values": [{"value": "free", "count": 3}], "has_more": false}
//! POST /v1/embed/detail {"widget": "plans", "dimension": "plan", "value": "pro"}
//!                             200 {"total": …, "course": …, "breakdowns": [{"dimension": "status", "answer": …}]}
//! 403 {"code": "embed_permission", "error": "this session shows no widget \"secret\"", …}      hidden, or not there
//! 409 {"code": "not_published", "error": "this dashboard is not published", …}
//! ```

use std::collections::BTreeMap;

use inlay_engine::{TextFilter, Value};
use serde_json::json;

use super::{
    limits::{
        self, Offered, WireFilters, allowed_periods, allows_dates, broken, check_dimension,
        check_period, locks, offered_periods, offered_properties,
    },
    sessions::Viewer,
};
use crate::{
    app::{
        analytics::query::GROUPS_MAX,
        dashboards::widgets::{ViewFilters, WidgetAnswer},
        request::context::App,
    },
    error::{ApiError, Code, Result},
    store::{Dashboard, DashboardConfig, Widget},
};

/// Questions for the values of one property, at most: one for each event and filters of a widget.
const PARTS_MAX: usize = 16;
/// Values offered at once; a search finds the others.
const VALUES_MAX: usize = 100;
/// Properties that a slice is broken down by, at most.
const BREAKDOWNS_MAX: usize = 6;
/// Groups of each of them.
const BREAKDOWN_GROUPS: usize = 8;

/// A published dashboard as one viewer sees it.
pub struct EmbedView {
    /// Id of the dashboard, a UUIDv7.
    pub id: String,
    /// Published configuration without the hidden widgets.
    pub config: DashboardConfig,
    /// Periods to choose from.
    pub periods: Vec<String>,
    /// Periods that requests may name, which can be more than those offered.
    pub allowed_periods: Vec<String>,
    /// Period that the page starts with.
    pub period: String,
    /// Whether dates may be chosen instead of a period.
    pub allows_dates: bool,
    /// Properties that the viewer is offered to filter by.
    pub offered: Offered,
    /// Whole seconds until the session ends, never below 0.
    pub expires_in_seconds: i64,
}

/// Values of a property.
pub struct PropertyValues {
    /// Values with their numbers of events, most frequent first.
    pub values: Vec<(String, u64)>,
    /// Whether there are more; a search may find them.
    pub has_more: bool,
}

/// One slice of a widget.
pub struct Detail {
    /// The metric over the window.
    pub total: WidgetAnswer,
    /// The metric over time.
    pub course: WidgetAnswer,
    /// The metric by each other property that is offered, at most 6.
    pub breakdowns: Vec<(String, WidgetAnswer)>,
}

impl Viewer {
    /// Checks filters against the permissions. 400 when they mean nothing, 403 when they reach
    /// beyond.
    pub fn check(&self, wire: &WireFilters) -> Result<ViewFilters> {
        limits::check(&self.permissions, wire)
    }

    /// What a widget is asked under filters that [`Viewer::check`] has passed: with the locks, and
    /// in a period that is allowed. 403 when there is none.
    ///
    /// The viewer's period goes before the widget's own, and that before the one that the page starts with; the widget's own only where the
    /// session allows it.
    pub fn filters_for(
        &self,
        view: &EmbedView,
        widget: &Widget,
        filters: &ViewFilters,
    ) -> Result<ViewFilters> {
        let mut filters = filters.clone();
        filters.texts.extend(locks(&self.permissions));
        if filters.range.is_none() {
            let own = widget.query.get("period").and_then(|period| period.as_str());
            let own = own.filter(|own| check_period(&self.permissions, own).is_ok());
            let period =
                filters.period.get_or_insert_with(|| own.unwrap_or(&view.period).to_owned());
            check_period(&self.permissions, period)?;
        }
        Ok(filters)
    }
}

impl App {
    /// The published dashboard as the viewer may see it. 409 when it is not published.
    ///
    /// Errors: 404 when the dashboard was deleted.
    pub fn embed_view(&self, viewer: &Viewer) -> Result<EmbedView> {
        let dashboard: Option<Dashboard> =
            self.org_reader(&viewer.org).find(&viewer.dashboard_id)?;
        let dashboard = dashboard.ok_or_else(|| ApiError::not_found("dashboard"))?;
        let mut config = dashboard
            .published
            .filter(|_| dashboard.is_live)
            .ok_or_else(|| ApiError::new(Code::NotPublished, "this dashboard is not published"))?;
        let permissions = &viewer.permissions;
        config.widgets.retain(|widget| !permissions.hidden_widgets.contains(&widget.id));
        let wanted = &config.settings.default_period;
        let periods = offered_periods(permissions, wanted);
        // Where the dashboard's own period is not allowed, the longest that is.
        let period = periods.iter().find(|period| *period == wanted).or(periods.last());
        let period = period.cloned().unwrap_or_else(|| wanted.clone());
        Ok(EmbedView {
            id: dashboard.id,
            periods,
            allowed_periods: allowed_periods(permissions),
            period,
            allows_dates: allows_dates(permissions),
            offered: offered_properties(permissions, &config.widgets),
            expires_in_seconds: (viewer.expires_at - self.now_ms()).max(0) / 1_000,
            config,
        })
    }

    /// The widgets with these ids, if the viewer may see all of them. A hidden widget and one that
    /// does not exist are refused alike.
    ///
    /// Errors: 403 for the first of them that the viewer does not see.
    pub fn embed_widgets(&self, view: &EmbedView, ids: &[String]) -> Result<Vec<Widget>> {
        let find = |id: &String| {
            let widget = view.config.widgets.iter().find(|widget| widget.id == *id);
            widget.cloned().ok_or_else(|| broken(format!("this session shows no widget {id:?}")))
        };
        ids.iter().map(find).collect()
    }

    /// Answers one widget for a viewer, under filters that [`Viewer::filters_for`] gave.
    ///
    /// It counts as a query of the viewer's environment. Errors: those of the query.
    pub fn embed_answer(
        &self,
        viewer: &Viewer,
        view: &EmbedView,
        widget: &Widget,
        filters: &ViewFilters,
    ) -> Result<WidgetAnswer> {
        self.count_query(&viewer.org, &viewer.environment);
        let (namespace, tenant) = (viewer.environment.namespace(), Some(viewer.tenant.as_str()));
        self.widget_answer(namespace, tenant, widget, filters, &view.period)
    }

    /// Values of a property among the viewer's events, under his other filters. `search` is part of
    /// a value, in any case. 403 when he may not filter by the property.
    pub fn embed_values(
        &self,
        viewer: &Viewer,
        view: &EmbedView,
        dimension: &str,
        search: &str,
        wire: &WireFilters,
    ) -> Result<PropertyValues> {
        check_dimension(&viewer.permissions, dimension)?;
        // Without a list of his own he sees values of what is shown to him, and of nothing else.
        // A guess at a name would otherwise list values of any property, such as mail addresses.
        let is_offered = view.offered.dimensions.iter().any(|name| name == dimension);
        if viewer.permissions.allowed_dimensions.is_none() && !is_offered {
            return Err(broken(format!("this session lists no values of {dimension}")));
        }
        let mut chosen = viewer.check(wire)?;
        // What is chosen of this property must not hide what else could be.
        chosen.texts.retain(|filter| filter.name != dimension);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let mut is_cut = false;
        for (event_name, parts) in shown_events(&view.config.widgets) {
            // Widgets show parts of an event, which may overlap: the largest says how often a value is seen.
            let mut of_event: BTreeMap<String, u64> = BTreeMap::new();
            for own in parts {
                let widget = bare_widget(
                    "bar_list",
                    json!({
                        "event_name": event_name, "metric": "count", "group_by": dimension,
                        "limit": GROUPS_MAX, "filters": own,
                    }),
                );
                let filters = viewer.filters_for(view, &widget, &chosen)?;
                let WidgetAnswer::Rows { answer, .. } =
                    self.embed_answer(viewer, view, &widget, &filters)?
                else {
                    continue;
                };
                is_cut |= answer.groups_total > answer.groups_returned;
                for row in &answer.rows {
                    if let (Some(Some(value)), Value::Integer(count)) = (&row.group, row.value) {
                        let seen = of_event.entry(value.to_string()).or_default();
                        *seen = count.max(*seen);
                    }
                }
            }
            for (value, count) in of_event {
                *found.entry(value).or_default() += count;
            }
        }
        let wanted = search.to_lowercase();
        let mut values: Vec<(String, u64)> =
            found.into_iter().filter(|(value, _)| value.to_lowercase().contains(&wanted)).collect();
        values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let has_more = is_cut || values.len() > VALUES_MAX;
        values.truncate(VALUES_MAX);
        Ok(PropertyValues { values, has_more })
    }

    /// One slice of a widget, by the properties that the viewer is offered. 403 without the right to
    /// drill down, or where the property is not one that he may filter by.
    ///
    /// `(dimension, value)` is the slice: of a list of plans that for `pro`. Of its breakdowns each has the 8 largest groups.
    ///
    /// Errors: 400 naming `dimension` when the widget is not grouped by it.
    pub fn embed_detail(
        &self,
        viewer: &Viewer,
        view: &EmbedView,
        widget: &Widget,
        (dimension, value): (&str, &str),
        wire: &WireFilters,
    ) -> Result<Detail> {
        if !viewer.permissions.allow_drill_down {
            return Err(broken("this session does not allow drilling down"));
        }
        check_dimension(&viewer.permissions, dimension)?;
        if widget.query.get("group_by").and_then(|own| own.as_str()) != Some(dimension) {
            let message = format!("this widget is not grouped by {dimension}");
            return Err(ApiError::field(Code::InvalidField, "dimension", message));
        }
        let chosen = viewer.check(wire)?;
        let mut filters = viewer.filters_for(view, widget, &chosen)?;
        filters
            .texts
            .push(TextFilter { name: dimension.to_owned(), any_of: vec![value.to_owned()] });
        let ask = |kind: &str, group_by: Option<&str>| {
            let slice = slice_of(widget, kind, group_by);
            self.embed_answer(viewer, view, &slice, &filters)
        };
        let others = view.offered.dimensions.iter().filter(|name| *name != dimension);
        let breakdowns = others
            .take(BREAKDOWNS_MAX)
            .map(|name| Ok((name.clone(), ask("bar_list", Some(name))?)))
            .collect::<Result<_>>()?;
        Ok(Detail { total: ask("number", None)?, course: ask("area", None)?, breakdowns })
    }
}

/// Events that the widgets are about, each with the widgets' own filters on it, as many as are asked.
///
/// Two widgets about `api_call`, one of which shows errors only, are two parts of one event. At most 16 parts in all.
fn shown_events(widgets: &[Widget]) -> BTreeMap<&str, Vec<serde_json::Value>> {
    let mut events: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
    let mut count = 0;
    for widget in widgets {
        let own = widget.query.get("filters").cloned().unwrap_or_else(|| json!({}));
        for event_name in event_names(widget) {
            let parts = events.entry(event_name).or_default();
            if !parts.contains(&own) && count < PARTS_MAX {
                parts.push(own.clone());
                count += 1;
            }
        }
    }
    events
}

/// Events that a widget is about.
///
/// Of a funnel those of its steps.
fn event_names(widget: &Widget) -> impl Iterator<Item = &str> {
    let own = widget.query.get("event_name").into_iter();
    let steps = widget.query.get("steps").and_then(|steps| steps.as_array()).into_iter().flatten();
    own.chain(steps.filter_map(|step| step.get("event_name"))).filter_map(|name| name.as_str())
}

/// A widget that is no part of a dashboard, to ask a query of ours in the way widgets are asked.
fn bare_widget(kind: &str, query: serde_json::Value) -> Widget {
    Widget {
        id: String::new(),
        kind: kind.to_owned(),
        title: String::new(),
        query: query.as_object().cloned().unwrap_or_default(),
        viz: serde_json::Map::new(),
        layout: crate::store::Layout { x: 0, y: 0, w: 1, h: 1 },
    }
}

/// What a widget asks, drawn as another kind: its event, metric and own filters stay. Of a table it
/// is the first measure.
fn slice_of(widget: &Widget, kind: &str, group_by: Option<&str>) -> Widget {
    let mut query = widget.query.clone();
    if let Some(serde_json::Value::Array(measures)) = query.remove("measures")
        && let Some(first) = measures.first()
    {
        for field in ["metric", "numeric_prop"] {
            query.insert(field.to_owned(), first[field].clone());
        }
    }
    // A comparison stays where the widget has one: it shows what lies before the period.
    for field in ["granularity", "limit", "group_by"] {
        query.remove(field);
    }
    if let Some(name) = group_by {
        query.insert("group_by".to_owned(), json!(name));
        query.insert("limit".to_owned(), json!(BREAKDOWN_GROUPS));
    }
    Widget { query, ..bare_widget(kind, json!({})) }
}
