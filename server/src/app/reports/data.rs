//! What a report shows: the dashboard with its data, asked of the one gate to data.
//!
//! ```text
//! rule: format csv, period 7d, tenant northwind           Sheet
//! widget {"id": "requests", "kind": "number", …}          Card { answer: Ok(Answer { rows: [Row { value: Some(1820.0), … }], … }) }
//! widget {"id": "over_time", "kind": "line", …}           Card { answer: Ok(Answer { rows: [Row { bucket: Some(…), … }, …], grain: Day, … }) }
//! a widget whose query fails                              Card { answer: Err("the query took too long") }
//!
//! subtitle    Last 7 days  ·  northwind  ·  Made 2026-11-20 10:17 UTC
//! csv         widget_id,widget_title,bucket,group,metric,value
//! ```
//!
//! A widget that cannot be answered leaves its card and a fault of the run: the others are worth sending.

use inlay_engine::Value;
use jiff::tz::TimeZone;
use serde_json::Value as Json;
use tracing::warn;

use crate::{
    app::{
        analytics::query::{Ask, QueryAnswer, QueryRow, granularity_name},
        dashboards::widgets::{ViewFilters, WidgetAnswer},
        request::context::App,
    },
    base::{instant, locale::Locale},
    error::{ApiError, Code, Result},
    render::{
        self, Answer, Card, Grain, Measure, Place, Question, Row, Sheet, Spec, humanize, period,
        words,
    },
    store::{Dashboard, DashboardConfig, Environment, ReportFormat, ReportRule, Widget},
};

/// Rows of a card, at most: one that is higher is a mistake, or a list that pages show in full.
const ROWS_MAX: u32 = 24;

impl App {
    /// The sheet of a report about a tenant, or about all of them.
    ///
    /// The live snapshot is shown, or the draft of a dashboard that is not published: a report needs no publishing.
    pub fn report_sheet(
        &self,
        rule: &ReportRule,
        environment: &Environment,
        dashboard: &Dashboard,
        tenant: Option<&str>,
    ) -> Sheet {
        let config = dashboard.shown();
        let made_at = self.now_ms();
        let mut about: Vec<String> = Vec::new();
        // As in the embed, one period is that of all widgets.
        let shown = rule.period.as_ref().unwrap_or(&config.settings.default_period);
        let locale = render::drawn_locale(rule.locale);
        let words = words(locale);
        about.push((words.last)(&period(shown, locale)));
        about.extend(tenant.map(str::to_owned));
        about.push((words.made)(&instant::format_minute(made_at)));
        let card =
            |widget: &Widget| self.report_card(rule, environment, config, widget, (tenant, locale));
        Sheet {
            title: config.name.clone(),
            subtitle: about.join("  ·  "),
            theme: config.settings.theme.clone(),
            cards: config.widgets.iter().map(card).collect(),
            made_at,
            locale,
        }
    }

    /// One widget with its data, or with the reason why it has none.
    fn report_card(
        &self,
        rule: &ReportRule,
        environment: &Environment,
        config: &DashboardConfig,
        widget: &Widget,
        (tenant, locale): (Option<&str>, Locale),
    ) -> Card {
        let shown = rule.period.as_ref().unwrap_or(&config.settings.default_period);
        let filters = ViewFilters { period: Some(shown.clone()), ..ViewFilters::default() };
        let answer = self.widget_answer(environment.namespace(), tenant, widget, &filters, shown);
        if let Err(error) = &answer {
            warn!(code = error.code.name(), %error, cause = error.cause, widget = widget.id, "a report lacks a widget");
        }
        let text = |name: &str| widget.query.get(name).and_then(Json::as_str).map(str::to_owned);
        Card {
            id: widget.id.clone(),
            kind: widget.kind.clone(),
            title: widget.title.clone(),
            viz: widget.viz.clone(),
            // The width is that of the grid; a height beyond 24 rows would leave most of a page empty.
            place: Place {
                x: widget.layout.x,
                y: widget.layout.y,
                w: widget.layout.w,
                h: widget.layout.h.min(ROWS_MAX),
            },
            query: Question {
                metric: text("metric"),
                numeric_prop: text("numeric_prop"),
                event_name: text("event_name"),
                group_by: text("group_by"),
                limit: widget.query.get("limit").and_then(Json::as_u64).map(|limit| limit as usize),
            },
            answer: answer.map(drawn).map_err(|error| said(&error, locale)),
            locale,
        }
    }
}

/// Why a widget has no data, as its card shows it: faults of ours without details, which are in the log. Other errors are in English, and
/// only a report in English shows them.
fn said(error: &ApiError, locale: Locale) -> String {
    match error.code {
        code if code != Code::Internal && locale.is_default() => error.to_string(),
        _ => words(locale).unanswered.to_owned(),
    }
}

/// A file of a sheet: its bytes.
///
/// Errors: 500 with what the drawing libraries say.
///
/// CSV begins with a byte order mark and its heads, PNG with `\x89PNG`, PDF with `%PDF-1.`.
pub fn artifact(sheet: &Sheet, format: ReportFormat) -> Result<Vec<u8>> {
    let made = match format {
        ReportFormat::Csv => render::csv(sheet),
        ReportFormat::Png => render::png(sheet),
        ReportFormat::Pdf => render::pdf(sheet),
    };
    made.map_err(|error| ApiError::internal(format!("a report cannot be drawn: {error}")))
}

