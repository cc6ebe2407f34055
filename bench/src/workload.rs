//! Product events as they come in life: many tenants of very different size over ninety days.
//!
//! A thousand tenants by Zipf's law, each with users of its own, of whom some are much busier than others;
//! quiet nights and weekends; events in the order of their time, but for one in a hundred that comes up to
//! three days late, and one in two hundred that was sent before. Every draw is a hash of the event's
//! number, so any part of the workload can be made again by itself.

use std::f64::consts::TAU;

/// The end of the last hour with events: the middle of a day, as it is in life.
pub const END_MS: i64 = 20_770 * DAY_MS + 14 * HOUR_MS;
/// Days that the workload spans.
pub const DAYS: i64 = 90;
/// The tenant with the most events, about an eighth of all.
pub const LARGEST: &str = "tenant-1";

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const TENANTS: usize = 1_000;
/// Events for each user of the largest tenant.
const EVENTS_A_USER: u64 = 200;
const PLANS: [&str; 5] = ["free", "free", "pro", "team", "enterprise"];
const SOURCES: [&str; 8] = ["web", "web", "sdk", "sdk", "sdk", "cron", "cli", "mobile"];

/// One event of the workload, as a client would send it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id of the tenant, `tenant-1` to `tenant-1000` by falling size.
    pub tenant: String,
    /// Name of the event.
    pub name: &'static str,
    /// When it happened, in milliseconds since 1970.
    pub time_ms: i64,
    /// A random UUID.
    pub event_id: String,
    /// Id of the user, unique over all tenants.
    pub user_id: String,
    /// String properties: the five with rollups, and country.
    pub strings: [(&'static str, String); 6],
    /// Numeric properties: `latency_ms` and `tokens`.
    pub numbers: [(&'static str, f64); 2],
}

/// A number of events.
pub struct Workload {
    seed: u64,
    count: u64,
    /// Sums of the shares of the tenants up to each.
    tenants: Vec<f64>,
    /// Sums of the shares of the hours up to each.
    hours: Vec<f64>,
}

impl Workload {
    /// `count` events. The same seed and count give the same ones.
    pub fn new(seed: u64, count: u64) -> Self {
        let hours = (0..DAYS * 24).map(|hour| {
            let weekday = if hour / 24 % 7 < 2 { 0.5 } else { 1.0 };
            (1.2 + (hour as f64 * TAU / 24.0).sin()) * weekday
        });
        let tenants = (1..=TENANTS).map(|rank| 1.0 / rank as f64);
        Self { seed, count, tenants: shares(tenants), hours: shares(hours) }
    }

    /// How many events there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether event `n` was sent before.
    pub fn is_repeated(&self, n: u64) -> bool {
        n > 0 && self.draw(n, 0) < 0.005
    }

    /// Event `n`, in the order in which they come.
    pub fn row(&self, n: u64) -> Row {
        if !self.is_repeated(n) {
            return self.new_row(n);
        }
        // Within the day before it.
        let back = 1 + (self.draw(n, 1) * (self.count / DAYS as u64) as f64) as u64;
        let first = n.saturating_sub(back);
        let mut earlier = (0..=first).rev().filter(|&n| !self.is_repeated(n));
        self.new_row(earlier.next().unwrap_or(0))
    }

    fn new_row(&self, n: u64) -> Row {
        let draw = |salt| self.draw(n, salt);
        let below = |salt, count: usize| (draw(salt) * count as f64) as usize;
        let skewed = |salt, count: usize| (draw(salt) * draw(salt + 1) * count as f64) as usize;
        let (tenant, _) = place(&self.tenants, draw(2));
        let users = (self.count / EVENTS_A_USER / (tenant as u64 + 1)).max(3);
        let user = (draw(3).powi(2) * users as f64) as usize;
        let (hour, within) = place(&self.hours, (n as f64 + 0.5) / self.count as f64);
        let late = if draw(4) < 0.01 { (draw(5) * (3 * DAY_MS) as f64) as i64 } else { 0 };
        let hour_ms = END_MS - (DAYS * 24 - hour as i64) * HOUR_MS;
        let normal = (-2.0 * (1.0 - draw(6)).ln()).sqrt() * (TAU * draw(7)).cos();
        let name = [("api_call", 0.45), ("page_view", 0.8), ("export", 1.0)];
        let status = [("ok", 0.92), ("error", 0.98), ("timeout", 1.0)];
        let one_of = |salt, list: &[(&'static str, f64); 3]| {
            list.iter().find(|(_, end)| draw(salt) < *end).map_or(list[2].0, |(value, _)| *value)
        };
        Row {
            tenant: format!("tenant-{}", tenant + 1),
            name: one_of(8, &name),
            time_ms: hour_ms + (within * HOUR_MS as f64) as i64 - late,
            event_id: uuid::Builder::from_random_bytes(self.bytes(n)).into_uuid().to_string(),
            user_id: format!("user-{}-{user}", tenant + 1),
            strings: [
                ("model", format!("model-{}", skewed(10, 9))),
                ("endpoint", format!("/v1/resource/{}", skewed(12, 46))),
                ("status", one_of(14, &status).to_owned()),
                // A user has one plan.
                ("plan", PLANS[(user * 7 + tenant) % PLANS.len()].to_owned()),
                ("source", SOURCES[below(15, SOURCES.len())].to_owned()),
                ("country", format!("C{:02}", skewed(16, 82))),
            ],
            numbers: [
                ("latency_ms", ((4.5 + normal).exp() * 1_000.0).round() / 1_000.0),
                ("tokens", skewed(18, 8_000) as f64),
            ],
        }
    }

    /// A draw from 0 up to 1.
    fn draw(&self, n: u64, salt: u64) -> f64 {
        (self.hash(n, salt) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn hash(&self, n: u64, salt: u64) -> u64 {
        mix(mix(mix(self.seed) ^ n) ^ salt)
    }

    fn bytes(&self, n: u64) -> [u8; 16] {
        let halves = u128::from(self.hash(n, 100)) << 64 | u128::from(self.hash(n, 101));
        halves.to_be_bytes()
    }
}

/// SplitMix64: every bit of the number decides about every bit of the result.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sums of weights up to each, of all together.
fn shares(weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let whole: f64 = weights.clone().sum();
    let sum = |sum: &mut f64, weight: f64| {
        *sum += weight / whole;
        Some(*sum)
    };
    weights.scan(0.0, sum).collect()
}

/// The share that a draw falls into, and where in it, from 0 to 1.
fn place(shares: &[f64], draw: f64) -> (usize, f64) {
    let at = shares.partition_point(|&end| end <= draw).min(shares.len() - 1);
    let start = at.checked_sub(1).map_or(0.0, |before| shares[before]);
    (at, ((draw - start) / (shares[at] - start)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_workload_is_what_its_story_says() {
        let workload = Workload::new(1, 200_000);
        let rows: Vec<Row> = (0..200_000).map(|n| workload.row(n)).collect();
        assert_eq!(rows[4_711], Workload::new(1, 200_000).row(4_711));
        let mut tenants = BTreeMap::<&str, usize>::new();
        rows.iter().for_each(|row| *tenants.entry(&row.tenant).or_default() += 1);
        assert!((940..=1_000).contains(&tenants.len()), "{}", tenants.len());
        assert!((25_500..28_000).contains(&tenants[LARGEST]), "{}", tenants[LARGEST]);
        assert_eq!(tenants.values().max(), Some(&tenants[LARGEST]));
        let ids: BTreeSet<&str> = rows.iter().map(|row| &*row.event_id).collect();
        assert!(
            (850..1_150).contains(&(rows.len() - ids.len())),
            "{} repeat",
            rows.len() - ids.len()
        );
        let mut newest = 0;
        let mut late = 0;
        for row in &rows {
            late += usize::from(row.time_ms + HOUR_MS < newest);
            newest = newest.max(row.time_ms);
            assert!((END_MS - (DAYS + 3) * DAY_MS..END_MS).contains(&row.time_ms));
        }
        assert!((2_500..3_300).contains(&late), "{late} late or repeated");
        assert!(newest > END_MS - HOUR_MS);
    }
}
