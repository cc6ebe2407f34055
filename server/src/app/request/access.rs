//! Who may do what: one table, read by every request and walked by the tests.
//!
//! Columns: anonymous, viewer, editor, admin, owner, admin key, ingest key, embed token.
//! `y` allowed, `3` forbidden, `1` not authenticated for this.
//!
//! ```text
//!                                 ∅VEAOKIT
//! Query               b"1yyyyy31"     a viewer reads; an ingest key is 403; without credentials, or with an embed token, it is 401
//! PublishDashboard    b"13yyyy31"     403 for a viewer: {"code": "forbidden_role", …}
//! UpdateMember        b"1333y331"     the owner, and no key
//! EmbedData           b"1111111y"     an embed token, and nobody else
//! Login               b"yyyyyyyy"     whoever has a password
//! ```
//!
//! There is no other way to mount a handler under `/v1`: a route names its operation, and the operation has a row here.

use crate::store::Role;

/// Kind of caller, by the credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principal {
    /// A request without credentials, or the server itself.
    Anonymous,
    /// Console session of a viewer.
    Viewer,
    /// Console session of an editor.
    Editor,
    /// Console session of an admin.
    Admin,
    /// Console session of the owner.
    Owner,
    /// API key of scope `admin`.
    AdminKey,
    /// API key of scope `ingest`.
    IngestKey,
    /// Embed token of a viewer.
    Embed,
}

impl Principal {
    /// A console session of a member with a role.
    pub fn of_role(role: Role) -> Self {
        match role {
            Role::Viewer => Self::Viewer,
            Role::Editor => Self::Editor,
            Role::Admin => Self::Admin,
            Role::Owner => Self::Owner,
        }
    }
}

/// Answer of the table for an operation and a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The operation is allowed.
    Allowed,
    /// This principal never may.
    /// 403 `forbidden_role` for a session, `forbidden_scope` for a key.
    Forbidden,
    /// These credentials do not count here.
    /// 401: with other credentials it may be allowed.
    Unauthenticated,
}

/// Rate limit that the requests of an operation count against.
///
/// Limits are those of the settings by the names below; `INLAY_RATE_LIMITS=query=1000,login=100` changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Sending events, a second, per key.
    Ingest,
    /// Metric queries, a second, per organisation.
    Query,
    /// SQL statements, a second, per organisation.
    Sql,
    /// Data of embeds, a second, per embed session.
    Embed,
    /// Everything else, a second, per key or session.
    Management,
    /// Attempts to log in or to change a password, a quarter of an hour, per account and address.
    Login,
    /// Requests with an idempotency key, a day, per organisation: their stored answers take memory.
    Named,
    /// Registrations and acceptances, a quarter of an hour, per account and address.
    Register,
}

impl Quota {
    /// Name in the settings.
    /// `embed`, as in `INLAY_RATE_LIMITS=embed=100`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Sql => "sql",
            Self::Embed => "embed",
            Self::Management => "management",
            Self::Named => "named",
            Self::Login => "login",
            Self::Register => "register",
        }
    }
}

macro_rules! operations {
    ($($name:ident $row:literal $quota:ident $summary:literal;)*) => {
        /// An operation of the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {
            $(#[doc = $summary] $name,)*
        }

        impl Operation {
            /// All operations, in the order of the table below.
            #[cfg(test)]
            pub const ALL: &[Operation] = &[$(Operation::$name,)*];

            fn row(self) -> &'static [u8; 8] {
                match self { $(Operation::$name => $row,)* }
            }

            /// Rate limit that its requests count against.
            pub fn quota(self) -> Quota {
                match self { $(Operation::$name => Quota::$quota,)* }
            }

            /// Description for the API document, one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Operation::$name => $summary,)* }
            }

            /// Its name, as in `ListDashboards`.
            pub fn name(self) -> &'static str {
                match self { $(Operation::$name => stringify!($name),)* }
            }
        }
    };
}

