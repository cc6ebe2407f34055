//! Events that tell a story: the sample of a new organisation, and the public demo.
//!
//! Both are made by one generator from a seed and a window, hour by hour, so that a demo that was
//! away continues where it stopped, and making an hour twice stores nothing twice (the event ids
//! are the same).
//!
//! ```text
//! GET  /v1/demo/embed-url?tenant_id=fjord    200 {"embed_url": "http://127.0.0.1:8080/embed/0190…?token=…", "tenant_id": "fjord", …}
//! POST /v1/demo/session                      200, a cookie: guest@inlay.invalid, a viewer of the demo's organisation
//!                                            404 "this server runs without the demo", without --demo
//! ```
//!
//! An event of the demo is one call of an API. Its id is made of tenant, hour since 1970 and number within the hour; 26 is the rate of
//! the largest tenant, and what an hour has follows from it:
//!
//! ```text
//! northwind-498662-0      the first of northwind on Friday, 2026-11-20, 14:00 UTC, the busiest hour of a day
//! 26 × 1.0 (Friday) × 1.0 (14:00) × 1.257 (trend) × 0.75 to 1.25 (chance)     25 to 41 events
//! 26 × 0.45 (Sunday) × 0.1 (02:00) × 1.263 (trend) × 0.75 to 1.25 (chance)    1 or 2 events, on 2026-11-22
//! ```

use inlay_engine::{Event, Rng, SeededRng};
use serde_json::{Value, json};

use crate::{
    app::{
        alerts::rules::{AlertChange, AlertSubject},
        analytics::saved_queries::SavedQueryChange,
        embed::sessions::{EmbedRequest, Minted},
        identity::{
            accounts::SessionOpened,
            sessions::{Client, GUEST_EMAIL},
        },
        reports::rules::ReportChange,
        request::{
            access::Principal,
            callers::{Caller, Identity},
            context::App,
        },
    },
    base::secret,
    error::{ApiError, Code, Result},
    store::{
        Actor, ConditionType, CronSchedule, Demo, Environment, Member, Operator, Org, OrgTxn,
        Permissions, ReportFormat, Role, Schedule, User, Widget, global_end_session, global_find,
        global_put,
    },
};

const HOUR_MS: i64 = 3_600_000;
/// Days of the sample of a new organisation.
const SAMPLE_DAYS: i64 = 30;
/// Days of the demo.
const DEMO_DAYS: i64 = 90;
/// Events of the busiest demo tenant in a usual hour.
const DEMO_RATE: f64 = 26.0;
/// Tenants of the demo and their share of its events.
const DEMO_TENANTS: [(&str, f64); 3] = [("northwind", 1.0), ("fjord", 0.6), ("atlas", 0.35)];
// Nobody can register or be invited under this domain (`RESERVED_DOMAIN`), so that the account is always ours.
const DEMO_EMAIL: &str = "demo@inlay.invalid";
const SAMPLE_TENANT: &str = "sample-tenant";
/// A statement that the demo has saved.
const SAMPLE_SQL: &str = "SELECT string_props['model'] AS model, count(*) AS requests,\n       \
                          sum(numeric_props['cost_usd']) AS spend\nFROM events\nWHERE timestamp > now() - \
                          interval '7 days'\nGROUP BY 1\nORDER BY spend DESC";
/// Rows after which a batch is stored. An hour is never divided, so that a batch may have one hour of rows more.
const BATCH_ROWS: usize = 5_000;

const MODELS: [(&str, f64); 4] =
    [("nova-large", 0.42), ("nova-small", 0.3), ("lyra", 0.18), ("orion-2", 0.1)];
const ENDPOINTS: [(&str, f64); 5] = [
    ("/v1/chat/completions", 0.52),
    ("/v1/embeddings", 0.24),
    ("/v1/images", 0.12),
    ("/v1/audio/transcribe", 0.08),
    ("/v1/moderations", 0.04),
];
const PLANS: [(&str, f64); 4] =
    [("enterprise", 0.48), ("growth", 0.29), ("starter", 0.16), ("free", 0.07)];
const SOURCES: [(&str, f64); 3] = [("api", 0.7), ("web", 0.2), ("mobile", 0.1)];
const STATUSES: [(&str, f64); 3] = [("ok", 0.965), ("error", 0.028), ("timeout", 0.007)];
const COUNTRIES: [(&str, f64); 6] =
    [("DE", 0.3), ("US", 0.28), ("FR", 0.15), ("GB", 0.12), ("NL", 0.1), ("JP", 0.05)];

