//! `/v1/reports`: rules, and their runs.
//!
//! ```text
//! POST /v1/reports
//! {"dashboard_id": "01a21f85-7783-…", "name": "Weekly usage", "schedule": {"cron": "0 9 * * 1", "timezone": "Europe/Berlin"},
//!  "format": "pdf", "recipients": ["boss@acme.example"], "tenant_id": "acme"}
//! 201 {"id":1,…,"enabled":true,"next_run_at":"2026-11-30T08:00:00.000Z",
//!      "next_runs":["2026-11-30T08:00:00.000Z","2026-12-07T08:00:00.000Z","2026-12-14T08:00:00.000Z"],"last_run":null,…}
//!
//! POST /v1/reports/1/run
//! 202 {"id":"01a21f86-7bda-…","report_id":1,"status":"running","trigger":"manual","scheduled_for":"2026-11-28T00:20:36.954Z",
//!      "started_at":null,"deliveries":[{"kind":"email","to":"boss@acme.example","status":"pending","error":null}],…}
//! GET /v1/reports/1/runs     a second later
//! 200 {"data":[{"id":"01a21f86-7bda-…","status":"succeeded","bytes":172,"deliveries":[{…,"status":"sent"}],…}],"next":null}
//! ```
//!
//! Monday at nine in Berlin is 08:00Z in winter and 07:00Z in summer.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::view::{Name, Time, present, recipient_view};
use crate::{
    app::{
        Caller, Report, ReportChange, SigningChange, masked_email, masked_url, next_runs,
        runs_after,
    },
    base::locale::Locale,
    error::Result,
    http::{
        extract::{Body, Page, Params, ReportId},
        respond::{Accepted, Answer, Created, Download, List, NoContent},
        state::context::Http,
    },
    store::{RecipientStatus, ReportFormat, ReportRun, RunStatus, Schedule, Share},
};

/// A rule to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateReport {
    #[schema(format = Uuid, example = "0190aaaa-0000-7000-8000-000000000000")]
    dashboard_id: String,
    #[schema(value_type = Name, example = "Weekly usage")]
    name: String,
    schedule: Schedule,
    format: ReportFormat,
    /// Who gets mail; these or a webhook must be there.
    #[serde(default)]
    #[schema(max_items = 50, example = json!(["boss@acme.example"]))]
    recipients: Vec<String>,
    /// Where it is posted.
    #[schema(max_length = 2048, example = "https://hooks.acme.com/in/secret")]
    webhook_url: Option<String>,
    enabled: Option<bool>,
    /// One tenant; all of the environment without it.
    #[schema(min_length = 1, max_length = 256)]
    tenant_id: Option<String>,
    /// Period of the widgets; the dashboard's `default_period` without it.
    #[schema(example = "7d")]
    period: Option<String>,
    /// Tenants that each get a report of their own, with further receivers of it.
    #[serde(default)]
    #[schema(max_items = 200)]
    burst: Vec<Share>,
    /// Language of numbers, dates and words in the file, but not in a CSV, and of its mails: `en` without it.
    locale: Option<Locale>,
    /// Signs its webhooks; the answer then has the secret.
    webhook_signed: Option<bool>,
}

/// Whose file it is.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ReportFileParameters {
    /// One of the tenants of a `burst`, which must be named.
    #[param(max_length = 256)]
    tenant_id: Option<String>,
}

/// What to change of a rule; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateReport {
    #[schema(value_type = Option<Name>)]
    name: Option<String>,
    schedule: Option<Schedule>,
    format: Option<ReportFormat>,
    #[schema(max_items = 50)]
    recipients: Option<Vec<String>>,
    /// Null ends it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 2048)]
    webhook_url: Option<Option<String>>,
    enabled: Option<bool>,
    /// Null is all of the environment.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    tenant_id: Option<Option<String>>,
    /// Null is the dashboard's.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    period: Option<Option<String>>,
    /// An empty list ends it.
    #[schema(max_items = 200)]
    burst: Option<Vec<Share>>,
    /// Language of the file and of its mails; null leaves it.
    locale: Option<Locale>,
    /// True makes a secret when there is none, which the answer has; false ends it.
    webhook_signed: Option<bool>,
    /// True replaces the secret by a new one, which the answer has. The one before signs beside it for 24 hours.
    #[serde(default)]
    rotate_webhook_secret: bool,
}

/// A schedule to preview.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewReport {
    schedule: Schedule,
}

/// The next run times of a schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportPreview)]
pub struct PreviewView {
    /// The next three run times, earliest first.
    next_runs: Vec<Time>,
}

