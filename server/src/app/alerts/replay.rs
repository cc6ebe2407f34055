//! The past of an alert rule, evaluated again: when it would have fired in 30 days.
//!
//! A rule is evaluated each minute, and so is the past, where 43,201 evaluations are quick enough. Where they are not (a percentile
//! over a week), the steps become longer, then fewer tenants are evaluated, then fewer days.
//!
//! ```text
//! one evaluation    tenants    step          tenants, days
//! 20 µs             1          1 minute      1, 30
//! 200 µs            1          5 minutes     1, 30      8,640 evaluations
//! 10 µs             100        30 minutes    100, 30
//! 6 µs              100        1 minute      7, 30      for_minutes is 1, and no step may be longer
//! 1 ms              1          5 minutes     1, 6       a window of 7 minutes
//! ```
//!
//! How long an evaluation takes is measured first. Where the pace does not hold, since the machine has become busy or the sample was of cheap
//! hours, and what is left would take twice the time of a replay, it begins again with the pace of the last second:
//!
//! ```text
//! sampled at 20 µs    steps of 1 minute     after 1 s 1,000 of 43,201 evaluations are done: 42 s are left
//! measured at 1 ms    steps of 30 minutes   1,441 evaluations, 1.4 s
//! ```

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use super::state::{Change, next_state};
use crate::{
    error::{ApiError, Code, Result},
    store::{AlertRule, AlertState, AlertStatus},
};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Milliseconds of the past that are covered at most: 30 days.
pub const BACK_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Minutes between two evaluations, the shortest first.
const STEPS: [i64; 6] = [1, 2, 5, 10, 15, 30];
/// Time for all evaluations, as far as longer steps, fewer tenants and fewer days can keep it.
const REPLAY_TIME: Duration = Duration::from_secs(2);
/// Time between two looks at the pace.
const PACE_CHECK: Duration = Duration::from_secs(1);
/// Evaluations that are timed first, spread over the 30 days.
const SAMPLED: i64 = 24;
/// Values that an answer has at even times: more than a chart has pixels are of no use.
const POINTS_MAX: i64 = 1_440;
/// Firings and resolutions that are listed, at most.
const EVENTS_MAX: usize = 1_000;

/// A tenant of a replay, or all of them together, with the status so far.
#[derive(Clone)]
pub struct ReplaySubject {
    /// `None` for all tenants together.
    pub tenant: Option<String>,
    /// The status that the rule has for it.
    pub status: AlertStatus,
    /// Days since 1970 on which, or not long before which, it sent something.
    pub days: BTreeSet<i64>,
    /// Whether it has sent something by now: before that, nothing is missing of it.
    pub has_begun: bool,
}

impl ReplaySubject {
    /// Whether the rule would have watched it at this time: one that sends nothing any more, or nothing yet, is not watched.
    fn is_watched(&self, at: i64) -> bool {
        self.days.contains(&at.div_euclid(DAY_MS)) || self.status.state == AlertState::Firing
    }
}

/// The value of a tenant, or of all, at a time in milliseconds since 1970; `None` where it is missing.
pub type Evaluate<'a> = dyn Fn(Option<&str>, i64) -> Result<Option<f64>> + 'a;

/// What a replay is made with.
pub struct Replay<'a> {
    /// The rule that is tried.
    pub rule: &'a AlertRule,
    /// Whom it watches, those with most events first.
    pub subjects: &'a [ReplaySubject],
    /// Time of the last evaluation that may be, in milliseconds since 1970.
    pub now: i64,
    /// The value of a tenant, or of all, at a time.
    pub evaluate: &'a Evaluate<'a>,
    /// Time since an instant in the past that does not change.
    pub elapsed: &'a dyn Fn() -> Duration,
    /// Whether the request is over.
    pub must_stop: &'a dyn Fn() -> bool,
}

/// When a rule would have fired, as far as it was evaluated. Times are milliseconds since 1970.
#[derive(Debug)]
pub struct Replayed {
    /// Time of the first evaluation.
    pub from: i64,
    /// Time of the last evaluation.
    pub to: i64,
    /// Minutes from one evaluation to the next.
    pub step_minutes: i64,
    /// Subjects that were evaluated.
    pub subjects: usize,
    /// How often it would have fired, over all tenants; `events` may have fewer.
    pub fired: usize,
    /// The newest firings and resolutions, oldest first.
    pub events: VecDeque<ReplayedChange>,
    /// The value at each evaluation, or at every so many of them and at changes; of a rule that watches each tenant, how many fire.
    pub points: Vec<(i64, Option<f64>)>,
}

