//! Dashboards: a draft that editors change, and the snapshot that embeds show.
//!
//! ```text
//!                      draft           snapshot     status         embeds show
//! POST …/dashboards    A, version 1    –            draft          nothing: 409 not_published
//! POST …/publish       A, version 2    A            published      A
//! PATCH                B, version 3    A            published      A; "has_unpublished_changes": true
//! POST …/unpublish     B, version 4    A            unpublished    nothing: 409 not_published
//! POST …/restore-…     A, version 5    A            unpublished    nothing
//! POST …/publish       A, version 6    A            published      A
//! ```
//!
//! A change may name the version that it was made from, so that two editors do not overwrite each other:
//!
//! ```text
//! PATCH /v1/dashboards/0190…  If-Match: "3"     409 {"code": "conflict", "error": "the dashboard is at version 4 by now", …}
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::widgets::{Preview, WidgetAnswer, validate};
use crate::{
    app::{
        periods::parse_period,
        plans,
        request::{callers::Caller, context::App},
    },
    base::text,
    error::{ApiError, Code, Faults, Result},
    store::{Dashboard, DashboardConfig, Layout, Org, OrgTxn, Settings, Widget},
};

/// Dashboards of an organisation, at most: a list of them is answered whole.
const DASHBOARDS_MAX: usize = 1_000;
/// Widgets of a dashboard, at most.
const WIDGETS_MAX: usize = 100;

/// Where a dashboard is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DashboardStatus)]
pub enum Status {
    /// The dashboard was never published.
    Draft,
    /// Embeds show it.
    Published,
    /// It was published once.
    Unpublished,
}

impl Dashboard {
    /// Where it is in its life.
    ///
    /// Computed from the snapshot and `is_live`; it is not stored.
    pub fn status(&self) -> Status {
        match (&self.published, self.is_live) {
            (Some(_), true) => Status::Published,
            (Some(_), false) => Status::Unpublished,
            (None, _) => Status::Draft,
        }
    }

    /// Whether the draft differs from what was published last.
    pub fn has_unpublished_changes(&self) -> bool {
        self.published.as_ref().is_none_or(|published| *published != self.draft)
    }
}

/// A dashboard to make.
///
/// Faults of all parts are answered at once, each with its path: `widgets[2].layout`, `settings.allowed_origins[0]`.
pub struct NewDashboard {
    /// Display name, 1 to 200 characters after trimming.
    pub name: String,
    /// Widgets of the draft, at most 100 with distinct ids.
    pub widgets: Vec<Widget>,
    /// Default period, allowed origins and theme.
    pub settings: Settings,
}

/// Fields of a dashboard to change; absent fields stay.
#[derive(Default)]
pub struct DashboardChange {
    /// Display name, 1 to 200 characters after trimming.
    pub name: Option<String>,
    /// Complete list of widgets, which replaces the list of the draft.
    pub widgets: Option<Vec<Widget>>,
    /// Default period, allowed origins and theme, replaced together.
    pub settings: Option<Settings>,
    /// Version that the change was made from; `None` changes any version.
    /// From the header `If-Match`.
    pub if_match: Option<u64>,
}

/// Fields of a widget to change; absent fields stay.
#[derive(Default)]
pub struct WidgetChange {
    /// Heading, at most 200 characters.
    pub title: Option<String>,
    /// Metric query of the widget, replaced as a whole.
    pub query: Option<Map<String, Value>>,
    /// Drawing options, replaced as a whole.
    pub viz: Option<Map<String, Value>>,
    /// Position and size on the grid of 12 columns.
    pub layout: Option<Layout>,
}

