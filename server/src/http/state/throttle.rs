//! Rate limits: token buckets in memory, one a caller and kind of request; `middleware/caller.rs` asks them.
//!
//! A bucket holds as many tokens as its limit names and fills evenly over its time: a second, or a
//! quarter of an hour for what guards passwords. Every answer says how full the bucket is.
//!
//! A second bucket of the same size counts refusals. A caller that has emptied it too, by asking on and on, waits a
//! quarter of a second for each further one: then 32 connections get 128 refusals a second and not ten thousand, which
//! would take the processors of other callers.
//!
//! Eleven logins of one account within a moment, with the limit of ten in a quarter of an hour:
//!
//! ```text
//!  1 to 10   401 or 200   X-RateLimit-Limit: 10, X-RateLimit-Remaining: 9 … 0, X-RateLimit-Reset: 90 … 900
//! 11         429          Retry-After: 90, the time of one token
//! 12 to 20   429          at once
//! 21         429          after a quarter of a second: the bucket of refusals is empty, too
//! ```

use std::{collections::HashMap, num::NonZeroU32, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use governor::{
    RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DashMapStateStore,
};

use crate::{
    app::Quota,
    config::RateLimits,
    error::{ApiError, Code, Result},
};

/// All rate limits, each with its own buckets.
const QUOTAS: [Quota; 8] = [
    Quota::Ingest,
    Quota::Query,
    Quota::Sql,
    Quota::Embed,
    Quota::Management,
    Quota::Named,
    Quota::Login,
    Quota::Register,
];
/// Attempts at passwords are counted over this time.
const LONG: Duration = Duration::from_secs(15 * 60);

/// How long a refusal is held back, once a caller has had as many at once as its bucket holds tokens.
const REFUSAL_DELAY: Duration = Duration::from_millis(250);
/// Requests with an idempotency key that an API key or a user may make a day: their answers are stored.
const NAMED_MAX: u32 = 10_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

type Buckets =
    RateLimiter<String, DashMapStateStore<String>, DefaultClock, StateInformationMiddleware>;

/// Buckets of one rate limit, by caller: `key 01a21f84-…`, `org 01a21f84-…`, `session <digest>`, `embed <session>`, `address 203.0.113.7`.
struct Limit {
    buckets: Buckets,
    /// Refusals that come at once.
    refusals: Buckets,
    size: u32,
    per_token: Duration,
}

/// The token buckets of all callers, by rate limit.
pub struct Throttle {
    by_quota: HashMap<Quota, Limit>,
    clock: DefaultClock,
}

/// How full a caller's bucket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Tokens of a full bucket.
    pub limit: u32,
    /// Tokens that are left.
    pub remaining: u32,
    /// Seconds until it is full again.
    pub reset_seconds: u32,
}

impl Throttle {
    /// Makes buckets of the configured sizes, which are full at first.
    pub fn new(settings: &RateLimits) -> Self {
        let limit = |quota: &Quota| {
            let (size, over) = match quota {
                Quota::Named => (NAMED_MAX, DAY),
                Quota::Login | Quota::Register => (settings.of(quota.name()), LONG),
                _ => (settings.of(quota.name()), Duration::from_secs(1)),
            };
            let size = NonZeroU32::new(size).unwrap_or(NonZeroU32::MIN);
            // A bucket that fills faster than clocks tick is one that is always full.
            let per_token = (over / size.get()).max(Duration::from_nanos(1));
            let of = governor::Quota::with_period(per_token)
                .unwrap_or(governor::Quota::per_second(size))
                .allow_burst(size);
            let buckets = || RateLimiter::dashmap(of).with_middleware();
            let (buckets, refusals) = (buckets(), buckets());
            (*quota, Limit { buckets, refusals, size: size.get(), per_token })
        };
        Self { by_quota: QUOTAS.iter().map(limit).collect(), clock: DefaultClock::default() }
    }

    /// Takes a token of a caller's bucket: how full it is then, and 429 when there was none.
    ///
    /// `who` names the caller within the rate limit, such as `key 01a21f84-…`; a caller that was not seen before has a full bucket.
    pub fn take(&self, quota: Quota, who: &str) -> (Standing, Result<()>) {
        self.take_many(quota, who, 1)
    }

