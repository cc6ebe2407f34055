//! When an alert fires and when it recovers: pure decisions over a rule, a state and a value.
//!
//! ```text
//! minute          0     1     2     3     4     5     6      value > 10, for_minutes 3
//! value           11    11    9     11    11    11    11
//! pending_since   0     0     –     3     3     3     –
//! change                                              Fired
//!
//! value           11    9     11    9     8     9            value > 10, recovery_threshold 8
//! change          Fired                   Resolved
//!
//! value           11    –     –     11    –     9            value > 10; – is a missing value: an average of nothing
//! change          Fired                         Resolved
//! ```

use crate::store::{AlertRule, AlertState, AlertStatus, ConditionType, Operator};

const MINUTE_MS: i64 = 60_000;

/// A transition of the state, of which recipients are notified.
///
/// An event is stored for each, and its recipients are notified. A state that lasts causes neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The rule began to fire.
    Fired,
    /// The rule recovered.
    Resolved {
        /// Start of the firing, in milliseconds since 1970.
        fired_at: i64,
    },
}

/// The status of a rule or tenant before its first evaluation.
///
/// `ok` since `now`, without a value. `id` is that of the status, `<rule>` or `<rule>:<tenant in Base64>`.
pub fn fresh(id: String, tenant_id: Option<String>, now: i64) -> AlertStatus {
    AlertStatus {
        id,
        tenant_id,
        state: AlertState::Ok,
        state_since: now,
        pending_since: None,
        last_value: None,
        last_evaluated_at: None,
        last_error: None,
    }
}

/// The status after a value was computed at `now`, and the transition that it caused. A missing
/// value keeps the state, and how long the condition has held.
///
/// Evaluations are never exactly an interval apart: a condition counts as held when at most
/// `slack_ms` are missing to `for_minutes`.
///
/// `value` is the metric, its change in percent, or the number of events, by the kind of condition.
///
/// With an interval of 60 seconds and a slack of half of it, a rule with `for_minutes` 5 fires at the sixth evaluation also when this
/// comes 4 minutes and 59.5 seconds after the first.
pub fn next_state(
    rule: &AlertRule,
    status: &AlertStatus,
    value: Option<f64>,
    now: i64,
    slack_ms: i64,
) -> (AlertStatus, Option<Change>) {
    let mut next = AlertStatus {
        last_value: value,
        last_evaluated_at: Some(now),
        last_error: None,
        ..status.clone()
    };
    let Some(value) = value else { return (next, None) };
    match status.state {
        AlertState::Firing if recovers(rule, value) => {
            let change = Change::Resolved { fired_at: status.state_since };
            (next.state, next.state_since, next.pending_since) = (AlertState::Ok, now, None);
            (next, Some(change))
        }
        AlertState::Firing => (next, None),
        AlertState::Ok if holds(rule, value) => {
            // A clock that was set back must not make it wait longer than the rule says.
            let since = status.pending_since.map_or(now, |since| since.min(now));
            let wait = i64::from(rule.for_minutes) * MINUTE_MS;
            // The first evaluation at which the condition holds never fires a rule that waits, however great the slack is.
            if wait > 0 && (since == now || now - since < wait - slack_ms) {
                next.pending_since = Some(since);
                return (next, None);
            }
            (next.state, next.state_since, next.pending_since) = (AlertState::Firing, now, None);
            (next, Some(Change::Fired))
        }
        AlertState::Ok => {
            next.pending_since = None;
            (next, None)
        }
    }
}

/// Whether the condition holds for a value.
///
/// `no_data` holds at exactly 0 events; the others compare by the operator of the rule.
fn holds(rule: &AlertRule, value: f64) -> bool {
    match rule.condition_type {
        ConditionType::NoData => value == 0.0,
        _ => compare(rule, value, rule.threshold_value),
    }
}

/// Whether a firing rule recovers at a value: when the condition does not hold any more, and not
/// before the recovery threshold if there is one. So a value near the threshold does not notify
/// again and again.
fn recovers(rule: &AlertRule, value: f64) -> bool {
    match rule.condition_type {
        ConditionType::NoData => value != 0.0,
        _ => !compare(rule, value, rule.recovery_threshold.or(rule.threshold_value)),
    }
}

