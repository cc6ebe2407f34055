//! Usage of an organisation: events a day, queries, embed sessions and embed views.
//!
//! Events are counted in the log record that stores them. Queries and views are counted in memory
//! and stored from time to time: a write a query would be too much, and a crash loses seconds.
//!
//! ```text
//! GET /v1/usage?period=7d
//! 200 {"period": "7d", "events": {"used": 11, "limit": null}, "queries": 3, "embed_sessions": 1, "embed_views": 1,
//!      "by_day": [{"date": "2026-11-14", "events": 0}, …, {"date": "2026-11-20", "events": 10}, {"date": "2026-11-21", "events": 1}],
//!      "top_tenants": [{"tenant_id": "big", "events": 8}]}
//! ```
//!
//! Days are those of arrival, tenants those of the events' own times: history that is sent today counts today, and its tenant stands
//! under the weeks in which it happened. Eight days are listed for `7d`, since a window of seven days touches eight dates.
//!
//! ```text
//! o/<org>/usage_day/<environment>:2026-11-20     {"events": 10, "queries": 3, "embed_sessions": 1, "embed_views": 1}
//! o/<org>/usage_month/2026-11                    {"events": 11}      what the limit of the plan is compared with
//!
//! POST /v1/events beyond it                      402 {"code": "monthly_events_limit", "error": "the plan free allows 1000000 events a month",
//!                                                     "limit": 1000000, "used": 999990, "upgrade_to": "growth", …}
//! ```

use crate::{
    app::{
        periods::{parse_period, period_ms},
        plans,
        request::{callers::Caller, context::App},
    },
    base::instant,
    error::{ApiError, Code, Result},
    store::{Environment, Org, OrgTxn, UsageDay, UsageMonth},
};

const DAY_MS: i64 = 86_400_000;
/// Tenants that a report of usage names.
const TOP_TENANTS: usize = 10;

/// Usage of an environment in a period.
pub struct Usage {
    /// Name of the period, such as `30d`.
    pub period: String,
    /// Events that were stored.
    pub events: u64,
    /// Events of a month that the plan allows, over all environments; `None` is unlimited.
    pub limit: Option<u64>,
    /// Metric queries and SQL statements that were begun.
    pub queries: u64,
    /// Embed sessions that were minted.
    pub embed_sessions: u64,
    /// Embed pages that were shown.
    pub embed_views: u64,
    /// UTC dates with their events, oldest first, days without events too.
    pub by_day: Vec<(String, u64)>,
    /// Tenants with the most events of the period, at most 10, most first.
    pub top_tenants: Vec<(String, u64)>,
}

impl App {
    /// What the caller's environment used in the days of a period.
    ///
    /// `period` is one of `1h`, `24h`, `7d`, `30d` and `90d`, in whole days.
    ///
    /// Errors: 400 for another period; `query_timeout` and the like from the question about tenants.
    pub fn usage(&self, caller: &Caller, period: &str) -> Result<Usage> {
        parse_period("period", period)?;
        let length = period_ms(period).unwrap_or(DAY_MS);
        let now = self.now_ms();
        // The window is the last `length` milliseconds: the first of them is the one after `now - length`.
        let first = (now - length + 1).div_euclid(DAY_MS);
        let org = self.org(&caller.org)?;
        let reader = self.org_reader(&caller.org);
        let mut usage = Usage {
            period: period.to_owned(),
            events: 0,
            limit: plans::plan_of(&org).monthly_events,
            queries: 0,
            embed_sessions: 0,
            embed_views: 0,
            by_day: Vec::new(),
            top_tenants: Vec::new(),
        };
        for day in first..=now.div_euclid(DAY_MS) {
            let date = instant::date(day * DAY_MS);
            let found: Option<UsageDay> = reader.find(&day_id(&caller.environment, &date))?;
            let day = found.unwrap_or_default();
            usage.events += day.events;
            usage.queries += day.queries;
            usage.embed_sessions += day.embed_sessions;
            usage.embed_views += day.embed_views;
            usage.by_day.push((date, day.events));
        }
        let counts = self.counters.of(&caller.org, &caller.environment);
        usage.queries += counts.queries;
        usage.embed_views += counts.embed_views;
        let control = self.query_control();
        let namespace = caller.environment.namespace();
        usage.top_tenants = self.engine.tenants(namespace, now - length, now, &control)?;
        usage.top_tenants.truncate(TOP_TENANTS);
        Ok(usage)
    }