/// Tenants of the demo, the largest first.
///
/// `["northwind", "fjord", "atlas"]`.
pub fn demo_tenants() -> [&'static str; DEMO_TENANTS.len()] {
    DEMO_TENANTS.map(|(name, _)| name)
}

impl App {
    /// Gives a new organisation a sample of events to look at. Without a sample the account is poorer, but its key must
    /// reach its owner, so that a failure is logged only.
    ///
    /// The sample is 30 days of `sample-tenant` in `development`: production starts empty, and queries there answer 0.
    pub fn add_sample(&self, org: &Org) {
        if let Err(error) = self.seed_sample(org) {
            tracing::warn!(code = error.code.name(), %error, "cannot seed the sample");
        }
    }

    /// Seeds the sample of a new organisation into its development environment.
    fn seed_sample(&self, org: &Org) -> Result<()> {
        let Some(environment) = org.environment("development") else { return Ok(()) };
        let now = self.now_ms();
        let window = (now - SAMPLE_DAYS * 24 * HOUR_MS, now);
        self.seed(environment, SAMPLE_TENANT, window, 2.5)
    }

    /// Makes the demo's organisation and dashboard once, and its events up to now.
    ///
    /// Called at each start with `--demo`. After a day without the server it adds that day; of an absence beyond 90 days, the last 90.
    ///
    /// Errors: those of the store.
    pub fn seed_demo(&self) -> Result<Demo> {
        let known: Option<Demo> = global_find(&self.engine.keys(), "demo", "demo")?;
        let mut demo = match known {
            Some(demo) => demo,
            None => self.create_demo()?,
        };
        let org = self.org(&demo.org)?;
        let environment = org.environment("production").cloned();
        let environment =
            environment.ok_or_else(|| ApiError::internal("the demo has no environment"))?;
        let now = self.now_ms();
        // The last hour is made again: it was not over.
        let from = (demo.seeded_until - HOUR_MS).max(now - DEMO_DAYS * 24 * HOUR_MS);
        for (tenant, share) in DEMO_TENANTS {
            self.seed(&environment, tenant, (from, now), DEMO_RATE * share)?;
        }
        if demo.seeded_until == 0 {
            // Ninety days of rows in memory would be looked at one by one for each card of the first page.
            self.engine.flush()?;
        }
        demo.seeded_until = now;
        self.engine.transact(|txn| global_put(txn, "demo", "demo", &demo))?;
        Ok(demo)
    }

    /// The record `demo` is stored last: where a start was cut off before, the next one finds the account by its address, and makes dashboard
    /// and rules anew.
    fn create_demo(&self) -> Result<Demo> {
        let mut password = [0; 32];
        self.rng.fill(&mut password);
        let password = secret::hex(&password);
        // Nobody knows the password: the demo is looked at through its embed only.
        // An earlier start may have been cut off after registering.
        let known: Option<String> = global_find(&self.engine.keys(), "email", DEMO_EMAIL)?;
        let org = match known {
            Some(user) => {
                let user: Option<User> = global_find(&self.engine.keys(), "user", &user)?;
                self.org(
                    &user.ok_or_else(|| ApiError::internal("the demo's user is missing"))?.org,
                )?
            }
            None => {
                let client = Client::default();
                let org = self.register(DEMO_EMAIL, &password, "Demo", "Inlay demo", client)?.org;
                self.add_sample(&org);
                org
            }
        };
        let caller = demo_caller(&org)?;
        let dashboard = self.create_dashboard(
            &caller,
            super::NewDashboard {
                name: "API usage".to_owned(),
                widgets: demo_widgets()?,
                settings: crate::store::Settings::default(),
            },
        )?;
        self.publish_dashboard(&caller, &dashboard.id)?;
        self.seed_rules(&caller, &dashboard.id)?;
        let demo = Demo { org: org.id, dashboard: dashboard.id, seeded_until: 0 };
        self.engine.transact(|txn| global_put(txn, "demo", "demo", &demo))?;
        Ok(demo)
    }