/// Whether `value` lies on the side of `with` at which the operator holds; `false` without either.
fn compare(rule: &AlertRule, value: f64, with: Option<f64>) -> bool {
    // A rule without them cannot be stored.
    let (Some(operator), Some(with)) = (rule.operator, with) else { return false };
    match operator {
        Operator::Gt => value > with,
        Operator::Gte => value >= with,
        Operator::Lt => value < with,
        Operator::Lte => value <= with,
        Operator::Eq => value == with,
        Operator::Neq => value != with,
    }
}

/// The change from one value to another in percent of the first. There is none from nothing to
/// something, which no percentage tells.
///
/// 100 to 80 is -20; -10 to -5 is 50, since the size of the first counts; 0 to 0 is 0; 0 to 5 is none.
pub fn percent_change(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    let (before, now) = (before?, now?);
    if before == now {
        return Some(0.0);
    }
    let percent = (now - before) / before.abs() * 100.0;
    percent.is_finite().then_some(percent)
}

/// Whether a rule's recovery threshold lies where it can mean something: on the far side of the
/// threshold, seen from where the rule fires.
///
/// For `gt 10`, 8 and 10 fit, 12 does not. `eq` and `neq` have no far side, and take no recovery threshold.
pub fn recovery_fits(rule: &AlertRule) -> bool {
    let (Some(recovery), Some(threshold)) = (rule.recovery_threshold, rule.threshold_value) else {
        return rule.recovery_threshold.is_none();
    };
    match rule.operator {
        Some(Operator::Gt | Operator::Gte) => recovery <= threshold,
        Some(Operator::Lt | Operator::Lte) => recovery >= threshold,
        _ => false,
    }
}

/// The second within the interval at which a rule is evaluated: rules are spread over the interval,
/// each at the same second every time.
///
/// Seconds from 0 to `interval_s` - 1: rule 1 of the organisation `01a2-org` is evaluated at second 57 of each minute, rule 2 at 9.
pub fn phase(org: &str, rule: &str, interval_s: i64) -> i64 {
    // FNV-1a: any spread will do, as long as it stays the same.
    let hash = org.bytes().chain(rule.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 16) as i64 % interval_s.max(1)
}