impl WidgetChange {
    /// Changes a widget.
    pub fn apply(self, widget: &mut Widget) {
        widget.title = self.title.unwrap_or_else(|| widget.title.clone());
        widget.query = self.query.unwrap_or_else(|| widget.query.clone());
        widget.viz = self.viz.unwrap_or_else(|| widget.viz.clone());
        widget.layout = self.layout.unwrap_or(widget.layout);
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("dashboard")
}

/// Checks a draft as a whole. Whether widgets lie on each other is not checked.
///
/// Errors: all faults of widgets and settings, each with its path; for too many widgets this alone.
fn check(config: &DashboardConfig) -> Result<()> {
    if config.widgets.len() > WIDGETS_MAX {
        let message = format!("a dashboard has at most {WIDGETS_MAX} widgets");
        return Err(ApiError::field(Code::OutOfRange, "widgets", message));
    }
    let mut faults = Faults::default();
    let mut seen = BTreeSet::new();
    for (index, widget) in config.widgets.iter().enumerate() {
        let path = format!("widgets[{index}].");
        faults.take(validate(widget, &path));
        if !seen.insert(&widget.id) {
            let message = format!("another widget has the id {:?}", widget.id);
            let fault = ApiError::field(Code::InvalidField, format!("{path}id"), message);
            faults.take::<()>(Err(fault));
        }
    }
    faults.take(parse_period("settings.default_period", &config.settings.default_period));
    if config.settings.allowed_origins.len() > ORIGINS_MAX {
        let message = format!("allowed_origins has at most {ORIGINS_MAX} entries");
        faults.take::<()>(Err(ApiError::field(
            Code::OutOfRange,
            "settings.allowed_origins",
            message,
        )));
    }
    for (index, origin) in config.settings.allowed_origins.iter().take(ORIGINS_MAX).enumerate() {
        faults.take(check_origin(origin, &format!("settings.allowed_origins[{index}]")));
    }
    faults.end()
}

/// Origins of a dashboard, at most: all of them stand in a header.
const ORIGINS_MAX: usize = 50;

/// Checks an origin: scheme, host, optional port, nothing else, since it goes into a response
/// header as it is. It must be written as browsers write origins, which are compared with it; the
/// first label of the host may be `*`, for any label.
///
/// ```text
/// https://app.acme.com          stored
/// https://*.acme.com            stored: any label in front
/// https://app.acme.com/         refused: "an origin is a scheme and a host as browsers write them: https://app.acme.com"
/// https://App.acme.com:443      refused, with the same advice
/// app.acme.com                  refused: "an origin is a scheme and a host, such as https://app.example.com"
/// ```
fn check_origin(origin: &str, field: &str) -> Result<()> {
    let refused = |message: String| Err(ApiError::field(Code::InvalidField, field, message));
    // Any label stands for the one that is open.
    let concrete = origin.replacen("://*.", "://any.", 1);
    let parsed = url::Url::parse(&concrete).ok().filter(|url| {
        matches!(url.scheme(), "https" | "http") && !url.host_str().unwrap_or("*").contains('*')
    });
    let Some(url) = parsed else {
        return refused(
            "an origin is a scheme and a host, such as https://app.example.com".to_owned(),
        );
    };
    let written = url.origin().ascii_serialization();
    if written == concrete {
        return Ok(());
    }
    let is_open = concrete != origin;
    let wanted = if is_open { written.replacen("://any.", "://*.", 1) } else { written };
    refused(format!("an origin is a scheme and a host as browsers write them: {wanted}"))
}

impl App {
    /// All dashboards, newest first.
    ///
    /// Dashboards are the organisation's: both environments see the same, each with its own events.
    pub fn dashboards(&self, caller: &Caller) -> Result<Vec<Dashboard>> {
        let mut all: Vec<Dashboard> = self.org_reader(&caller.org).list()?;
        all.reverse();
        Ok(all)
    }

    /// A dashboard with its draft. 404 when the organisation has none of this id.
    pub fn dashboard(&self, caller: &Caller, id: &str) -> Result<Dashboard> {
        self.org_reader(&caller.org).find(id)?.ok_or_else(not_found)
    }

    /// Makes a dashboard.
    ///
    /// Errors: 400 with all faults; 409 beyond 1,000 dashboards of the organisation.
    pub fn create_dashboard(&self, caller: &Caller, new: NewDashboard) -> Result<Dashboard> {
        let draft = DashboardConfig {
            name: text::name("name", &new.name)?,
            widgets: new.widgets,
            settings: new.settings,
        };
        check(&draft)?;
        let now = self.now_ms();
        let dashboard = Dashboard {
            id: self.new_id(),
            draft,
            published: None,
            is_live: false,
            version: 1,
            published_at: None,
            created_at: now,
            updated_at: now,
            created_by: caller.actor.label.clone(),
        };
        self.org_txn(&caller.org, |txn| {
            if txn.list::<Dashboard>()?.len() >= DASHBOARDS_MAX {
                let message = format!("an organisation has at most {DASHBOARDS_MAX} dashboards");
                return Err(ApiError::new(Code::Conflict, message));
            }
            txn.put(&dashboard)?;
            let metadata = json!({"name": dashboard.draft.name});
            self.audit(txn, caller, "dashboard.create", ("dashboard", &dashboard.id), metadata)
        })?;
        Ok(dashboard)
    }

