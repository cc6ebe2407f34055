//! The file of a report, and the mail or webhook that brings it.
//!
//! ```text
//! POST https://hooks.acme.com/in/secret            the bytes of the file, in up to 20 seconds
//! Content-Type: application/pdf
//! webhook-id: 0190….acme                           of a burst for the tenant acme; the id of the run without one
//! x-service-report-id: 3
//! x-service-report-name: %C3%9Cbersicht 50 %25     "Übersicht 50 %": a header is ASCII
//! x-service-dashboard-id: 0190…
//! x-service-tenant-id: acme
//!
//! Subject: Weekly usage                            a mail: numbers, a picture, and the file attached
//! Weekly-usage-2026-11-20.pdf                      Weekly-usage-acme-2026-11-20.pdf of a burst
//! ```

use std::{sync::Arc, time::Duration};

use askama::Template;
use tracing::warn;

use super::{
    data::{artifact, kind_of_file},
    runs::ReportWork,
};
use crate::{
    app::{
        delivery::{
            mail_words::{MailWords, mail_words},
            rule_fields::signing_secrets,
            signature::signature_headers,
            unsubscribe::MailSource,
        },
        request::{callers::Caller, context::App},
    },
    base::{instant, locale::Locale, text::one_line},
    error::{ApiError, Code, Result},
    outbound::{Mail, OutboundMessage, Post},
    render::{self, Figure, Sheet},
    store::{Dashboard, Environment, RecipientStatus, ReportRule, Share},
};

/// Content id of the picture in a mail, which the HTML shows as `cid:dashboard`.
const PICTURE_ID: &str = "dashboard";

/// Time limit of a webhook with a report: a file takes longer to send than a notification. It is tried once.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(20);

/// The file of a report, ready to be sent.
///
/// Made once for each tenant of a run, and not stored.
#[derive(Debug, Clone)]
pub struct ReportFile {
    /// Title of the dashboard, and the tenant if there is one, for the mail.
    about: String,
    /// File name from rule, tenant of a burst and UTC date, such as `Weekly-usage-2026-11-20.pdf`.
    pub name: String,
    /// Media type, for `Content-Type` and for the attachment of a mail.
    pub content_type: &'static str,
    /// Content of the file, shared by all its recipients.
    pub bytes: Arc<[u8]>,
    /// Titles of widgets that could not be shown.
    pub missing: Vec<String>,
    /// What mails show beside the file; absent where it goes to webhooks alone.
    pub view: Option<Arc<MailView>>,
}

/// What a recipient of a run gets next.
pub enum NextMessage {
    /// A message, to be sent now.
    Send(Box<OutboundMessage>),
    /// Nothing: the rule, and the run with it, is gone.
    RunGone,
    /// Nothing: the address has left the rule since the run began.
    ReceiverGone,
}

/// The dashboard as it is seen in a mail.
#[derive(Debug)]
pub struct MailView {
    /// Numbers of the dashboard, as its widgets show them.
    figures: Vec<Figure>,
    /// Picture of the dashboard, PNG.
    picture: Vec<u8>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportMailHtml<'a> {
    mail: &'a ReportMail,
}

#[derive(Template)]
#[template(path = "report.txt", escape = "none")]
struct ReportMailText<'a> {
    mail: &'a ReportMail,
}

/// What both parts of a mail say.
struct ReportMail {
    words: &'static MailWords,
    locale: Locale,
    heading: String,
    about: String,
    figures: Vec<Figure>,
    has_picture: bool,
    file: String,
    unsubscribe: String,
}