/// A rule with its last run.
#[derive(Serialize, ToSchema)]
#[schema(as = Report)]
pub struct ReportView {
    #[schema(example = 1)]
    id: u64,
    #[schema(format = Uuid)]
    dashboard_id: String,
    name: String,
    schedule: Schedule,
    format: ReportFormat,
    /// Masked for viewers and editors.
    recipients: Vec<String>,
    /// Without its path for viewers and editors.
    webhook_url: Option<String>,
    enabled: bool,
    tenant_id: Option<String>,
    period: Option<String>,
    /// Receivers are masked for viewers and editors.
    burst: Vec<Share>,
    /// Language of the file and of its mails.
    locale: Locale,
    webhook_signed: bool,
    /// What its webhooks are signed with, in the answer that made it and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
    /// Until when the secret before it signs, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<Time>,
    /// Null while it is disabled.
    next_run_at: Option<Time>,
    /// The next three times, `next_run_at` first; none while it is disabled.
    next_runs: Vec<Time>,
    #[schema(required = false)]
    last_run: Option<ReportRunView>,
    created_at: Time,
    updated_at: Time,
}

/// A run of a report.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportRun)]
pub struct ReportRunView {
    #[schema(format = Uuid)]
    id: String,
    report_id: u64,
    status: RunStatus,
    /// `schedule` or `manual`.
    #[schema(example = "schedule")]
    trigger: String,
    scheduled_for: Time,
    started_at: Option<Time>,
    finished_at: Option<Time>,
    /// Size of the artifact.
    bytes: Option<u64>,
    deliveries: Vec<RecipientStatus>,
    error: Option<String>,
}

/// All rules, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<ReportView>> {
    let sees_all = caller.sees_receivers();
    let rules = http.run(move |app| app.reports(&caller)).await?;
    let (rules, next) = page.cut(rules, |report| report.rule.id.clone())?;
    Ok(List { data: rules.into_iter().map(|rule| view(rule, sees_all)).collect(), next })
}

/// A report rule with its last run. 404 when the environment has none of this number.
/// Viewers and editors see masked receivers, as of alerts: `b…@acme.example`.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
) -> Result<Answer<ReportView>> {
    let sees_all = caller.sees_receivers();
    let rule = http.run(move |app| app.report(&caller, number)).await?;
    Ok(Answer(view(rule, sees_all)))
}

/// The newest runs, newest first.
pub async fn runs(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
    Params(page): Params<Page>,
) -> Result<List<ReportRunView>> {
    let sees_all = caller.sees_receivers();
    let runs = http.run(move |app| app.report_runs(&caller, number)).await?;
    let runs = runs.into_iter().map(|run| run_view(number, run, sees_all)).collect();
    let (data, next) = page.cut(runs, |run: &ReportRunView| run.id.clone())?;
    Ok(List { data, next })
}

/// Makes a rule. 201, with the secret of its webhooks where they are signed.
///
/// Errors: 404 for a dashboard that is not there; 409 for too many rules; 400 for the schedule, receivers, tenants.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateReport>,
) -> Result<Created<ReportView>> {
    let body = body.read()?;
    http.check_webhook(body.webhook_url.as_deref()).await?;
    let change = ReportChange {
        name: Some(body.name),
        schedule: None,
        format: None,
        recipients: Some(body.recipients),
        webhook_url: Some(body.webhook_url),
        enabled: body.enabled,
        tenant_id: Some(body.tenant_id),
        period: Some(body.period),
        burst: Some(body.burst),
        locale: body.locale,
        signing: SigningChange { signed: body.webhook_signed, rotate: false },
    };
    let (dashboard, format, schedule) = (body.dashboard_id, body.format, body.schedule);
    let rule = http
        .run(move |app| app.create_report(&caller, &dashboard, format, schedule, change))
        .await?;
    Ok(Created(view(rule, true)))
}

/// Changes a rule; absent parts stay. 200 with the whole rule, whose next run follows the new schedule.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
    body: Body<UpdateReport>,
) -> Result<Answer<ReportView>> {
    let finding = caller.clone();
    http.run(move |app| app.report(&finding, number)).await?;
    let body = body.read()?;
    http.check_webhook(body.webhook_url.as_ref().and_then(Option::as_deref)).await?;
    let change = ReportChange {
        name: body.name,
        schedule: body.schedule,
        format: body.format,
        recipients: body.recipients,
        webhook_url: body.webhook_url,
        enabled: body.enabled,
        tenant_id: body.tenant_id,
        period: body.period,
        burst: body.burst,
        locale: body.locale,
        signing: SigningChange { signed: body.webhook_signed, rotate: body.rotate_webhook_secret },
    };
    let rule = http.run(move |app| app.update_report(&caller, number, change)).await?;
    Ok(Answer(view(rule, true)))
}