    /// One rule of each kind that the console shows: an alert without recipients, a report that is disabled, a saved query. None of them
    /// sends anything.
    fn seed_rules(&self, caller: &Caller, dashboard: &str) -> Result<()> {
        let subject = AlertSubject {
            dashboard_id: dashboard.to_owned(),
            widget_id: "errors".to_owned(),
            condition_type: ConditionType::Threshold,
            tenant_id: None,
            per_tenant: false,
        };
        let rule = AlertChange {
            name: Some("Too many failed requests".to_owned()),
            operator: Some(Operator::Gt),
            threshold_value: Some(5.0),
            ..AlertChange::default()
        };
        self.create_alert(caller, subject, rule)?;
        let schedule = CronSchedule {
            cron: "0 8 * * 1".to_owned(),
            timezone: Some("Europe/Berlin".to_owned()),
        };
        let report = ReportChange {
            name: Some("Weekly usage".to_owned()),
            recipients: Some(vec!["ada@example.com".to_owned()]),
            enabled: Some(false),
            ..ReportChange::default()
        };
        let format = ReportFormat::Pdf;
        self.create_report(caller, dashboard, format, Schedule::Cron(schedule), report)?;
        self.create_saved_query(
            caller,
            SavedQueryChange {
                name: Some("Spend by model, last 7 days".to_owned()),
                sql: Some(SAMPLE_SQL.to_owned()),
                starred: Some(true),
                ..SavedQueryChange::default()
            },
        )?;
        Ok(())
    }

    /// Mints an embed session of the demo, for its largest tenant unless another is named. Gives the session, the tenant, and the id of
    /// the dashboard.
    ///
    /// Errors: 404 when the server runs without the demo.
    pub fn demo_session(&self, tenant: Option<&str>) -> Result<(Minted, String, String)> {
        let demo: Option<Demo> = global_find(&self.engine.keys(), "demo", "demo")?;
        let demo = demo
            .filter(|_| self.settings.demo)
            .ok_or_else(|| ApiError::new(Code::NotFound, "this server runs without the demo"))?;
        let caller = demo_caller(&self.org(&demo.org)?)?;
        let tenant = tenant.unwrap_or(DEMO_TENANTS[0].0).to_owned();
        let minted = self.create_embed_session(
            &caller,
            EmbedRequest {
                tenant_id: tenant.clone(),
                dashboard_id: demo.dashboard.clone(),
                expires_in: None,
                permissions: Permissions { allow_drill_down: true, ..Permissions::default() },
            },
        )?;
        Ok((minted, tenant, demo.dashboard))
    }

    /// Opens a console session for a guest of the demo. 404 when the server runs without it.
    ///
    /// `before` is the cookie that the new one replaces; its session ends.
    ///
    /// All guests share one account with the role of a viewer. `is_guest` (`identity/sessions.rs`) keeps them from seeing or
    /// ending each other's sessions.
    pub fn guest_session(&self, before: Option<&str>, client: &Client) -> Result<SessionOpened> {
        let demo: Option<Demo> = global_find(&self.engine.keys(), "demo", "demo")?;
        let demo = demo
            .filter(|_| self.settings.demo)
            .ok_or_else(|| ApiError::new(Code::NotFound, "this server runs without the demo"))?;
        let org = self.org(&demo.org)?;
        let mut password = [0; 32];
        self.rng.fill(&mut password);
        // Nobody knows the password: this function is the only way to open a session of the guest.
        let known: Option<String> = global_find(&self.engine.keys(), "email", GUEST_EMAIL)?;
        let hash = match known {
            Some(_) => String::new(),
            None => self.hash_password(&secret::hex(&password))?,
        };
        self.engine.transact(|txn| {
            let known: Option<String> = global_find(txn, "email", GUEST_EMAIL)?;
            let known = match known {
                Some(id) => global_find::<User>(txn, "user", &id)?,
                None => None,
            };
            let user = match known {
                Some(user) => user,
                None => self.add_guest(txn, &org, hash)?,
            };
            if let Some(before) = before {
                global_end_session(txn, &secret::digest(before))?;
            }
            let session = self.open_session(txn, &user.id, &org.id, client)?;
            Ok(SessionOpened { user, org: org.clone(), role: Role::Viewer, session })
        })
    }

    fn add_guest(
        &self,
        txn: &mut inlay_engine::Txn,
        org: &Org,
        password_hash: String,
    ) -> Result<User> {
        let now = self.now_ms();
        let user = User {
            id: self.new_id(),
            email: GUEST_EMAIL.to_owned(),
            name: "Guest".to_owned(),
            password_hash,
            org: org.id.clone(),
            created_at: now,
        };
        global_put(txn, "email", &user.email, &user.id)?;
        global_put(txn, "user", &user.id, &user)?;
        let member = Member { id: user.id.clone(), role: Role::Viewer, joined_at: now };
        OrgTxn::new(txn, &org.id).put(&member)?;
        Ok(user)
    }

