//! Plans: what an organisation may have at once.
//!
//! ```text
//! plan          events a month   published dashboards   API keys   advanced embed permissions
//! free               1,000,000                      1          2   no
//! growth            20,000,000                     10         10   yes
//! scale            200,000,000              unlimited  unlimited   yes
//! self_hosted        unlimited              unlimited  unlimited   yes
//! ```
//!
//! A refusal names the smallest plan that has room, so that a console can offer it:
//!
//! ```text
//! POST /v1/dashboards/0190…/publish      a second dashboard on the plan free
//! 402 {"error": "the plan free allows 1 published dashboards", "code": "published_dashboards_limit", "plan": "free",
//!      "upgrade_to": "growth", "limit": 1, "used": 1, "request_id": "…"}
//! ```

use crate::{
    error::{ApiError, Code, More, PlanLimit, Result},
    store::Org,
};

/// A plan with its limits. A limit of `None` is none: any number is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Name on the wire.
    /// As `Org::plan` and the API have it: `growth`.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Events that are stored in a calendar month in UTC, over all environments; repeated event ids and samples do not count.
    pub monthly_events: Option<u64>,
    /// Dashboards that are published at once.
    pub published_dashboards: Option<u64>,
    /// API keys that exist at once, over all environments; a revoked key makes room for another.
    pub api_keys: Option<u64>,
    /// Whether embed sessions may hide widgets and limit dimensions, periods and ranges.
    pub advanced_embed_permissions: bool,
}

/// All plans, smallest first.
pub const PLANS: [Plan; 4] = [
    Plan {
        name: "free",
        title: "Free",
        monthly_events: Some(1_000_000),
        published_dashboards: Some(1),
        api_keys: Some(2),
        advanced_embed_permissions: false,
    },
    Plan {
        name: "growth",
        title: "Growth",
        monthly_events: Some(20_000_000),
        published_dashboards: Some(10),
        api_keys: Some(10),
        advanced_embed_permissions: true,
    },
    Plan {
        name: "scale",
        title: "Scale",
        monthly_events: Some(200_000_000),
        published_dashboards: None,
        api_keys: None,
        advanced_embed_permissions: true,
    },
    Plan {
        name: "self_hosted",
        title: "Self-hosted",
        monthly_events: None,
        published_dashboards: None,
        api_keys: None,
        advanced_embed_permissions: true,
    },
];

/// The plan of an organisation. A name that no plan has, such as one of a build that was rolled back, counts as the smallest plan:
/// it is a limit too low for a moment, not an outage.
pub fn plan_of(org: &Org) -> &'static Plan {
    PLANS.iter().find(|plan| plan.name == org.plan).unwrap_or(&PLANS[0])
}

/// Refuses when `used` things exist already and the plan has no room for `more`.
///
/// `what` are these things for people, as in `the plan free allows 2 API keys`. With a limit of 10 and 9 in use, one more is allowed and
/// two are not. Called inside the transaction that adds the things: two requests at once cannot both take the last one.
///
/// Errors: `code`, which is a 402, with the plan, its limit, the number in use, and the smallest plan with room as `upgrade_to`. Nothing
/// is offered where no plan has room, as for 300 million events a month; `self_hosted` is not for sale.
pub fn check(
    org: &Org,
    code: Code,
    what: &str,
    limit_of: impl Fn(&Plan) -> Option<u64>,
    used: u64,
    more: u64,
) -> Result<()> {
    let plan = plan_of(org);
    let Some(limit) = limit_of(plan).filter(|&limit| used + more > limit) else { return Ok(()) };
    let has_room = |plan: &&Plan| limit_of(plan).is_none_or(|limit| used + more <= limit);
    let upgrade_to = PLANS.iter().filter(|other| other.name != "self_hosted").find(has_room);
    Err(ApiError {
        more: Some(Box::new(More::Plan(PlanLimit {
            plan: plan.name.to_owned(),
            upgrade_to: upgrade_to.map(|plan| plan.name.to_owned()),
            limit,
            used,
        }))),
        ..ApiError::new(code, format!("the plan {} allows {limit} {what}", plan.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Billing;

    #[test]
    fn a_full_plan_names_the_next_that_has_room() {
        let org = Org {
            id: String::new(),
            name: String::new(),
            email: String::new(),
            plan: "free".to_owned(),
            billing: Billing::default(),
            environments: vec![],
            created_at: 0,
        };
        let published = |used| {
            check(
                &org,
                Code::PublishedDashboardsLimit,
                "dashboards",
                |plan| plan.published_dashboards,
                used,
                1,
            )
        };
        assert!(published(0).is_ok());
        let limit = |used| match published(used).unwrap_err().more.map(|more| *more) {
            Some(More::Plan(limit)) => limit,
            other => panic!("{other:?}"),
        };
        let room = limit(50).upgrade_to;
        let limit = limit(1);
        assert_eq!((limit.limit, limit.used, limit.upgrade_to.as_deref()), (1, 1, Some("growth")));
        assert_eq!(room.as_deref(), Some("scale"));
    }
}