    /// Counts stored events of now within the transaction that stores them. 402 when the month is full.
    ///
    /// `new` are the events that are not known by their id. All or none: a request that would go beyond the limit stores nothing.
    ///
    /// Errors: 401 when the organisation was deleted while the body arrived.
    pub fn count_events(
        &self,
        records: &mut OrgTxn<'_>,
        org: &str,
        environment: &Environment,
        new: u64,
    ) -> Result<()> {
        let organisation: Org = records
            .find(org)?
            .ok_or_else(|| ApiError::new(Code::Unauthenticated, "the organisation was deleted"))?;
        let date = instant::date(self.now_ms());
        let month = date.get(..7).unwrap_or_default();
        let used = records.find::<UsageMonth>(month)?.map_or(0, |month| month.events);
        plans::check(
            &organisation,
            Code::MonthlyEventsLimit,
            "events a month",
            |plan| plan.monthly_events,
            used,
            new,
        )?;
        records.put(&UsageMonth { id: month.to_owned(), events: used + new })?;
        change_day(records, environment, &date, |day| day.events += new)
    }

    /// Events that the organisation stored this month.
    ///
    /// Over all environments; 0 before the first event of the month.
    pub fn month_events(&self, org: &str) -> Result<u64> {
        let date = instant::date(self.now_ms());
        let month: Option<UsageMonth> =
            self.org_reader(org).find(date.get(..7).unwrap_or_default())?;
        Ok(month.map_or(0, |month| month.events))
    }

    /// Counts a minted embed session within the transaction that mints it.
    pub fn count_embed_session(&self, txn: &mut OrgTxn<'_>, caller: &Caller) -> Result<()> {
        let date = instant::date(self.now_ms());
        change_day(txn, &caller.environment, &date, |day| day.embed_sessions += 1)
    }

    /// Writes down what was counted in memory.
    ///
    /// Called by the job `flush_usage` and when the server stops. All of it goes to the day of now: what was counted in the last seconds
    /// before midnight in UTC may count for the next day.
    ///
    /// Errors: those of the store; the counts are in memory again then.
    pub fn write_counts(&self) -> Result<()> {
        let counts = self.counters.take();
        if counts.is_empty() {
            return Ok(());
        }
        let date = instant::date(self.now_ms());
        let written = self.engine.transact(|txn| {
            for ((org, environment), counts) in &counts {
                let mut records = OrgTxn::new(txn, org);
                // Counts of an organisation that was deleted meanwhile belong to nobody.
                let found: Option<Org> = records.find(org)?;
                let Some(organisation) = found else { continue };
                let Some(environment) = organisation.environment_by_id(environment) else {
                    continue;
                };
                change_day(&mut records, environment, &date, |day| {
                    day.queries += counts.queries;
                    day.embed_views += counts.embed_views;
                })?;
            }
            Ok(())
        });
        if written.is_err() {
            self.counters.give_back(counts);
        }
        written
    }
}

/// `<environment>:2026-11-20`.
fn day_id(environment: &Environment, date: &str) -> String {
    format!("{}:{date}", environment.id)
}

/// Changes the record of one day of an environment; the first change of a day begins with zeros.
fn change_day(
    records: &mut OrgTxn<'_>,
    environment: &Environment,
    date: &str,
    change: impl FnOnce(&mut UsageDay),
) -> Result<()> {
    let id = day_id(environment, date);
    let found: Option<UsageDay> = records.find(&id)?;
    let mut day = UsageDay { id, ..found.unwrap_or_default() };
    change(&mut day);
    records.put(&day)
}