    /// Makes the events of a tenant in a window of milliseconds, and stores them in batches.
    ///
    /// Each hour has a generator of its own, seeded by hour and tenant: where a window begins changes nothing of the hours within it.
    fn seed(
        &self,
        environment: &Environment,
        tenant: &str,
        window: (i64, i64),
        rate: f64,
    ) -> Result<()> {
        let namespace = environment.namespace();
        let mut batch = self.engine.batch(namespace);
        let first = window.0.div_euclid(HOUR_MS);
        for hour in first..=window.1.div_euclid(HOUR_MS) {
            let rng = SeededRng::new(hour as u64 ^ hash(tenant));
            let count = events_in_hour(hour, rate, &rng);
            for n in 0..count {
                let at = hour * HOUR_MS + rng.below(HOUR_MS as u64) as i64;
                if !(window.0..window.1).contains(&at) {
                    continue;
                }
                push_event(&mut batch, tenant, hour, n, at, &rng)?;
            }
            if batch.len() >= BATCH_ROWS {
                let full = std::mem::replace(&mut batch, self.engine.batch(namespace));
                self.store_sample(full)?;
            }
        }
        if !batch.is_empty() {
            self.store_sample(batch)?;
        }
        Ok(())
    }

    /// Stores a batch without counting it: samples do not count against a plan, and are no usage.
    fn store_sample(&self, batch: inlay_engine::Batch) -> Result<()> {
        self.engine.ingest(batch, |_, _| Ok::<_, ApiError>(()))?;
        Ok(())
    }
}

/// A caller that acts for the demo's organisation.
fn demo_caller(org: &Org) -> Result<Caller> {
    let environment = org.environment("production").cloned();
    Ok(Caller::from(Identity {
        principal: Principal::Owner,
        org: org.id.clone(),
        environment: environment
            .ok_or_else(|| ApiError::internal("an organisation has no environment"))?,
        actor: Actor {
            r#type: "system".to_owned(),
            id: "demo".to_owned(),
            label: "Demo".to_owned(),
        },
        session: None,
    }))
}

/// FNV-1a with 64 bits. It must give the same for ever: the seed of an hour depends on it.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Number of events in an hour since 1970, of a tenant with `rate` events in a usual hour.
///
/// Working days are busier than weekends, days than nights, and the whole grows for half a year and begins anew.
fn events_in_hour(hour: i64, rate: f64, rng: &SeededRng) -> u64 {
    let day = hour.div_euclid(24);
    let of_day = hour.rem_euclid(24) as f64;
    // 1970 began on a Thursday: 0 is Monday, 5 and 6 are the weekend.
    let weekday = (day + 3).rem_euclid(7);
    let week = if weekday >= 5 { 0.45 } else { 1.0 };
    // A cosine with its top of 1.0 at 14:00 UTC and its bottom of 0.1 at 02:00.
    let daily = 0.55 + 0.45 * ((of_day - 14.0) / 24.0 * std::f64::consts::TAU).cos();
    let trend = 1.0 + (day.rem_euclid(180) as f64) / 300.0;
    let noise = 0.75 + rng.below(500) as f64 / 1_000.0;
    // A launch every few weeks, so that the lines have something to say.
    let launch = if day.rem_euclid(23) == 7 { 2.1 } else { 1.0 };
    (rate * week * daily * trend * noise * launch).round() as u64
}

/// One of some values, each as likely as its share. Shares add up to 1; what rounding leaves goes to the last value.
fn pick<'a>(choices: &[(&'a str, f64)], rng: &SeededRng) -> &'a str {
    let mut rest = rng.below(1_000_000) as f64 / 1_000_000.0;
    for (value, share) in choices {
        rest -= share;
        if rest < 0.0 {
            return value;
        }
    }
    choices.last().map_or("", |(value, _)| value)
}

/// Adds event `n` of an hour to a batch, at a time in milliseconds since 1970.
fn push_event(
    batch: &mut inlay_engine::Batch,
    tenant: &str,
    hour: i64,
    n: u64,
    at: i64,
    rng: &SeededRng,
) -> Result<()> {
    let id = format!("{tenant}-{hour}-{n}");
    // The product of two uniform numbers is mostly small: of 400 users, a few do most of the work.
    let user = format!("user-{}", (rng.below(1_000) * rng.below(1_000)) / 2_500);
    let (model, status) = (pick(&MODELS, rng), pick(&STATUSES, rng));
    // Three dice: most latencies are in the middle, few at either end; the cube below gives them a long tail upwards.
    let spread = (rng.below(1_000) + rng.below(1_000) + rng.below(1_000)) as f64 / 3_000.0;
    let base = if model == "nova-large" { 420.0 } else { 180.0 };
    let latency = (base * (0.4 + 2.2 * spread * spread * spread + 0.5 * spread)).round();
    let tokens = 40.0 + (rng.below(1_000) * rng.below(1_000) / 300) as f64;
    let cost = (tokens * if model == "nova-large" { 0.03 } else { 0.004 }).round() / 100.0;
    let event = Event {
        tenant,
        name: "api_call",
        timestamp_ms: at,
        event_id: Some(&id),
        user_id: Some(&user),
    };
    let strings = [
        ("model", model),
        ("endpoint", pick(&ENDPOINTS, rng)),
        ("status", status),
        ("plan", pick(&PLANS, rng)),
        ("source", pick(&SOURCES, rng)),
        ("country", pick(&COUNTRIES, rng)),
    ];
    batch.push(
        &event,
        &strings,
        &[("latency_ms", latency), ("tokens", tokens), ("cost_usd", cost)],
    )?;
    Ok(())
}

