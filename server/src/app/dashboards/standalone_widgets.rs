//! Standalone widgets: a draft that admins change, and the snapshot that was published last.
//!
//! ```text
//! POST /v1/widgets {"kind": "number", "title": "API requests", "query": {"event_name": "api_call", "metric": "count"}, "viz": {}, …}
//! 201 {"id": "0190…", "version": 1, …}          the server chooses the id
//! POST /v1/widgets/0190…/publish                204; version 2, and the snapshot is the draft
//! PATCH /v1/widgets/0190… If-Match: "1"         409 {"code": "conflict", "error": "the widget is at version 2 by now", …}
//! ```

use serde_json::json;

use super::widgets::validate;
use crate::{
    app::request::{callers::Caller, context::App},
    error::{ApiError, Code, Result},
    store::{OrgTxn, StandaloneWidget, Widget},
};

/// Standalone widgets of an organisation, at most: a list of them is answered whole.
const WIDGETS_MAX: usize = 1_000;

/// Fields of a standalone widget to change; absent fields stay.
///
/// The kind can change, unlike that of a widget within a dashboard: the query is checked for the new one.
pub struct StandaloneChange {
    /// Kind of drawing, one of `WIDGET_KINDS`.
    pub kind: Option<String>,
    /// Heading, query, drawing options and layout.
    pub rest: super::drafts::WidgetChange,
}

impl StandaloneWidget {
    /// Whether the draft differs from what was published last.
    pub fn has_unpublished_changes(&self) -> bool {
        self.published.as_ref().is_none_or(|published| *published != self.draft)
    }
}

impl App {
    /// All standalone widgets of the organisation, newest first.
    pub fn standalone_widgets(&self, caller: &Caller) -> Result<Vec<StandaloneWidget>> {
        let mut all: Vec<StandaloneWidget> = self.org_reader(&caller.org).list()?;
        all.reverse();
        Ok(all)
    }

    /// A standalone widget. 404 when the organisation has none of this id.
    pub fn standalone_widget(&self, caller: &Caller, id: &str) -> Result<StandaloneWidget> {
        self.org_reader(&caller.org).find(id)?.ok_or_else(not_found)
    }

    /// Makes a standalone widget. The server chooses its id.
    ///
    /// Errors: 400 for a fault of the widget; 409 beyond 1,000 widgets of the organisation.
    pub fn create_standalone_widget(
        &self,
        caller: &Caller,
        draft: Widget,
    ) -> Result<StandaloneWidget> {
        let now = self.now_ms();
        let id = self.new_id();
        let draft = Widget { id: id.clone(), ..draft };
        validate(&draft, "")?;
        let widget = StandaloneWidget {
            id,
            draft,
            published: None,
            version: 1,
            published_at: None,
            created_at: now,
            updated_at: now,
            created_by: caller.actor.label.clone(),
        };
        self.org_txn(&caller.org, |txn| {
            if txn.list::<StandaloneWidget>()?.len() >= WIDGETS_MAX {
                let message = format!("an organisation has at most {WIDGETS_MAX} widgets");
                return Err(ApiError::new(Code::Conflict, message));
            }
            txn.put(&widget)?;
            let metadata = json!({"title": widget.draft.title});
            self.audit(txn, caller, "widget.create", ("widget", &widget.id), metadata)
        })?;
        Ok(widget)
    }

    /// Changes the draft.
    ///
    /// Errors: 404; 400 for the widget as it would be; 409 when `if_match` is another version.
    pub fn update_standalone_widget(
        &self,
        caller: &Caller,
        id: &str,
        change: StandaloneChange,
        if_match: Option<u64>,
    ) -> Result<StandaloneWidget> {
        self.change_standalone(caller, id, "widget.update", if_match, |widget| {
            let StandaloneChange { kind, rest } = change;
            let draft = &mut widget.draft;
            draft.kind = kind.unwrap_or_else(|| draft.kind.clone());
            rest.apply(draft);
            validate(draft, "")
        })
    }

    /// Publishes a snapshot of the draft.
    ///
    /// No plan limits how many are published. Errors: 404.
    pub fn publish_standalone_widget(&self, caller: &Caller, id: &str) -> Result<()> {
        let now = self.now_ms();
        self.change_standalone(caller, id, "widget.publish", None, |widget| {
            widget.published = Some(widget.draft.clone());
            widget.published_at = Some(now);
            Ok(())
        })
        .map(drop)
    }

    /// Deletes a standalone widget with its snapshot. 404 when there is none of this id.
    pub fn delete_standalone_widget(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let widget = found(txn, id)?;
            txn.delete::<StandaloneWidget>(id);
            let metadata = json!({"title": widget.draft.title});
            self.audit(txn, caller, "widget.delete", ("widget", id), metadata)
        })
    }

    /// Changes a widget in one transaction, and raises its version. What is wrong with the change is answered before that it came too late.
    fn change_standalone(
        &self,
        caller: &Caller,
        id: &str,
        action: &str,
        if_match: Option<u64>,
        change: impl FnOnce(&mut StandaloneWidget) -> Result<()>,
    ) -> Result<StandaloneWidget> {
        self.org_txn(&caller.org, |txn| {
            let mut widget = found(txn, id)?;
            let version = widget.version;
            change(&mut widget)?;
            if if_match.is_some_and(|base| base != version) {
                let message = format!("the widget is at version {version} by now");
                return Err(ApiError::new(Code::Conflict, message));
            }
            widget.version += 1;
            widget.updated_at = self.now_ms();
            txn.put(&widget)?;
            let metadata = json!({"title": widget.draft.title, "version": widget.version});
            self.audit(txn, caller, action, ("widget", id), metadata)?;
            Ok(widget)
        })
    }
}

fn found(txn: &OrgTxn<'_>, id: &str) -> Result<StandaloneWidget> {
    txn.find(id)?.ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("widget")
}