/// A firing or a resolution that would have been.
#[derive(Debug)]
pub struct ReplayedChange {
    /// Whether it fired, or was resolved.
    pub is_firing: bool,
    /// The tenant, of a rule that watches each.
    pub tenant: Option<String>,
    /// The value that caused it.
    pub value: Option<f64>,
    /// Time of the evaluation, in milliseconds since 1970.
    pub at: i64,
}

impl Replay<'_> {
    /// When the rule would have fired.
    ///
    /// Errors: `query_timeout` where even the shortest replay takes too long; those of an evaluation.
    pub fn run(&self) -> Result<Replayed> {
        let mut reach = reach(self.sampled_pace()?, self.subjects.len(), self.rule);
        loop {
            match self.attempt(&reach)? {
                ReplayEnd::Whole(replayed) => return Ok(replayed),
                ReplayEnd::TooSlow(shorter) => reach = shorter,
            }
        }
    }

    /// Time of one evaluation, of some that are spread over the past and over the tenants: recent hours are quicker than months that are
    /// sealed, and large tenants slower. The slowest eighth does not count, since a machine that others use stands still now and then; an
    /// attempt that is slower than this begins again.
    fn sampled_pace(&self) -> Result<Duration> {
        let (began, mut samples) = ((self.elapsed)(), Vec::new());
        let mut last = began;
        for (turn, subject) in (0..SAMPLED).zip(self.subjects.iter().cycle()) {
            if last - began > REPLAY_TIME {
                break;
            }
            (self.evaluate)(subject.tenant.as_deref(), self.now - turn * (BACK_MS / SAMPLED))?;
            let now = (self.elapsed)();
            samples.push(now - last);
            last = now;
        }
        samples.sort_unstable();
        samples.truncate(samples.len() - samples.len() / 8);
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX).max(1);
        Ok(samples.iter().sum::<Duration>() / count)
    }

    fn attempt(&self, reach: &Reach) -> Result<ReplayEnd> {
        let mut subjects = self.subjects.to_vec();
        subjects.truncate(reach.tenants);
        let step = reach.step_minutes * MINUTE_MS;
        // On whole steps many windows are whole hours, which rollups answer.
        let to = self.now.div_euclid(step) * step;
        let from = (to - reach.back_ms).div_euclid(step) * step;
        let planned = ((to - from) / step + 1) as f64 * subjects.len() as f64;
        let shown_every = (reach.back_ms / step / POINTS_MAX).max(1);
        let mut replayed = Replayed {
            from,
            to,
            step_minutes: reach.step_minutes,
            subjects: reach.tenants,
            fired: 0,
            events: VecDeque::new(),
            points: Vec::new(),
        };
        // Evaluations so far, and when their pace was looked at with how many of them.
        let mut done = 0;
        let mut checked = ((self.elapsed)(), 0);
        for (turn, at) in (0..).zip((from..=to).step_by(step as usize)) {
            let (mut shown, mut has_changed) = (None, false);
            for subject in &mut subjects {
                if (self.must_stop)() {
                    let message = "trying this rule takes too long; a metric other than a percentile, or one tenant, is quicker";
                    return Err(ApiError::new(Code::QueryTimeout, message));
                }
                let (since, done_then) = checked;
                let elapsed = (self.elapsed)() - since;
                if elapsed >= PACE_CHECK && done > done_then {
                    let pace = elapsed / (done - done_then);
                    if let Some(shorter) = self.shorter(reach, pace, planned - f64::from(done)) {
                        return Ok(ReplayEnd::TooSlow(shorter));
                    }
                    checked = (since + elapsed, done);
                }
                done += 1;
                if self.rule.per_tenant && !subject.is_watched(at) {
                    continue;
                }
                let value = (self.evaluate)(subject.tenant.as_deref(), at)?;
                subject.has_begun |= value.is_some_and(|value| value != 0.0);
                if !subject.has_begun {
                    continue;
                }
                let (next, change) = next_state(self.rule, &subject.status, value, at, 0);
                subject.status = next;
                shown = value;
                let Some(change) = change else { continue };
                has_changed = true;
                let is_firing = change == Change::Fired;
                replayed.fired += usize::from(is_firing);
                let tenant = subject.tenant.clone().filter(|_| self.rule.per_tenant);
                replayed.events.push_back(ReplayedChange { is_firing, tenant, value, at });
                if replayed.events.len() > EVENTS_MAX {
                    replayed.events.pop_front();
                }
            }
            let points = &mut replayed.points;
            if turn % shown_every == 0 || has_changed && points.len() < 2 * POINTS_MAX as usize {
                if self.rule.per_tenant {
                    let is_firing =
                        |subject: &&ReplaySubject| subject.status.state == AlertState::Firing;
                    shown = Some(subjects.iter().filter(is_firing).count() as f64);
                }
                points.push((at, shown));
            }
        }
        Ok(ReplayEnd::Whole(replayed))
    }

    /// What is evaluated instead, where so many evaluations would take twice the time of a replay, and less can be evaluated.
    fn shorter(&self, now: &Reach, pace: Duration, left: f64) -> Option<Reach> {
        if pace.as_secs_f64() * left < 2.0 * REPLAY_TIME.as_secs_f64() {
            return None;
        }
        let next = reach(pace, self.subjects.len(), self.rule);
        let is_sooner = (next.evaluations() as f64) < left;
        (is_sooner && next.evaluations() < now.evaluations()).then_some(next)
    }
}

