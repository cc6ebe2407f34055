//! Billing: the subscription of an organisation, as webhooks of the billing provider report it.
//!
//! Each event changes the state once, in the order in which things happened there, whatever the order in
//! which they arrive: the ids of events are remembered, and what is older than what is known is not
//! applied. Both are in the transaction that makes the change.
//!
//! ```text
//! POST /webhooks/billing
//! Billing-Signature: ts=1795169856;h1=<64 hexadecimal digits: HMAC-SHA256 over "1795169856:" and the body>
//!
//! {"event_id": "evt_1", "event_type": "subscription.created", "occurred_at": "2026-11-20T10:00:00Z",
//!  "data": {"id": "sub_1", "status": "active", "customer_id": "ctm_1", "custom_data": {"org_id": "0190…"},
//!           "items": [{"price": {"id": "pri_growth"}}], "current_billing_period": {"ends_at": "2026-12-01T00:00:00Z"}}}
//!
//! 200 {"status": "applied"}       the plan is growth, its status active
//! 200 {"status": "duplicate"}     the same event_id again, whatever its body says
//! 200 {"status": "ignored"}       evt_0 with an occurred_at of 09:59:00, which arrives later
//! 401 {"code": "unauthenticated", "error": "the signature is not valid", …}
//! ```
//!
//! `past_due` keeps the plan, `canceled` ends on `free`. An event about nothing of ours, such as `transaction.completed`, is 200 as well:
//! the provider would send it for days otherwise.

use serde::Deserialize;
use serde_json::json;

use crate::{
    app::{
        plans::{PLANS, Plan, plan_of},
        request::{
            access::Principal,
            callers::{Caller, Identity},
            context::App,
        },
        settings::BillingSettings,
    },
    base::{instant, json::explain, secret, signature},
    error::{ApiError, Code, Result},
    store::{
        Actor, ApiKey, Billing, BillingEvent, BillingStatus, Dashboard, Org, OrgTxn, global_find,
        global_put,
    },
};

/// Plan, usage and billing status of an organisation.
///
/// What `GET /v1/billing` answers, with all plans beside it.
pub struct BillingState {
    /// Record of the organisation, with its billing status.
    pub org: Org,
    /// Plan of the organisation; the smallest plan when its name is unknown.
    pub plan: &'static Plan,
    /// Events stored in this UTC month, over all environments.
    pub monthly_events: u64,
    /// Dashboards that are published now.
    pub published_dashboards: u64,
    /// API keys that exist now, over all environments.
    pub api_keys: u64,
}

/// Result of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// The event changed the organisation's billing record.
    Applied,
    /// An event of this id was received before.
    Duplicate,
    /// The event has an unknown type, status or organisation, is older than the last applied event,
    /// or ends a subscription that another has replaced.
    Ignored,
}

/// An event as the provider sends it; fields that are not here are ignored. `data` is decoded later, only for types that we know.
#[derive(Deserialize)]
struct ProviderEvent {
    event_id: String,
    event_type: String,
    occurred_at: String,
    #[serde(default)]
    data: serde_json::Value,
}

/// The subscription in `data`. All parts are optional: an event without a part changes nothing of it.
#[derive(Deserialize)]
struct Subscription {
    id: Option<String>,
    status: Option<String>,
    customer_id: Option<String>,
    custom_data: Option<CustomData>,
    #[serde(default)]
    items: Vec<Item>,
    current_billing_period: Option<BillingPeriod>,
}

/// What our checkout gave the provider to hand back: the id of the organisation that buys.
#[derive(Deserialize)]
struct CustomData {
    org_id: Option<String>,
}

/// One line of the subscription. Lines whose price is none of ours, such as an extra, are passed over.
#[derive(Deserialize)]
struct Item {
    price: Option<Price>,
}

#[derive(Deserialize)]
struct Price {
    id: Option<String>,
}

#[derive(Deserialize)]
struct BillingPeriod {
    ends_at: Option<String>,
}

/// The plan that a price buys.
///
/// `pri_growth` is `growth` with the setting `growth=pri_growth,scale=pri_scale`; `None` for a price that is not listed.
fn plan_of_price(settings: &BillingSettings, price: &str) -> Option<&'static Plan> {
    let (plan, _) = settings.prices.iter().find(|(_, id)| id == price)?;
    PLANS.iter().find(|known| known.name == plan)
}