    /// As [`Throttle::take`], for a request of which each of so many processes takes one as well: so many tokens, at most all of the bucket.
    ///
    /// With a limit of 300 and three processes each of them lets pass 100 a second.
    pub fn take_many(&self, quota: Quota, who: &str, tokens: u32) -> (Standing, Result<()>) {
        let limit = self.of(quota);
        let tokens = NonZeroU32::new(tokens.min(limit.size)).unwrap_or(NonZeroU32::MIN);
        let taken = limit.buckets.check_key_n(&who.to_owned(), tokens);
        match taken.expect("no more tokens than the bucket has") {
            Ok(state) => (limit.standing(state.remaining_burst_capacity()), Ok(())),
            Err(refused) => {
                let wait = refused.wait_time_from(self.clock.now());
                let error = ApiError {
                    retry_after: Some(seconds(wait)),
                    ..ApiError::new(Code::RateLimited, "too many requests; retry later")
                };
                (limit.standing(0), Err(error))
            }
        }
    }

    /// How long a refusal of a caller is held back: nothing for as many as the bucket holds tokens, then a quarter of a second.
    pub fn delay_of_refusal(&self, quota: Quota, who: &str) -> Duration {
        match self.of(quota).refusals.check_key(&who.to_owned()) {
            Ok(_) => Duration::ZERO,
            Err(_) => REFUSAL_DELAY,
        }
    }

    fn of(&self, quota: Quota) -> &Limit {
        self.by_quota.get(&quota).expect("every quota has its limit, as a test asks")
    }

    /// Forgets buckets that are full: they are as if they had never been asked.
    pub fn forget_full(&self) {
        for limit in self.by_quota.values() {
            for buckets in [&limit.buckets, &limit.refusals] {
                buckets.retain_recent();
                buckets.shrink_to_fit();
            }
        }
    }
}

impl Limit {
    fn standing(&self, remaining: u32) -> Standing {
        let missing = self.size.saturating_sub(remaining);
        let reset_seconds = seconds(self.per_token * missing);
        Standing { limit: self.size, remaining, reset_seconds }
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u32 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

impl Standing {
    /// Says it on an answer.
    pub fn on(self, mut response: Response) -> Response {
        let names = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
        let values = [self.limit, self.remaining, self.reset_seconds];
        for (name, value) in names.into_iter().zip(values) {
            let name = HeaderName::from_static(name);
            // The bucket that is told is the one that decided.
            response.headers_mut().entry(name).or_insert(HeaderValue::from(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_of(throttle: &Throttle, quota: Quota) -> bool {
        throttle.take(quota, "somebody").1.is_ok()
    }

    #[test]
    fn a_bucket_is_one_callers_and_tells_how_full_it_is() {
        let settings = RateLimits([("login".to_owned(), 3)].into());
        let throttle = Throttle::new(&settings);
        let take = |who: &str| throttle.take(Quota::Login, who);
        assert_eq!(take("a").0, Standing { limit: 3, remaining: 2, reset_seconds: 300 });
        assert_eq!(take("a").0.remaining, 1);
        assert_eq!(take("b").0.remaining, 2);
        assert_eq!(take("a").0.remaining, 0);
        let (standing, refused) = take("a");
        assert_eq!(standing, Standing { limit: 3, remaining: 0, reset_seconds: 900 });
        let error = refused.unwrap_err();
        assert_eq!(error.code, Code::RateLimited);
        assert!((299..=300).contains(&error.retry_after_seconds().unwrap()));
        for _ in 0..3 {
            assert_eq!(throttle.delay_of_refusal(Quota::Login, "a"), Duration::ZERO);
        }
        assert_eq!(throttle.delay_of_refusal(Quota::Login, "a"), REFUSAL_DELAY);
        assert_eq!(throttle.delay_of_refusal(Quota::Login, "b"), Duration::ZERO);
        throttle.forget_full();
        assert!(take("a").1.is_err(), "a bucket that is not full is kept");
        for quota in QUOTAS {
            assert!(take_of(&throttle, quota), "{quota:?}");
        }
    }
}