/// What became of an attempt.
enum ReplayEnd {
    Whole(Replayed),
    /// It would take far longer than planned: what can be evaluated at the pace it had.
    TooSlow(Reach),
}

/// What a replay evaluates: steps, tenants and days.
#[derive(Debug, PartialEq, Eq)]
struct Reach {
    step_minutes: i64,
    tenants: usize,
    back_ms: i64,
}

impl Reach {
    fn evaluations(&self) -> i64 {
        (self.back_ms / MINUTE_MS / self.step_minutes).saturating_mul(self.tenants as i64)
    }
}

/// What fits into the time when one evaluation takes so long. Steps are never so long that a window, or the time that a condition must
/// hold, lies between two evaluations; where even those do not fit, it is fewer tenants, and at last fewer days, but always one.
fn reach(pace: Duration, tenants: usize, rule: &AlertRule) -> Reach {
    let holds = Some(i64::from(rule.for_minutes)).filter(|minutes| *minutes > 0);
    let longest = i64::from(rule.lookback_minutes).min(holds.unwrap_or(i64::MAX)).max(1);
    let evaluations = (REPLAY_TIME.as_secs_f64() / pace.as_secs_f64().max(1e-9)) as i64;
    let allowed = || STEPS.into_iter().filter(|step| *step <= longest);
    let of_one = |step: i64| BACK_MS / MINUTE_MS / step;
    let fits = |step: &i64| of_one(*step).saturating_mul(tenants as i64) <= evaluations;
    let step_minutes = allowed().find(fits).or(allowed().next_back()).unwrap_or(1);
    let fitting = usize::try_from(evaluations / of_one(step_minutes)).unwrap_or(usize::MAX);
    let step_ms = step_minutes * MINUTE_MS;
    let back_ms = if fitting > 0 { BACK_MS } else { (evaluations * step_ms).max(DAY_MS) };
    Reach { step_minutes, tenants: tenants.min(fitting.max(1)), back_ms: back_ms.min(BACK_MS) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{app::alerts::state, store::Operator};

    fn rule(lookback_minutes: u32, for_minutes: u32) -> AlertRule {
        let rule = state::tests::rule(Operator::Gt, 1.0);
        AlertRule { lookback_minutes, for_minutes, ..rule }
    }

    #[test]
    fn steps_are_minutes_where_evaluations_are_quick_and_never_longer_than_a_window() {
        let of = |us, tenants, rule: AlertRule| {
            let Reach { step_minutes, tenants, back_ms } =
                reach(Duration::from_micros(us), tenants, &rule);
            (step_minutes, tenants, back_ms / DAY_MS)
        };
        assert_eq!(of(20, 1, rule(60, 0)), (1, 1, 30));
        assert_eq!(of(200, 1, rule(60, 0)), (5, 1, 30), "8,640 evaluations of 0.2 ms");
        assert_eq!(of(10, 100, rule(60, 0)), (30, 100, 30));
        // Where the longest step is too short: fewer tenants, then fewer days, but always one.
        assert_eq!(of(6, 100, rule(60, 1)), (1, 7, 30));
        assert_eq!(of(1_000, 1, rule(7, 0)), (5, 1, 6));
        assert_eq!(of(200_000, 3, rule(60, 3)), (2, 1, 1));
        assert_eq!(of(10, 0, rule(60, 0)), (1, 0, 30), "nobody to evaluate");
    }

    /// The replay of a rule about all tenants, its value above the threshold in the last hour, where the first `quick` evaluations take 20 µs and
    /// all others `slow_us`; with the time it took. Ten seconds are too long.
    fn replayed(quick: u32, slow_us: u64) -> (Result<Replayed>, Duration) {
        replayed_in(&|turn| if turn <= quick { 20 } else { slow_us })
    }

    /// Evaluations take so many microseconds by their turn.
    fn replayed_in(us_of: &dyn Fn(u32) -> u64) -> (Result<Replayed>, Duration) {
        let rule = rule(60, 0);
        let now = 100 * DAY_MS;
        let status = state::fresh(String::new(), None, now - BACK_MS);
        let subject =
            ReplaySubject { tenant: None, status, days: BTreeSet::new(), has_begun: true };
        let (clock, done) = (Cell::new(Duration::ZERO), Cell::new(0));
        let evaluate = |_: Option<&str>, at: i64| {
            done.set(done.get() + 1);
            clock.set(clock.get() + Duration::from_micros(us_of(done.get())));
            Ok(Some(if at > now - 60 * MINUTE_MS { 2.0 } else { 0.0 }))
        };
        let replay = Replay {
            rule: &rule,
            subjects: &[subject],
            now,
            evaluate: &evaluate,
            elapsed: &|| clock.get(),
            must_stop: &|| clock.get() > Duration::from_secs(10),
        };
        (replay.run(), clock.get())
    }

    #[test]
    fn a_replay_whose_pace_does_not_hold_begins_again_with_longer_steps() {
        let (even, took) = replayed(u32::MAX, 20);
        let even = even.unwrap();
        assert_eq!((even.step_minutes, even.fired), (1, 1));
        assert!(took < Duration::from_secs(1), "{took:?}");

        // Twenty-four sampled at 20 µs, the others of 1 ms.
        let (slower, took) = replayed(24, 1_000);
        let slower = slower.unwrap();
        assert_eq!((slower.step_minutes, slower.fired), (30, 1));
        assert_eq!(slower.to - slower.from, BACK_MS);
        assert!(took < Duration::from_secs(3), "{took:?}");

        // Late in the replay, and not so slow that a new one would be sooner: 3,200 evaluations of 1 ms are left.
        let (late, took) = replayed(40_000, 1_000);
        assert_eq!(late.unwrap().step_minutes, 1);
        assert!(took < Duration::from_secs(5), "{took:?}");
        // Of 5 ms they would take 16 s.
        let (too_late, took) = replayed(40_000, 5_000);
        assert_eq!(too_late.unwrap().step_minutes, 30);
        assert!(took < Duration::from_secs(10), "{took:?}");
    }

    #[test]
    fn a_machine_that_stands_still_for_a_moment_shortens_no_replay() {
        let (replayed, _) = replayed_in(&|turn| if turn == 7 { 200_000 } else { 20 });
        let replayed = replayed.unwrap();
        assert_eq!((replayed.step_minutes, replayed.to - replayed.from), (1, BACK_MS));
    }

    #[test]
    fn a_replay_that_can_be_no_shorter_goes_on_to_the_end_of_its_time() {
        // A day in steps of half an hour: 48 evaluations.
        let (shortest, took) = replayed(24, 150_000);
        let shortest = shortest.unwrap();
        assert_eq!((shortest.to - shortest.from, shortest.step_minutes), (DAY_MS, 30));
        assert!(took < Duration::from_secs(10), "{took:?}");

        let (never, _) = replayed(24, 400_000);
        assert_eq!(never.unwrap_err().code, Code::QueryTimeout);
    }
}