impl App {
    /// Makes the file of a report as it would be sent now, of a burst for one of its tenants.
    ///
    /// Errors: 404 without the report or its dashboard; 400 when a burst needs a tenant, or the report is
    /// not about this one.
    ///
    /// It counts as no run and is sent to nobody.
    pub fn preview_report(
        &self,
        caller: &Caller,
        number: u64,
        tenant: Option<&str>,
    ) -> Result<ReportFile> {
        let rule = self.report(caller, number)?.rule;
        let is_known = match tenant {
            Some(tenant) if rule.burst.is_empty() => rule.tenant_id.as_deref() == Some(tenant),
            Some(tenant) => rule.burst.iter().any(|share| share.tenant_id == tenant),
            None if rule.burst.is_empty() => true,
            None => {
                let message = "this report is made for each of several tenants: name one";
                return Err(ApiError::field(Code::MissingField, "tenant_id", message));
            }
        };
        if !is_known {
            let message = "this report is not made for this tenant";
            return Err(ApiError::field(Code::UnknownValue, "tenant_id", message));
        }
        let dashboard = self.dashboard(caller, &rule.dashboard_id)?;
        self.make_report(&rule, &caller.environment, &dashboard, (tenant, false))
    }

    /// Makes the file of a rule for a tenant, or for all of them, and what mails show beside it if some are sent.
    ///
    /// `(tenant, is_mailed)`: the picture for mails is drawn only where some are sent, as it takes as long as the file.
    ///
    /// Errors: a sheet that cannot be drawn.
    pub fn make_report(
        &self,
        rule: &ReportRule,
        environment: &Environment,
        dashboard: &Dashboard,
        (tenant, is_mailed): (Option<&str>, bool),
    ) -> Result<ReportFile> {
        let tenant = tenant.or(rule.tenant_id.as_deref());
        let sheet = self.report_sheet(rule, environment, dashboard, tenant);
        let bytes = artifact(&sheet, rule.format)?;
        let missing = sheet.cards.iter().filter(|card| card.answer.is_err());
        let missing = missing.map(|card| card.title.clone()).collect();
        let about = tenant.map(|tenant| (mail_words(rule.locale).about)(&sheet.title, tenant));
        let date = instant::date(sheet.made_at);
        let (content_type, ending) = kind_of_file(rule.format);
        let of_tenant = if rule.burst.is_empty() { "" } else { tenant.unwrap_or_default() };
        Ok(ReportFile {
            about: about.unwrap_or_else(|| sheet.title.clone()),
            name: format!("{}.{ending}", file_name(&[&rule.name, of_tenant, &date])),
            content_type,
            bytes: bytes.into(),
            missing,
            view: is_mailed.then(|| mail_view(&sheet, rule.locale)).flatten().map(Arc::new),
        })
    }

    /// The message to the recipient at index `at` of a run's list, in an attempt that begins at
    /// `at_ms`, if he is to have it still.
    ///
    /// Errors: a record that cannot be read; a mail that cannot be made.
    pub fn report_message(
        &self,
        of: &ReportWork,
        (at, recipient): (usize, &RecipientStatus),
        file: &ReportFile,
        at_ms: i64,
    ) -> Result<NextMessage> {
        if !self.is_wanted(of)? {
            return Ok(NextMessage::RunGone);
        }
        let message = match recipient.kind.as_str() {
            "webhook" => OutboundMessage::Post(self.report_post(of, recipient, file, at_ms)),
            _ if !self.still_gets_mails(of, recipient)? => return Ok(NextMessage::ReceiverGone),
            _ => OutboundMessage::Mail(Box::new(self.report_mail(of, at, &recipient.to, file)?)),
        };
        Ok(NextMessage::Send(Box::new(message)))
    }

    /// Whether the rule, as it is now, sends mails to a recipient of a run that began before.
    fn still_gets_mails(&self, of: &ReportWork, recipient: &RecipientStatus) -> Result<bool> {
        let rule = self.org_reader(&of.work.org).find::<ReportRule>(&of.rule.id)?;
        Ok(rule.is_some_and(|rule| {
            let is_of_tenant =
                |share: &&Share| recipient.tenant_id.as_ref() == Some(&share.tenant_id);
            let of_tenant = rule.burst.iter().filter(is_of_tenant);
            let mut addresses = rule.recipients.iter().chain(of_tenant.flat_map(|s| &s.recipients));
            addresses.any(|address| *address == recipient.to)
        }))
    }