    /// Changes the draft. 409 when `if_match` is not the version any more.
    ///
    /// Errors: 404; 400 with all faults, also where the version is an old one.
    pub fn update_dashboard(
        &self,
        caller: &Caller,
        id: &str,
        change: DashboardChange,
    ) -> Result<Dashboard> {
        let name = change.name.as_deref().map(|name| text::name("name", name)).transpose()?;
        self.change_dashboard(caller, id, "dashboard.update", change.if_match, |dashboard| {
            let draft = &mut dashboard.draft;
            draft.name = name.unwrap_or_else(|| draft.name.clone());
            draft.widgets = change.widgets.unwrap_or_else(|| draft.widgets.clone());
            draft.settings = change.settings.unwrap_or_else(|| draft.settings.clone());
            check(draft)
        })
    }

    /// Deletes a dashboard; its embeds end.
    ///
    /// Alert rules and reports about it stay: an alert is disabled at its next evaluation, with a reason.
    ///
    /// Errors: 404 when there is none of this id.
    pub fn delete_dashboard(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let dashboard: Dashboard = txn.find(id)?.ok_or_else(not_found)?;
            txn.delete::<Dashboard>(id);
            let metadata = json!({"name": dashboard.draft.name});
            self.audit(txn, caller, "dashboard.delete", ("dashboard", id), metadata)
        })
    }

    /// Makes the draft what embeds show. 402 when the plan has no place for another.
    ///
    /// One that is live already needs no room in the plan: publishing it again replaces its snapshot.
    ///
    /// Errors: 404; 402 `published_dashboards_limit`.
    pub fn publish_dashboard(&self, caller: &Caller, id: &str) -> Result<()> {
        let now = self.now_ms();
        self.org_txn(&caller.org, |txn| {
            let org: Org = txn.find(&caller.org)?.ok_or_else(not_found)?;
            let mut dashboard: Dashboard = txn.find(id)?.ok_or_else(not_found)?;
            if !dashboard.is_live {
                let used =
                    txn.list::<Dashboard>()?.iter().filter(|other| other.is_live).count() as u64;
                let limit = |plan: &plans::Plan| plan.published_dashboards;
                plans::check(
                    &org,
                    Code::PublishedDashboardsLimit,
                    "published dashboards",
                    limit,
                    used,
                    1,
                )?;
            }
            dashboard.published = Some(dashboard.draft.clone());
            dashboard.is_live = true;
            dashboard.published_at = Some(now);
            self.put_changed(txn, caller, &mut dashboard, "dashboard.publish")
        })
    }

    /// Ends what embeds show; the snapshot is kept.
    ///
    /// Errors: 404. A dashboard that is not live gets a new version and nothing else.
    pub fn unpublish_dashboard(&self, caller: &Caller, id: &str) -> Result<()> {
        self.change_dashboard(caller, id, "dashboard.unpublish", None, |dashboard| {
            dashboard.is_live = false;
            Ok(())
        })
        .map(drop)
    }

    /// Answers a widget of a dashboard's draft. 404 when there is none of this id.
    ///
    /// Errors: those of [`App::preview_widget`]; 400 for the period.
    pub fn draft_widget_data(
        &self,
        caller: &Caller,
        dashboard: &str,
        id: &str,
        tenant: Option<String>,
        period: Option<String>,
    ) -> Result<WidgetAnswer> {
        let widgets = self.dashboard(caller, dashboard)?.draft.widgets;
        let widget = widgets.into_iter().find(|widget| widget.id == id);
        let widget = widget.ok_or_else(|| ApiError::not_found("widget"))?;
        if let Some(period) = &period {
            parse_period("period", period)?;
        }
        self.preview_widget(caller, &Preview { widget, tenant, period, filters: BTreeMap::new() })
    }

    /// The snapshot that was published last, and when. 404 when there is none.
    pub fn published_dashboard(&self, caller: &Caller, id: &str) -> Result<(DashboardConfig, i64)> {
        let Dashboard { published, published_at, .. } = self.dashboard(caller, id)?;
        let missing = || ApiError::not_found("published dashboard");
        Ok((published.ok_or_else(missing)?, published_at.ok_or_else(missing)?))
    }

    /// Replaces the draft by the last published snapshot. 409 when there is none.
    pub fn restore_dashboard(&self, caller: &Caller, id: &str) -> Result<Dashboard> {
        self.change_dashboard(caller, id, "dashboard.restore", None, |dashboard| {
            let published = dashboard.published.clone();
            dashboard.draft = published.ok_or_else(|| {
                ApiError::new(Code::Conflict, "the dashboard was never published")
            })?;
            Ok(())
        })
    }

    /// Adds a widget to the draft.
    ///
    /// Errors: 409 naming `id` when another widget has it; 400 beyond 100 widgets.
    pub fn add_widget(&self, caller: &Caller, id: &str, widget: Widget) -> Result<Widget> {
        validate(&widget, "")?;
        let added = widget.clone();
        self.change_dashboard(caller, id, "dashboard.widget_add", None, |dashboard| {
            if dashboard.draft.widgets.iter().any(|other| other.id == widget.id) {
                return Err(ApiError::field(Code::Conflict, "id", "another widget has this id"));
            }
            dashboard.draft.widgets.push(widget);
            check(&dashboard.draft)
        })?;
        Ok(added)
    }

    /// Changes a widget of the draft.
    ///
    /// Errors: 404 for either; 400 for the widget as it would be, without a prefix; 409 for the version.
    pub fn update_widget(
        &self,
        caller: &Caller,
        id: &str,
        widget: &str,
        change: WidgetChange,
        if_match: Option<u64>,
    ) -> Result<Widget> {
        let dashboard =
            self.change_dashboard(caller, id, "dashboard.widget_update", if_match, |dashboard| {
                let widget = find_widget(dashboard, widget)?;
                change.apply(widget);
                validate(widget, "")
            })?;
        let found = dashboard.draft.widgets.into_iter().find(|other| other.id == widget);
        found.ok_or_else(|| ApiError::not_found("widget"))
    }

    /// Removes a widget from the draft.
    ///
    /// The snapshot has it until the next publishing. Errors: 404 for either.
    pub fn delete_widget(&self, caller: &Caller, id: &str, widget: &str) -> Result<()> {
        self.change_dashboard(caller, id, "dashboard.widget_delete", None, |dashboard| {
            find_widget(dashboard, widget)?;
            dashboard.draft.widgets.retain(|other| other.id != widget);
            Ok(())
        })
        .map(drop)
    }

    /// Changes a dashboard in one transaction, and raises its version.
    ///
    /// Errors: 404, those of `change`, 409 when `if_match` is another version.
    fn change_dashboard(
        &self,
        caller: &Caller,
        id: &str,
        action: &str,
        if_match: Option<u64>,
        change: impl FnOnce(&mut Dashboard) -> Result<()>,
    ) -> Result<Dashboard> {
        self.org_txn(&caller.org, |txn| {
            let mut dashboard: Dashboard = txn.find(id)?.ok_or_else(not_found)?;
            let version = dashboard.version;
            // What is wrong with the change comes before that somebody was faster.
            change(&mut dashboard)?;
            if if_match.is_some_and(|base| base != version) {
                let message = format!("the dashboard is at version {version} by now");
                return Err(ApiError::new(Code::Conflict, message));
            }
            self.put_changed(txn, caller, &mut dashboard, action)?;
            Ok(dashboard)
        })
    }

    /// Stores a changed dashboard with its next version, and a row in the audit.
    fn put_changed(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        dashboard: &mut Dashboard,
        action: &str,
    ) -> Result<()> {
        dashboard.version += 1;
        dashboard.updated_at = self.now_ms();
        txn.put(dashboard)?;
        let metadata = json!({"name": dashboard.draft.name, "version": dashboard.version});
        self.audit(txn, caller, action, ("dashboard", &dashboard.id), metadata)
    }
}

/// A widget of the draft. Errors: 404.
fn find_widget<'a>(dashboard: &'a mut Dashboard, id: &str) -> Result<&'a mut Widget> {
    let found = dashboard.draft.widgets.iter_mut().find(|widget| widget.id == id);
    found.ok_or_else(|| ApiError::not_found("widget"))
}