impl App {
    /// Plan, usage and billing status of the caller's organisation.
    pub fn billing(&self, caller: &Caller) -> Result<BillingState> {
        let org = self.org(&caller.org)?;
        let reader = self.org_reader(&caller.org);
        let dashboards: Vec<Dashboard> = reader.list()?;
        Ok(BillingState {
            plan: plan_of(&org),
            monthly_events: self.month_events(&caller.org)?,
            published_dashboards: dashboards.iter().filter(|one| one.is_live).count() as u64,
            api_keys: reader.list::<ApiKey>()?.len() as u64,
            org,
        })
    }

    /// The billing settings. 503 when a purchase is not possible with them.
    pub fn billing_settings(&self) -> Result<&BillingSettings> {
        let settings = &self.settings.billing;
        if settings.is_configured() { Ok(settings) } else { Err(not_configured()) }
    }

    /// Id of the organisation at the billing provider. 503 without billing, 404 without a customer.
    pub fn billing_customer(&self, caller: &Caller) -> Result<String> {
        self.billing_settings()?;
        let customer = self.org(&caller.org)?.billing.customer_id;
        customer.ok_or_else(|| ApiError::not_found("billing customer"))
    }

    /// Takes a webhook of the billing provider. 503 without a key, 401 without a good signature.
    ///
    /// The signature is over the bytes as they came, so that it is checked before they are read as JSON.
    ///
    /// Errors: 400 for a signed body that is no event: `invalid_json`, or the field that is missing or wrong.
    pub fn receive_billing(&self, signature: Option<&str>, body: &[u8]) -> Result<Received> {
        let settings = &self.settings.billing;
        if settings.notification_keys.is_empty() {
            return Err(not_configured());
        }
        let now = self.now_ms();
        let verdict = signature.ok_or(signature::SignatureError::Form).and_then(|header| {
            let keys = &settings.notification_keys;
            signature::verify(header, body, keys, now / 1_000, settings.tolerance_seconds)
        });
        if let Err(refusal) = verdict {
            tracing::warn!(?refusal, "refused a billing webhook");
            return Err(ApiError::new(Code::Unauthenticated, "the signature is not valid"));
        }
        let event: ProviderEvent = parse(body)?;
        let occurred_at = instant::parse(&event.occurred_at).ok_or_else(|| {
            let message = "occurred_at is not an ISO 8601 date-time";
            ApiError::field(Code::InvalidField, "occurred_at", message)
        })?;
        // The digest of the body only serves the warning below: an event that comes again changed says that something is wrong over there.
        let digest = secret::digest(&String::from_utf8_lossy(body));
        self.engine.transact(|txn| {
            let id = secret::digest(&event.event_id);
            if let Some(known) = global_find::<BillingEvent>(txn, "billing_event", &id)? {
                if known.digest != digest {
                    tracing::warn!(event_id = %event.event_id, "a billing event came again with another body");
                }
                return Ok(Received::Duplicate);
            }
            let record = BillingEvent { digest: digest.clone(), received_at: now };
            global_put(txn, "billing_event", &id, &record)?;
            self.apply_billing(txn, &event, occurred_at)
        })
    }