/// Whether a rule with this phase is due in the seconds after `last` up to `now`. After a gap
/// longer than the interval every rule is due, once; after a clock was set back only the rules of
/// the current second are.
///
/// With an interval of 60 and `last_s` 100, `now_s` 102: rules with the phases 41 and 42 are due.
pub fn is_due(phase: i64, last_s: i64, now_s: i64, interval_s: i64) -> bool {
    let interval = interval_s.max(1);
    let passed = (now_s - last_s).clamp(if now_s < last_s { 1 } else { 0 }, interval);
    (now_s - phase).rem_euclid(interval) < passed
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::base::locale::Locale;

    /// A rule with a threshold over an hour.
    pub fn rule(operator: Operator, threshold: f64) -> AlertRule {
        AlertRule {
            id: "1".to_owned(),
            number: 1,
            environment: "e".to_owned(),
            name: "n".to_owned(),
            dashboard_id: "d".to_owned(),
            widget_id: "w".to_owned(),
            condition_type: ConditionType::Threshold,
            operator: Some(operator),
            threshold_value: Some(threshold),
            lookback_minutes: 60,
            email_to: Vec::new(),
            webhook_url: None,
            enabled: true,
            tenant_id: None,
            for_minutes: 0,
            recovery_threshold: None,
            per_tenant: false,
            webhook_secret: None,
            previous_secret: None,
            locale: Locale::En,
            created_at: 0,
            updated_at: 0,
        }
    }

    /// Values a minute apart, and what is told: `F` fired, `R` resolved, `.` nothing.
    fn told(rule: &AlertRule, values: &[Option<f64>]) -> String {
        let mut status = fresh(rule.id.clone(), None, 0);
        let mut told = String::new();
        for (minute, value) in values.iter().enumerate() {
            let now = minute as i64 * MINUTE_MS;
            let before = status.clone();
            let (next, change) = next_state(rule, &status, *value, now, 0);
            assert_eq!((next.last_value, next.last_evaluated_at), (*value, Some(now)));
            match change {
                None => {
                    assert_eq!((next.state, next.state_since), (before.state, before.state_since))
                }
                Some(_) => assert_eq!((next.state_since, next.pending_since), (now, None)),
            }
            if let Some(Change::Resolved { fired_at }) = change {
                assert_eq!(fired_at, before.state_since);
            }
            told.push(match change {
                None => '.',
                Some(Change::Fired) => 'F',
                Some(Change::Resolved { .. }) => 'R',
            });
            status = next;
        }
        told
    }

    fn values(list: &[f64]) -> Vec<Option<f64>> {
        list.iter().map(|&value| Some(value)).collect()
    }

    #[test]
    fn every_operator_fires_where_it_holds() {
        for (operator, expected) in [
            (Operator::Gt, "..F.R"),
            (Operator::Gte, ".F..R"),
            (Operator::Lt, "FR..F"),
            (Operator::Lte, "F.R.F"),
            (Operator::Eq, ".FR.."),
            (Operator::Neq, "FRF.."),
        ] {
            let seen = told(&rule(operator, 10.0), &values(&[9.0, 10.0, 11.0, 12.0, 9.0]));
            assert_eq!(seen, expected, "{operator:?}");
        }
    }

    #[test]
    fn a_change_is_told_once_however_long_it_lasts() {
        let rule = rule(Operator::Gt, 10.0);
        assert_eq!(told(&rule, &values(&[11.0; 6])), "F.....");
        assert_eq!(told(&rule, &values(&[11.0, 1.0, 11.0, 1.0, 1.0])), "FRFR.");
    }

    #[test]
    fn a_missing_value_keeps_the_state() {
        let plain = rule(Operator::Gt, 10.0);
        assert_eq!(told(&plain, &[Some(11.0), None, None, Some(11.0), None, Some(9.0)]), "F....R");
        assert_eq!(told(&plain, &[None, Some(9.0), None, Some(11.0)]), "...F");
        // Also while it waits: the minute without a value counts, as nothing speaks against it.
        let slow = AlertRule { for_minutes: 2, ..plain };
        assert_eq!(told(&slow, &[Some(11.0), None, Some(11.0)]), "..F");
        assert_eq!(told(&slow, &[Some(11.0), None, None]), "...");
    }

    #[test]
    fn a_condition_must_hold_without_a_break() {
        let rule = AlertRule { for_minutes: 3, ..rule(Operator::Gt, 10.0) };
        assert_eq!(told(&rule, &values(&[11.0, 11.0, 11.0, 11.0, 9.0])), "...FR");
        assert_eq!(told(&rule, &values(&[11.0, 11.0, 9.0, 11.0, 11.0, 11.0, 11.0])), "......F");
        // Recovering takes no time.
        assert_eq!(told(&rule, &values(&[11.0, 11.0, 11.0, 11.0, 9.0, 11.0])), "...FR.");
    }

    #[test]
    fn looks_that_come_a_little_early_count() {
        let rule = AlertRule { for_minutes: 5, ..rule(Operator::Gt, 10.0) };
        let mut status = fresh("1".to_owned(), None, 0);
        // Each look comes a moment sooner than a minute after the one before.
        for (turn, fires) in [(0, false), (1, false), (4, false), (5, true)] {
            let now = turn * (MINUTE_MS - 100);
            let (next, change) = next_state(&rule, &status, Some(11.0), now, MINUTE_MS / 2);
            assert_eq!(change.is_some(), fires, "look {turn}");
            status = next;
        }
    }

    #[test]
    fn a_value_between_the_thresholds_calls_once() {
        let above = AlertRule { recovery_threshold: Some(8.0), ..rule(Operator::Gt, 10.0) };
        assert_eq!(told(&above, &values(&[11.0, 9.0, 11.0, 9.0, 8.0, 9.0])), "F...R.");
        let below = AlertRule { recovery_threshold: Some(12.0), ..rule(Operator::Lte, 10.0) };
        assert_eq!(told(&below, &values(&[10.0, 11.0, 12.0, 12.5, 11.0])), "F..R.");
    }

    #[test]
    fn no_data_fires_at_no_event_and_recovers_at_one() {
        let rule = AlertRule {
            condition_type: ConditionType::NoData,
            operator: None,
            threshold_value: None,
            ..rule(Operator::Gt, 0.0)
        };
        assert_eq!(told(&rule, &values(&[3.0, 0.0, 0.0, 1.0, 0.0])), ".F.RF");
    }

    #[test]
    fn a_clock_that_goes_back_delays_nothing_longer_than_the_rule() {
        let rule = AlertRule { for_minutes: 5, ..rule(Operator::Gt, 10.0) };
        let mut status = fresh("1".to_owned(), None, 0);
        for (minute, state) in [(1_000, "Ok"), (3, "Ok"), (7, "Ok"), (8, "Firing")] {
            status = next_state(&rule, &status, Some(11.0), minute * MINUTE_MS, 0).0;
            assert_eq!(format!("{:?}", status.state), state, "minute {minute}");
        }
    }

    #[test]
    fn changes_are_percent_of_the_size_before() {
        for (before, now, percent) in [
            (Some(100.0), Some(80.0), Some(-20.0)),
            (Some(50.0), Some(75.0), Some(50.0)),
            (Some(-10.0), Some(-5.0), Some(50.0)),
            (Some(0.0), Some(0.0), Some(0.0)),
            (Some(0.0), Some(5.0), None),
            (Some(1e-308), Some(1e308), None),
            (None, Some(1.0), None),
            (Some(1.0), None, None),
        ] {
            assert_eq!(percent_change(before, now), percent, "{before:?} {now:?}");
        }
    }

    #[test]
    fn a_recovery_threshold_lies_on_the_far_side() {
        for (operator, recovery, fits) in [
            (Operator::Gt, 8.0, true),
            (Operator::Gte, 10.0, true),
            (Operator::Gt, 12.0, false),
            (Operator::Lt, 12.0, true),
            (Operator::Lte, 8.0, false),
            (Operator::Eq, 10.0, false),
            (Operator::Neq, 10.0, false),
        ] {
            let rule = AlertRule { recovery_threshold: Some(recovery), ..rule(operator, 10.0) };
            assert_eq!(recovery_fits(&rule), fits, "{operator:?} {recovery}");
        }
        assert!(recovery_fits(&rule(Operator::Eq, 1.0)));
    }

    #[test]
    fn every_rule_is_due_once_an_interval_whatever_the_pace() {
        let interval = 60;
        for pace in [1, 2, 7, 59, 60] {
            let mut due = vec![0; 60];
            let mut last = 1_000_000;
            // A common multiple of all paces: whole intervals of steps.
            for _ in 0..(7 * 59 * 60 / pace) {
                let now = last + pace;
                for phase in 0..60 {
                    due[phase as usize] += i32::from(is_due(phase, last, now, interval));
                }
                last = now;
            }
            let (least, most) = (due.iter().min().unwrap(), due.iter().max().unwrap());
            assert!(*least >= 7 * 59 - 1 && *most <= 7 * 59 + 1, "{pace}: {least} to {most}");
        }
        // Whoever slept finds each due once; at once again, none.
        assert!((0..60).all(|phase| is_due(phase, 0, 100_000, interval)));
        assert!((0..60).all(|phase| !is_due(phase, 100_000, 100_000, interval)));
        let after_a_jump_back = (0..60).filter(|&phase| is_due(phase, 100_000, 50, interval));
        assert_eq!(after_a_jump_back.count(), 1);
    }

    #[test]
    fn phases_are_spread() {
        let mut rules = [0; 60];
        for number in 0..6_000 {
            rules[phase("01a2-org", &format!("{number:020}"), 60) as usize] += 1;
        }
        let (least, most) = (rules.iter().min().unwrap(), rules.iter().max().unwrap());
        assert!(*least > 60 && *most < 140, "{least} to {most}");
    }
}