/// Widgets of the demo's dashboard, ten on twelve columns. They pass the same checks as widgets of the API: a test says so.
fn demo_widgets() -> Result<Vec<Widget>> {
    let count = |more: Value| {
        let mut query = json!({"event_name": "api_call", "metric": "count"});
        if let (Some(query), Some(more)) = (query.as_object_mut(), more.as_object()) {
            query.extend(more.clone());
        }
        query
    };
    let of = |metric: &str, number: &str| {
        count(json!({"metric": metric, "numeric_prop": number, "compare": "previous"}))
    };
    let widgets = json!([
        {"id": "requests", "kind": "number", "title": "API requests", "query": count(json!({"compare": "previous"})),
         "viz": {"sparkline": true, "good_direction": "up"}, "layout": {"x": 0, "y": 0, "w": 3, "h": 3}},
        {"id": "users", "kind": "number", "title": "Active users",
         "query": {"event_name": "api_call", "metric": "count_unique", "compare": "previous"},
         "viz": {"sparkline": true, "good_direction": "up"}, "layout": {"x": 3, "y": 0, "w": 3, "h": 3}},
        {"id": "spend", "kind": "number", "title": "Spend", "query": of("sum", "cost_usd"),
         "viz": {"sparkline": true, "good_direction": "neutral", "format": {"style": "currency", "currency": "USD"}},
         "layout": {"x": 6, "y": 0, "w": 3, "h": 3}},
        {"id": "p95", "kind": "number", "title": "p95 latency", "query": of("p95", "latency_ms"),
         "viz": {"sparkline": true, "good_direction": "down", "format": {"style": "duration"}},
         "layout": {"x": 9, "y": 0, "w": 3, "h": 3}},
        {"id": "over_time", "kind": "line", "title": "Requests over time", "query": count(json!({"compare": "previous"})),
         "viz": {"subtitle": "Compared with the period before", "fill": true}, "layout": {"x": 0, "y": 3, "w": 8, "h": 6}},
        {"id": "by_plan", "kind": "donut", "title": "Requests by plan", "query": count(json!({"group_by": "plan"})),
         "viz": {"value_label": "requests"}, "layout": {"x": 8, "y": 3, "w": 4, "h": 6}},
        {"id": "by_model", "kind": "stacked_bar", "title": "Requests by model", "query": count(json!({"group_by": "model"})),
         "viz": {}, "layout": {"x": 0, "y": 9, "w": 7, "h": 6}},
        {"id": "endpoints", "kind": "bar_list", "title": "Top endpoints", "query": count(json!({"group_by": "endpoint"})),
         "viz": {}, "layout": {"x": 7, "y": 9, "w": 5, "h": 6}},
        {"id": "errors", "kind": "bar", "title": "Failed requests",
         "query": count(json!({"granularity": "auto", "filters": {"status": ["error", "timeout"]}})),
         "viz": {"good_direction": "down"}, "layout": {"x": 0, "y": 15, "w": 4, "h": 6}},
        {"id": "countries", "kind": "table", "title": "Countries", "query": {"event_name": "api_call", "group_by": "country",
         "measures": [
            {"metric": "count", "label": "Requests"},
            {"metric": "count_unique", "label": "Users"},
            {"metric": "p95", "numeric_prop": "latency_ms", "label": "p95", "format": {"style": "duration"}},
            {"metric": "sum", "numeric_prop": "cost_usd", "label": "Spend", "format": {"style": "currency", "currency": "USD"}}]},
         "viz": {}, "layout": {"x": 4, "y": 15, "w": 8, "h": 6}}
    ]);
    serde_json::from_value(widgets)
        .map_err(|error| ApiError::internal(format!("the demo's widgets: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_passes_its_own_checks() {
        for widget in demo_widgets().unwrap() {
            crate::app::dashboards::widgets::validate(&widget, "").unwrap();
        }
        let hours = |seed| events_in_hour(490_000, DEMO_RATE, &SeededRng::new(seed));
        assert_eq!(hours(1), hours(1));
    }
}
