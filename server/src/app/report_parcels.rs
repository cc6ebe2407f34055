//! A report on its way: its file, and the mail or webhook that brings it.

use std::{sync::Arc, time::Duration};

use askama::Template;

use super::{
    alert_notices::signature_headers,
    context::App,
    report_runs::ReportWork,
    report_sheets::{artifact, kind_of_file},
};
use crate::{
    base::{instant, text::one_line},
    error::{ApiError, Result},
    outbound::{Mail, Packet, Post},
    store::Told,
};

/// How long a webhook with a report may take.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(20);

/// A report's file, ready to go.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// What it is about, for the mail.
    about: String,
    /// Name.
    file: String,
    /// Bytes.
    pub bytes: Arc<[u8]>,
    /// Titles of widgets that could not be shown.
    pub missing: Vec<String>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a> {
    mail: &'a Content,
}

#[derive(Template)]
#[template(path = "report.txt", escape = "none")]
struct Text<'a> {
    mail: &'a Content,
}

struct Content {
    heading: String,
    about: String,
    file: String,
}

impl App {
    /// Makes the file of a run for a tenant, or for all of them.
    pub fn report_parcel(&self, of: &ReportWork, tenant: Option<&str>) -> Result<Parcel> {
        let tenant = tenant.or(of.rule.tenant_id.as_deref());
        let sheet = self.report_sheet(&of.rule, &of.environment, &of.dashboard, tenant);
        let bytes = artifact(&sheet, of.rule.format)?;
        let missing = sheet.cards.iter().filter(|card| card.answer.is_err());
        let missing = missing.map(|card| card.title.clone()).collect();
        let about: Vec<&str> = [Some(sheet.title.as_str()), tenant].into_iter().flatten().collect();
        let date = instant::date(sheet.made_at);
        let (_, ending) = kind_of_file(of.rule.format);
        let name = if of.rule.burst.is_empty() { "" } else { tenant.unwrap_or_default() };
        Ok(Parcel {
            about: about.join(", for "),
            file: format!("{}.{ending}", file_name(&[&of.rule.name, name, &date])),
            bytes: bytes.into(),
            missing,
        })
    }

    /// What is carried to the receiver at a place of a run's list, in an attempt that begins at `at_ms`.
    pub fn report_packet(
        &self,
        of: &ReportWork,
        (at, told): (usize, &Told),
        parcel: &Parcel,
        at_ms: i64,
    ) -> Result<Packet> {
        Ok(match told.kind.as_str() {
            "webhook" => Packet::Post(self.report_post(of, told, parcel, at_ms)),
            _ => Packet::Mail(Box::new(self.report_mail(of, at, &told.to, parcel)?)),
        })
    }

    /// The mail that brings a file to one address.
    fn report_mail(&self, of: &ReportWork, at: usize, to: &str, parcel: &Parcel) -> Result<Mail> {
        let content = Content {
            heading: one_line(&of.rule.name),
            about: one_line(&parcel.about),
            file: parcel.file.clone(),
        };
        let failed = |error: askama::Error| ApiError::internal(error.to_string());
        let (content_type, _) = kind_of_file(of.rule.format);
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        Ok(Mail {
            id: format!("{run}.{at}"),
            written_at: of.run.started_at.unwrap_or_else(|| self.now_ms()),
            to: to.to_owned(),
            subject: of.rule.name.clone(),
            text: Text { mail: &content }.render().map_err(failed)?,
            html: Html { mail: &content }.render().map_err(failed)?,
            file: Some((parcel.file.clone(), content_type, parcel.bytes.to_vec())),
        })
    }

    /// The webhook that brings a file to a receiver.
    fn report_post(&self, of: &ReportWork, told: &Told, parcel: &Parcel, at_ms: i64) -> Post {
        let (content_type, _) = kind_of_file(of.rule.format);
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        let id = told
            .tenant_id
            .as_ref()
            .map_or(run.to_owned(), |tenant| format!("{run}.{}", header(tenant)));
        let secret = of.rule.webhook_secret.as_deref();
        let signature = secret.map(|secret| signature_headers(secret, &id, at_ms, &parcel.bytes));
        let mut headers = signature.unwrap_or_default();
        headers.push(("x-service-report-id", of.rule.number.to_string()));
        headers.push(("x-service-report-name", header(&of.rule.name)));
        headers.push(("x-service-dashboard-id", of.rule.dashboard_id.clone()));
        headers.extend(told.tenant_id.iter().map(|tenant| ("x-service-tenant-id", header(tenant))));
        Post {
            url: told.to.clone(),
            content_type,
            headers,
            body: parcel.bytes.to_vec(),
            timeout: WEBHOOK_TIMEOUT,
        }
    }
}

/// A name as a header may hold it: what is not plain ASCII is percent-encoded, as is the percent sign.
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

/// A file's name from parts, without what file systems do not like.
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