/// Type and ending of a report's file.
/// `("application/pdf", "pdf")` of [`ReportFormat::Pdf`].
pub fn kind_of_file(format: ReportFormat) -> (&'static str, &'static str) {
    match format {
        ReportFormat::Csv => ("text/csv", "csv"),
        ReportFormat::Png => ("image/png", "png"),
        ReportFormat::Pdf => ("application/pdf", "pdf"),
    }
}

/// The answer of a widget in the types of `render`, which know neither engine nor store.
fn drawn(answer: WidgetAnswer) -> Answer {
    match answer {
        WidgetAnswer::Nothing => Answer::default(),
        WidgetAnswer::Rows { ask, answer, spark } => {
            let bucket = |row: &QueryRow| (row.bucket, finite(row.value));
            let spark: Vec<_> = spark.iter().flatten().map(bucket).collect();
            let spark = render::course(&spark, answer.from_ms, Some(&ask.metric));
            let rows = answer.rows.iter().map(|row| Row {
                bucket: row.bucket,
                group: row.group.as_ref().map(|group| group.as_deref().map(str::to_owned)),
                value: finite(row.value),
                previous: ask.compare.map(|_| row.previous.and_then(finite)),
                values: Vec::new(),
            });
            Answer { rows: rows.collect(), spark, ..facts(&ask, &answer) }
        }
        WidgetAnswer::Table { ask, answer, measures, rows } => {
            let rows = rows.iter().map(|(group, values)| Row {
                group: Some(group.as_deref().map(str::to_owned)),
                values: values.iter().map(|value| finite(*value)).collect(),
                ..Row::default()
            });
            let measures = measures.iter().map(measure).collect();
            Answer { rows: rows.collect(), measures, ..facts(&ask, &answer) }
        }
    }
}

/// A number that can be drawn.
///
/// `None` for null, and for what a sum of huge numbers may be.
fn finite(value: Value) -> Option<f64> {
    value.as_f64().filter(|value| value.is_finite())
}

/// Window, grain and groups of an answer, for axes and for "Other".
fn facts(ask: &Ask, answer: &QueryAnswer) -> Answer {
    Answer {
        grain: Grain::named(ask.granularity.map(granularity_name)),
        from: answer.from_ms,
        to: answer.to_ms,
        period: ask.period.clone().filter(|_| ask.range.is_none()),
        groups_total: answer.groups_total,
        groups_returned: answer.groups_returned,
        total: answer.total.and_then(finite),
        zone: ask.timezone.clone().unwrap_or(TimeZone::UTC),
        ..Answer::default()
    }
}

/// A measure of a table. Its label is the one that was given, or the name of number or metric as people write it.
fn measure(measure: &Json) -> Measure {
    let text = |name: &str| measure.get(name).and_then(Json::as_str).map(str::to_owned);
    let metric = text("metric").unwrap_or_default();
    let numeric_prop = text("numeric_prop");
    Measure {
        label: text("label")
            .unwrap_or_else(|| humanize(numeric_prop.as_deref().unwrap_or(&metric))),
        metric,
        numeric_prop,
        format: Spec::read(measure.get("format")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Org, Schedule, global_records, rule_id};

    fn rule(format: ReportFormat) -> ReportRule {
        ReportRule {
            id: rule_id(1),
            number: 1,
            environment: String::new(),
            name: "Weekly".to_owned(),
            dashboard_id: String::new(),
            schedule: Schedule::Word("daily".to_owned()),
            format,
            recipients: Vec::new(),
            webhook_url: None,
            enabled: true,
            tenant_id: None,
            period: None,
            burst: Vec::new(),
            webhook_secret: None,
            previous_secret: None,
            next_run_at: None,
            locale: Locale::En,
            created_at: 0,
            updated_at: 0,
        }
    }

    #[test]
    fn the_demo_becomes_three_files() {
        let app = App::in_memory();
        app.seed_demo().unwrap();
        let keys = app.engine.keys();
        let (_, org) = global_records::<Org>(&keys).unwrap().remove(0);
        let (_, dashboard) = global_records::<Dashboard>(&keys).unwrap().remove(0);
        let begins: [(ReportFormat, &[u8]); 3] = [
            (
                ReportFormat::Csv,
                b"\xef\xbb\xbfwidget_id,widget_title,bucket,group,metric,value\r\n",
            ),
            (ReportFormat::Png, b"\x89PNG\r\n"),
            (ReportFormat::Pdf, b"%PDF-1."),
        ];
        for (format, begin) in begins {
            let sheet = app.report_sheet(
                &rule(format),
                &org.environments[0],
                &dashboard,
                Some("northwind"),
            );
            assert_eq!(sheet.theme, dashboard.shown().settings.theme);
            assert!(sheet.cards.iter().all(|card| card.answer.is_ok()));
            let file = artifact(&sheet, format).unwrap();
            assert!(file.starts_with(begin), "{format:?}");
        }
        let (rule, environment) = (rule(ReportFormat::Csv), &org.environments[0]);
        for is_mailed in [true, false] {
            let of = (Some("northwind"), is_mailed);
            let file = app.make_report(&rule, environment, &dashboard, of).unwrap();
            assert_eq!(file.view.is_some(), is_mailed, "only mails show a picture");
        }
    }
}
