//! The small chart of an alert's mail: the value as the rule saw it, up to the look that changed its state.
//!
//! ```text
//! 12 windows back …………………… 1,204 ── threshold 1,000 ── now
//! ```
//!
//! Of a rule over 60 minutes that fired at 10:17, 48 windows end 15 minutes apart, the first at 22:32 the day before: each value is
//! computed as the rule computes it, so that the last one is the value of the mail.
//!
//! ```text
//! subtitle    2026-11-19 22:32 UTC to 2026-11-20 10:17 UTC, each value of 60 minutes
//! axis        the widget's format; plain numbers where the value is a change in percent
//! line        the 48 values; a gap where one is missing
//! dashed      the threshold, labelled `Threshold`
//! ```

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tracing::warn;

use super::evaluation::watched_widget;
use crate::{
    app::{request::context::App, settings::Settings},
    base::{instant, locale::Locale},
    render::{self, Answer, Card, Grain, Place, Question, Row, Sheet, words},
    store::{AlertRule, ConditionType, Dashboard, Delivery, Org, Widget, rule_id},
};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Values of a chart, a quarter of the window apart.
const POINTS: i64 = 48;
/// Time for the queries of a chart; the mail comes without one where they take longer.
const LOOKS_TIME: Duration = Duration::from_secs(1);

impl App {
    /// The chart of a delivery, drawn once for all addresses. Nothing where it cannot be drawn, or takes too long.
    ///
    /// The event of the last chart is remembered: the mails of one event to fifty addresses need one drawing.
    pub fn alert_chart(&self, delivery: &Delivery) -> Option<Arc<Vec<u8>>> {
        // One at a time: mails of many rules must not draw on all threads at once.
        let mut last = self.last_alert_chart.lock();
        if let Some((event, chart)) = &*last
            && *event == delivery.event
            && !event.is_empty()
        {
            return Some(Arc::clone(chart));
        }
        // Mails of others wait meanwhile: one query must not take as long as one that somebody waits for.
        let query_ms_max = self.settings.query_ms_max.min(LOOKS_TIME.as_millis() as u64);
        let settings = Settings { query_ms_max, ..(*self.settings).clone() };
        let quick = Self { settings: Arc::new(settings), ..self.clone() };
        let sheet = quick.alert_sheet(delivery)?;
        let drawn = render::picture(&sheet, 1.0);
        let drawn = drawn.inspect_err(|error| warn!(error, "an alert's mail lacks its chart"));
        let chart = Arc::new(drawn.ok()?);
        *last = Some((delivery.event.clone(), Arc::clone(&chart)));
        Some(chart)
    }

    /// One card with the values of the rule. `None` where rule, dashboard or widget are gone, or a query fails.
    fn alert_sheet(&self, delivery: &Delivery) -> Option<Sheet> {
        let reader = self.org_reader(&delivery.org);
        let rule: AlertRule = reader.find(&rule_id(delivery.alert)).ok()??;
        let org: Org = reader.find(&delivery.org).ok()??;
        let namespace = org.environment_by_id(&rule.environment)?.namespace();
        let dashboard: Dashboard = reader.find(&rule.dashboard_id).ok()??;
        let widget = watched_widget(&dashboard, &rule.widget_id)?;
        let notification = &delivery.notification;
        let (to, tenant) = (notification.window_to, notification.tenant_id.as_deref());
        // A quarter of the window: neighbours overlap, and the line is smooth.
        let step = ((to - notification.window_from) / 4).max(MINUTE_MS);
        let from = to - (POINTS - 1) * step;
        let began = Instant::now();
        let mut rows = Vec::new();
        for at in (from..=to).step_by(step as usize) {
            if began.elapsed() > LOOKS_TIME {
                return None;
            }
            let value = self.watched_value(namespace, &rule, widget, tenant, at).ok()?;
            rows.push(Row { bucket: Some(at), value, ..Row::default() });
        }
        let theme = dashboard.shown().settings.theme.clone();
        let locale = render::drawn_locale(notification.locale);
        let (first, last) = (instant::format_minute(from), instant::format_minute(to));
        let subtitle = (words(locale).values_between)(&first, &last, rule.lookback_minutes);
        // Behind the last value, so that none is drawn as a part.
        let answer = Answer {
            rows,
            grain: if step < DAY_MS { Grain::Hour } else { Grain::Day },
            from,
            to: to.saturating_add(7 * DAY_MS),
            ..Answer::default()
        };
        let cards = vec![card(&rule, widget, answer, locale)];
        Some(Sheet {
            title: notification.name.clone(),
            subtitle,
            theme,
            cards,
            made_at: to,
            locale,
        })
    }
}

/// The widget's card as a line, whatever its kind is, without groups: the rule watches all of them together.
fn card(rule: &AlertRule, widget: &Widget, answer: Answer, locale: Locale) -> Card {
    let mut viz = serde_json::Map::new();
    // A change is in percent, whatever the widget's numbers are in.
    let is_of_widget = rule.condition_type == ConditionType::Threshold;
    let format = widget.viz.get("format").filter(|_| is_of_widget);
    viz.extend(format.map(|format| ("format".to_owned(), format.clone())));
    if let Some(value) = rule.threshold_value {
        let label = words(locale).threshold;
        let threshold = json!({"value": value, "label": label, "tone": "bad"});
        viz.insert("thresholds".to_owned(), json!([threshold]));
    }
    let text = |name: &str| widget.query.get(name).and_then(|value| value.as_str());
    let text = |name: &str| text(name).map(str::to_owned);
    Card {
        id: widget.id.clone(),
        kind: "line".to_owned(),
        title: widget.title.clone(),
        viz,
        place: Place { x: 0, y: 0, w: 12, h: 5 },
        query: Question {
            metric: text("metric"),
            numeric_prop: text("numeric_prop"),
            event_name: text("event_name"),
            group_by: None,
            limit: None,
        },
        answer: Ok(answer),
        locale,
    }
}