/// Runs a report now, beside its schedule: the run as it begins. 202. Its file goes to all receivers.
pub async fn run(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
) -> Result<Accepted<ReportRunView>> {
    let run = http.run(move |app| app.run_report(&caller, number)).await?;
    Ok(Accepted(run_view(number, run, true)))
}

/// Shows when a schedule would run, and stores nothing.
///
/// ```text
/// POST /v1/reports/preview {"schedule": {"cron": "0 9 * * 1", "timezone": "Europe/Berlin"}}
/// 200 {"next_runs":["2026-11-30T08:00:00.000Z","2026-12-07T08:00:00.000Z","2026-12-14T08:00:00.000Z"]}
/// {"cron": "0 9 * *", …}                 400 schedule.cron must have five fields
/// {"timezone": "Mars/X", …}              400 there is no time zone "Mars/X"
/// ```
pub async fn preview(
    State(http): State<Http>,
    _caller: Caller,
    body: Body<PreviewReport>,
) -> Result<Answer<PreviewView>> {
    let body = body.read()?;
    let runs = http.run(move |app| runs_after(&body.schedule, app.now_ms())).await?;
    Ok(Answer(PreviewView { next_runs: runs.into_iter().map(Time).collect() }))
}

/// Makes the file of a report as it would be sent now, and sends nothing. One is drawn at a time; 503 after 10 s of waiting.
///
/// ```text
/// GET /v1/reports/1/file
/// 200, Content-Type: text/csv, Content-Disposition: attachment; filename="Weekly-usage-2026-11-28.csv"; …
/// widget_id,widget_title,bucket,group,metric,value
/// calls,Calls,,,count,32
/// models,Models,,gpt-large,count,21
/// ```
pub async fn file(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
    Params(parameters): Params<ReportFileParameters>,
) -> Result<Download> {
    let tenant = parameters.tenant_id;
    let file =
        http.run_drawing(move |app| app.preview_report(&caller, number, tenant.as_deref())).await?;
    Ok(Download { name: file.name, content_type: file.content_type, bytes: file.bytes.to_vec() })
}

/// Deletes a rule. 204, or 404 for a number that no rule of the environment has.
pub async fn delete(
    State(http): State<Http>,
    caller: Caller,
    ReportId(number): ReportId,
) -> Result<NoContent> {
    http.run(move |app| app.delete_report(&caller, number)).await?;
    Ok(NoContent)
}

/// The JSON of a rule. `sees_all`: whether the caller may know where it sends to.
fn view(report: Report, sees_all: bool) -> ReportView {
    let Report { rule, last_run, new_secret } = report;
    let next_runs = next_runs(&rule).into_iter().map(Time).collect();
    let email = |address: String| if sees_all { address } else { masked_email(&address) };
    let url = |url: String| if sees_all { url } else { masked_url(&url) };
    ReportView {
        id: rule.number,
        dashboard_id: rule.dashboard_id,
        name: rule.name,
        schedule: rule.schedule,
        format: rule.format,
        burst: rule.burst.into_iter().map(|share| share_view(share, sees_all)).collect(),
        locale: rule.locale,
        webhook_signed: rule.webhook_secret.is_some(),
        webhook_secret: new_secret,
        previous_secret_until: rule.previous_secret.map(|previous| Time(previous.until)),
        recipients: rule.recipients.into_iter().map(email).collect(),
        webhook_url: rule.webhook_url.map(url),
        next_runs,
        enabled: rule.enabled,
        tenant_id: rule.tenant_id,
        period: rule.period,
        next_run_at: rule.next_run_at.map(Time),
        last_run: last_run.map(|run| run_view(rule.number, run, sees_all)),
        created_at: Time(rule.created_at),
        updated_at: Time(rule.updated_at),
    }
}

fn share_view(share: Share, sees_all: bool) -> Share {
    let email = |address: String| if sees_all { address } else { masked_email(&address) };
    Share { recipients: share.recipients.into_iter().map(email).collect(), ..share }
}

fn run_view(report_id: u64, run: ReportRun, sees_all: bool) -> ReportRunView {
    ReportRunView {
        id: run.id.rsplit(':').next().unwrap_or_default().to_owned(),
        report_id,
        status: run.status,
        trigger: run.trigger,
        scheduled_for: Time(run.scheduled_for),
        started_at: run.started_at.map(Time),
        finished_at: run.finished_at.map(Time),
        bytes: run.bytes,
        deliveries: run
            .deliveries
            .into_iter()
            .map(|recipient| recipient_view(recipient, sees_all))
            .collect(),
        error: run.error,
    }
}