    /// The mail that brings a file to one address.
    ///
    /// `at` is the index of the recipient in the run: the `Message-ID` is `<run>.<at>`, the same at every attempt.
    fn report_mail(&self, of: &ReportWork, at: usize, to: &str, file: &ReportFile) -> Result<Mail> {
        let rule = (MailSource::Report, of.rule.number);
        let unsubscribe = self.unsubscribe_url(&of.work.org, rule, to)?;
        let content = ReportMail {
            words: mail_words(of.rule.locale),
            locale: of.rule.locale,
            heading: one_line(&of.rule.name),
            about: one_line(&file.about),
            figures: file.view.as_ref().map(|view| view.figures.clone()).unwrap_or_default(),
            has_picture: file.view.is_some(),
            file: file.name.clone(),
            unsubscribe: unsubscribe.clone(),
        };
        let failed = |error: askama::Error| ApiError::internal(error.to_string());
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        Ok(Mail {
            id: format!("{run}.{at}"),
            written_at: of.run.started_at.unwrap_or_else(|| self.now_ms()),
            to: to.to_owned(),
            subject: of.rule.name.clone(),
            text: ReportMailText { mail: &content }.render().map_err(failed)?,
            html: ReportMailHtml { mail: &content }.render().map_err(failed)?,
            unsubscribe: Some(unsubscribe),
            picture: file.view.as_ref().map(|view| (PICTURE_ID, view.picture.clone())),
            file: Some((file.name.clone(), file.content_type, file.bytes.to_vec())),
        })
    }

    /// The POST request of a file to a webhook, signed where the rule has a secret.
    fn report_post(
        &self,
        of: &ReportWork,
        recipient: &RecipientStatus,
        file: &ReportFile,
        at_ms: i64,
    ) -> Post {
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        let id = recipient
            .tenant_id
            .as_ref()
            .map_or(run.to_owned(), |tenant| format!("{run}.{}", header(tenant)));
        let (secret, previous) =
            (of.rule.webhook_secret.as_deref(), of.rule.previous_secret.as_ref());
        let secrets = signing_secrets(secret, previous, at_ms);
        let mut headers = signature_headers(&secrets, &id, at_ms, &file.bytes);
        headers.push(("x-service-report-id", of.rule.number.to_string()));
        headers.push(("x-service-report-name", header(&of.rule.name)));
        headers.push(("x-service-dashboard-id", of.rule.dashboard_id.clone()));
        headers.extend(
            recipient.tenant_id.iter().map(|tenant| ("x-service-tenant-id", header(tenant))),
        );
        Post {
            url: recipient.to.clone(),
            content_type: file.content_type,
            headers,
            body: file.bytes.to_vec(),
            timeout: WEBHOOK_TIMEOUT,
        }
    }
}

/// A name as a header may hold it: control characters, bytes beyond ASCII and the percent sign are
/// percent-encoded.
fn header(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'%' | 0..=31 | 127.. => out.push_str(&format!("%{byte:02X}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

/// A file name from parts: characters that file systems may refuse become hyphens.
fn file_name(parts: &[&str]) -> String {
    let clean = |part: &&str| {
        let plain =
            |char: char| if char.is_alphanumeric() || "._".contains(char) { char } else { '-' };
        let text: String = part.chars().take(60).map(plain).collect();
        text.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    };
    let parts: Vec<String> = parts.iter().map(clean).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// The dashboard in a mail: at its own size, since mails are narrow.
///
/// `None` when it cannot be drawn: the mail comes with its file alone.
fn mail_view(sheet: &Sheet, locale: Locale) -> Option<MailView> {
    let drawn = render::picture(sheet, 1.0);
    let drawn = drawn.inspect_err(|error| warn!(error, "a report's mail lacks its picture"));
    // A mail program has letters of all languages.
    let figures = match sheet.locale == locale {
        true => render::figures(sheet),
        false => render::figures(&sheet.in_locale(locale)),
    };
    Some(MailView { figures, picture: drawn.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_where_they_go() {
        assert_eq!(header("Übersicht 50 %\r\nx: y"), "%C3%9Cbersicht 50 %25%0D%0Ax: y");
        assert_eq!(file_name(&["Weekly / usage", "", "2026-11-20"]), "Weekly-usage-2026-11-20");
        assert_eq!(file_name(&["../../etc/passwd"]), "..-..-etc-passwd");
    }
}