operations! {
    Register b"yyyyyyyy" Register "Makes a user, an organisation, its environments, an admin key and a session.";
    Login b"yyyyyyyy" Login "Opens a console session.";
    Logout b"1yyyy331" Management "Ends the console session.";
    Me b"1yyyyyy1" Management "Tells whose credentials these are.";
    AcceptInvite b"yyyyyyyy" Register "Makes the invited user a member and opens a session.";
    ForgotPassword b"yyyyyyyy" Login "Sends a link to a new password, if the address has an account.";
    ResetPassword b"yyyyyyyy" Login "Sets a new password with the token of a link and opens a session; all others end.";
    ChangePassword b"1yyyy331" Login "Changes one's own password; all other sessions end.";
    ListSessions b"1yyyy331" Management "Lists one's own console sessions, newest first.";
    EndSession b"1yyyy331" Management "Ends one of one's own console sessions.";
    IngestEvents b"13333yy1" Ingest "Stores up to 1,000 events.";
    ListDashboards b"1yyyyy31" Management "Lists dashboards, newest first.";
    GetDashboard b"1yyyyy31" Management "Shows a dashboard.";
    GetPublishedDashboard b"1yyyyy31" Management "Shows the snapshot of a dashboard that embeds show.";
    GetDashboardWidgetData b"1yyyyy31" Query "Answers a widget of a dashboard's draft.";
    CreateDashboard b"13yyyy31" Management "Makes a dashboard.";
    UpdateDashboard b"13yyyy31" Management "Changes the draft of a dashboard.";
    DeleteDashboard b"13yyyy31" Management "Deletes a dashboard; its embeds end.";
    PublishDashboard b"13yyyy31" Management "Makes the draft what embeds show.";
    UnpublishDashboard b"13yyyy31" Management "Ends what embeds show; the snapshot is kept.";
    RestoreDashboard b"133yyy31" Management "Replaces the draft by the last published snapshot.";
    AddDashboardWidget b"133yyy31" Management "Adds a widget to the draft.";
    UpdateDashboardWidget b"13yyyy31" Management "Changes a widget of the draft.";
    DeleteDashboardWidget b"13yyyy31" Management "Removes a widget from the draft.";
    ListWidgets b"1yyyyy31" Management "Lists standalone widgets, newest first.";
    GetWidget b"1yyyyy31" Management "Shows a standalone widget.";
    CreateWidget b"133yyy31" Management "Makes a standalone widget.";
    UpdateWidget b"133yyy31" Management "Changes a standalone widget.";
    PublishWidget b"133yyy31" Management "Publishes a snapshot of a standalone widget.";
    DeleteWidget b"133yyy31" Management "Deletes a standalone widget.";
    PreviewWidget b"13yyyy31" Query "Answers a widget without saving it.";
    CreateEmbedSession b"133yyy31" Management "Mints a signed embed session for one tenant.";
    ListEmbedSessions b"133yyy31" Management "Lists embed sessions that are still valid, newest first.";
    RevokeEmbedSession b"133yyy31" Management "Ends an embed session.";
    RotateEmbedKey b"133yyy31" Management "Signs embed tokens with a new key; those of the key before stay valid.";
    Discover b"1yyyyy31" Query "Lists the events of the last 30 days with their properties.";
    AutoCreateDashboard b"13yyyy31" Query "Makes a dashboard from discovered events.";
    Query b"1yyyyy31" Query "Answers a metric query.";
    QuerySql b"133yyy31" Sql "Answers a SELECT over the caller's events.";
    ListDatasets b"133yyy31" Query "Lists the tables of SQL with what is in them.";
    GetDatasetDdl b"133yyy31" Management "Shows the create statement of a table of SQL.";
    ListSavedQueries b"1yyyyy31" Management "Lists saved queries, starred ones first.";
    CreateSavedQuery b"133yyy31" Management "Keeps a query.";
    UpdateSavedQuery b"133yyy31" Management "Changes a saved query.";
    DeleteSavedQuery b"133yyy31" Management "Deletes a saved query.";
    RunSavedQuery b"133yyy31" Sql "Answers a saved query.";
    ListAlerts b"1yyyyy31" Management "Lists alert rules, newest first.";
    GetAlert b"1yyyyy31" Management "Shows an alert rule.";
    ListAlertEvents b"1yyyyy31" Management "Lists the newest firings and resolutions of an alert.";
    CreateAlert b"133yyy31" Management "Makes an alert rule.";
    UpdateAlert b"133yyy31" Management "Changes an alert rule; a changed condition starts anew.";
    DeleteAlert b"133yyy31" Management "Deletes an alert rule and its events.";
    TestAlert b"133yyy31" Management "Sends the receivers of an alert a test.";
    PreviewAlert b"133yyy31" Query "Shows when a rule would have fired in the last 30 days.";
    ListReports b"1yyyyy31" Management "Lists report rules, newest first.";
    GetReport b"1yyyyy31" Management "Shows a report rule.";
    ListReportRuns b"1yyyyy31" Management "Lists the newest runs of a report.";
    CreateReport b"133yyy31" Management "Makes a report rule.";
    UpdateReport b"133yyy31" Management "Changes a report rule.";
    DeleteReport b"133yyy31" Management "Deletes a report rule and its runs.";
    GetReportFile b"133yyy31" Query "Makes the file of a report as it would be sent now.";
    RunReport b"133yyy31" Management "Runs a report now.";
    PreviewReport b"133yyy31" Management "Shows when a schedule would run.";
    ListApiKeys b"133yyy31" Management "Lists API keys by their prefix, newest first.";
    CreateApiKey b"133yyy31" Management "Makes an API key, which is shown this once.";
    RevokeApiKey b"133yyy31" Management "Revokes an API key.";
    ListMembers b"1yyyyy31" Management "Lists members, newest first.";
    InviteMember b"133yyy31" Management "Invites somebody by e-mail address.";
    ListInvites b"133yyy31" Management "Lists pending invites, newest first.";
    RevokeInvite b"133yyy31" Management "Withdraws an invite: its link is dead.";
    UpdateMember b"1333y331" Management "Changes the role of a member.";
    DeleteMember b"1yyyyy31" Management "Removes a member; his sessions end.";
    GetOrg b"1yyyyy31" Management "Shows the organisation.";
    UpdateOrg b"133yyy31" Management "Changes name or contact address of the organisation.";
    DeleteOrg b"1333y331" Management "Deletes the organisation with everything that belongs to it.";
    DemoEmbedUrl b"yyyyyyyy" Management "Mints an embed session of the demo.";
    DemoSession b"yyyyyyyy" Register "Opens a console session of the demo for a guest, who may look and change nothing.";
    Usage b"1yyyyy31" Management "Shows what was used.";
    Billing b"133yyy31" Management "Shows plan, billing status, usage and limits.";
    ListPlans b"1yyyyy31" Management "Lists the plans.";
    CheckoutConfig b"1yyyyy31" Management "Shows what a hosted checkout needs.";
    BillingPortal b"133yyy31" Management "Opens the hosted billing portal.";
    BillingWebhook b"yyyyyyyy" Management "Takes an event of the billing provider; its signature decides.";
    ListAudit b"133yyy31" Management "Lists changes of state, newest first.";
    OnboardingStatus b"1yyyyy31" Management "Shows how far setting up is.";
    ListWebhooks b"133yyy31" Management "Shows how webhooks of the last 24 hours went.";
    RetryWebhook b"133yyy31" Management "Sends a webhook again, now; at most three times by hand.";
    AskToUnsubscribe b"yyyyyyyy" Management "Shows the page of a link that stops mails, and changes nothing.";
    Unsubscribe b"yyyyyyyy" Management "Stops the mails of an alert or a report to an address, by the link in one of them.";
    EraseTenantEvents b"133yyy31" Management "Erases all events of a tenant.";
    EraseUserEvents b"133yyy31" Management "Erases all events of one of a tenant's users.";
    ListErasures b"133yyy31" Management "Lists erasures, newest first.";
    GetErasure b"133yyy31" Management "Shows an erasure: how far it is, or its receipt.";
    EmbedDashboard b"1111111y" Embed "Shows the published dashboard as this session may see it.";
    EmbedData b"1111111y" Embed "Answers the widgets of the published dashboard.";
    EmbedValues b"1111111y" Embed "Lists values of a property to filter by.";
    EmbedDetail b"1111111y" Embed "Breaks one slice of a widget down further.";
}

/// Looks a principal up in the row of an operation.
///
/// `decide(Operation::Query, Principal::IngestKey)` is `Forbidden`. The columns are in the order of the variants of [`Principal`].
pub fn decide(operation: Operation, principal: Principal) -> Decision {
    match operation.row()[principal as usize] {
        b'y' => Decision::Allowed,
        b'3' => Decision::Forbidden,
        _ => Decision::Unauthenticated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_it_is_written() {
        assert_eq!(decide(Operation::Query, Principal::Viewer), Decision::Allowed);
        assert_eq!(decide(Operation::Query, Principal::IngestKey), Decision::Forbidden);
        assert_eq!(decide(Operation::Query, Principal::Embed), Decision::Unauthenticated);
        assert_eq!(decide(Operation::EmbedData, Principal::Owner), Decision::Unauthenticated);
        assert!(
            Operation::ALL
                .iter()
                .all(|operation| operation.row().iter().all(|cell| b"y31".contains(cell)))
        );
    }
}