    /// Changes plan and billing record of the organisation of an event, with a row in the audit.
    ///
    /// Errors: 400 when `data` is no subscription.
    fn apply_billing(
        &self,
        txn: &mut inlay_engine::Txn,
        event: &ProviderEvent,
        occurred_at: i64,
    ) -> Result<Received> {
        let Some(status) = status_of_type(&event.event_type) else { return Ok(Received::Ignored) };
        let subscription: Subscription =
            serde_json::from_value(event.data.clone()).map_err(|error| {
                ApiError::field(Code::InvalidField, "data", format!("data: {error}"))
            })?;
        let org_id = subscription.custom_data.and_then(|data| data.org_id).unwrap_or_default();
        let mut records = OrgTxn::new(txn, &org_id);
        let Some(mut org) = records.find::<Org>(&org_id)? else {
            tracing::warn!(event_id = %event.event_id, "a billing event is about no organisation of ours");
            return Ok(Received::Ignored);
        };
        // Compared by the time at the provider: events may arrive in any order, and the newest says how things are.
        let is_late = org.billing.occurred_at.is_some_and(|known| known > occurred_at);
        let told = subscription.status.as_deref().map(status_of_name);
        let status = match (status, told) {
            (TypeSays::Exactly(status), _) | (TypeSays::Told, Some(Some(status))) => status,
            (TypeSays::Told, None) => BillingStatus::Active,
            // A status that we do not know is none that we could act on.
            (TypeSays::Told, Some(None)) => {
                tracing::warn!(event_id = %event.event_id, "a billing event has a status of its own");
                return Ok(Received::Ignored);
            }
        };
        if is_late || is_of_another(&org.billing, subscription.id.as_deref(), status) {
            return Ok(Received::Ignored);
        }
        // Of several prices that are ours the largest plan counts.
        let prices =
            subscription.items.iter().filter_map(|item| item.price.as_ref()?.id.as_deref());
        let bought = prices
            .filter_map(|price| plan_of_price(&self.settings.billing, price))
            .max_by_key(|plan| PLANS.iter().position(|known| known.name == plan.name));
        let before = (org.plan.clone(), org.billing.status);
        if status == BillingStatus::Canceled {
            org.plan = PLANS[0].name.to_owned();
        } else if let Some(plan) = bought {
            org.plan = plan.name.to_owned();
        } else {
            tracing::warn!(event_id = %event.event_id, "a billing event has no price of a plan");
        }
        let ends_at = subscription.current_billing_period.and_then(|period| period.ends_at);
        org.billing = Billing {
            customer_id: subscription.customer_id.or(org.billing.customer_id),
            subscription_id: subscription.id.or(org.billing.subscription_id),
            status,
            current_period_end: ends_at
                .as_deref()
                .and_then(instant::parse)
                .or(org.billing.current_period_end),
            occurred_at: Some(occurred_at),
        };
        records.put(&org)?;
        let metadata = json!({
            "event_id": event.event_id, "event_type": event.event_type,
            "before": {"plan": before.0, "status": before.1}, "plan": org.plan, "status": status,
        });
        let caller = provider(&org);
        self.audit(&mut records, &caller, "billing.update", ("org", &org_id), metadata)?;
        Ok(Received::Applied)
    }
}

/// Whether an event ends a subscription that another one has replaced.
///
/// `canceled` of `sub_1` arrives after `sub_2` was bought: the organisation has paid, and stays on its plan.
fn is_of_another(known: &Billing, id: Option<&str>, status: BillingStatus) -> bool {
    let is_end = matches!(status, BillingStatus::Canceled | BillingStatus::PastDue);
    let is_live = matches!(known.status, BillingStatus::Active | BillingStatus::Trialing);
    let differs = known.subscription_id.as_deref().is_some_and(|known| id != Some(known));
    is_end && is_live && differs
}

/// Status of a subscription by the type of an event.
enum TypeSays {
    /// The status is in the data of the event.
    Told,
    /// The type alone decides the status.
    Exactly(BillingStatus),
}

/// `None` for types that we do not act on.
fn status_of_type(event_type: &str) -> Option<TypeSays> {
    Some(match event_type {
        "subscription.created" | "subscription.updated" => TypeSays::Told,
        "subscription.activated" => TypeSays::Exactly(BillingStatus::Active),
        "subscription.past_due" => TypeSays::Exactly(BillingStatus::PastDue),
        "subscription.canceled" => TypeSays::Exactly(BillingStatus::Canceled),
        _ => return None,
    })
}

/// `past_due` as [`BillingStatus::PastDue`]; `None` for a name that is none of ours, such as `paused`.
fn status_of_name(name: &str) -> Option<BillingStatus> {
    serde_json::from_value(json!(name)).ok()
}

/// Decodes the body of a webhook.
///
/// Errors: `invalid_json`, or a fault that names the field, such as `missing_field` of `event_id`.
fn parse(body: &[u8]) -> Result<ProviderEvent> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        if !error.inner().is_data() {
            return ApiError::new(Code::InvalidJson, "the body is not valid JSON");
        }
        let (field, code, message) = explain(&error);
        ApiError { field, ..ApiError::new(code, message) }
    })
}

/// The billing provider as the author of a change: `{"type": "system", "id": "billing", "label": "billing provider"}` in the audit.
fn provider(org: &Org) -> Caller {
    let actor = Actor {
        r#type: "system".to_owned(),
        id: "billing".to_owned(),
        label: "billing provider".to_owned(),
    };
    Caller::from(Identity {
        principal: Principal::Anonymous,
        org: org.id.clone(),
        environment: org.environments[0].clone(),
        actor,
        session: None,
    })
}

fn not_configured() -> ApiError {
    ApiError::new(Code::BillingNotConfigured, "billing is not configured")
}
