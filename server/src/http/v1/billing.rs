//! `/v1/billing`, and the billing provider's webhook.
//!
//! ```text
//! GET /v1/billing
//! 200 {"plan":"scale","status":"active","current_period_end":"2026-12-20T10:17:36.000Z",
//!      "usage":{"monthly_events":43,"published_dashboards":1,"api_keys":2},
//!      "limits":{"monthly_events":200000000,"published_dashboards":null,"api_keys":null},
//!      "plans":[{"id":"free","name":"Free","limits":{"monthly_events":1000000,…},"features":{"advanced_embed_permissions":false}},…]}
//!
//! GET /v1/billing/checkout-config
//! 200 {"environment":"sandbox","client_token":"test_token","prices":{"growth":"pri_1","scale":"pri_2"},"org_id":"01a21f84-…"}
//! GET /v1/billing/portal
//! 404 billing customer not found          nothing was bought yet
//! ```
//!
//! The provider reports each change of a subscription:
//!
//! ```text
//! POST /webhooks/billing
//! Billing-Signature: ts=1795825266;h1=1f363f5e8c6af5fc3e2873d7474fb5fc5aa4c2d780c05b412612bdd1c5d38bf5
//! {"event_id": "evt_01", "event_type": "subscription.updated", "occurred_at": "2026-11-20T10:17:36.789Z", "data": {"id": "sub_01",
//!  "status": "active", "customer_id": "ctm_01", "custom_data": {"org_id": "01a21f84-…"}, "items": [{"price": {"id": "pri_2"}}], …}}
//!
//! 200 {"status":"applied"}                once
//! 200 {"status":"duplicate"}              the same again
//! 401 the signature is not valid          another key, or a time that is more than 300 s off; the log says which
//! ```

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, State},
};
use inlay_proto::names::BILLING_SIGNATURE_HEADER;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{BillingState, Caller, PLANS, Plan, Received},
    error::{ApiError, Code, Result},
    http::{
        extract::received,
        openapi::describe::{Description, Takes},
        respond::{Answer, List},
        state::context::Http,
    },
    outbound,
    store::BillingStatus,
};

/// Plan, status, usage and limits.
#[derive(Serialize, ToSchema)]
#[schema(as = Billing)]
pub struct BillingView {
    #[schema(example = "growth")]
    plan: String,
    status: BillingStatus,
    current_period_end: Option<Time>,
    usage: BillingUsage,
    limits: Limits,
    plans: Vec<PlanView>,
}

/// What counts against the limits.
#[derive(Serialize, ToSchema)]
struct BillingUsage {
    /// Of this month, over all environments.
    monthly_events: u64,
    published_dashboards: u64,
    api_keys: u64,
}

/// A plan with its limits.
#[derive(Serialize, ToSchema)]
#[schema(as = Plan)]
pub struct PlanView {
    #[schema(example = "growth")]
    id: &'static str,
    #[schema(example = "Growth")]
    name: &'static str,
    limits: Limits,
    features: Features,
}

/// What a plan has room for; null is unlimited.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanLimits)]
struct Limits {
    monthly_events: Option<u64>,
    published_dashboards: Option<u64>,
    api_keys: Option<u64>,
}

/// What a plan can do.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanFeatures)]
struct Features {
    /// Hiding widgets, and limiting dimensions, periods and ranges of embeds.
    advanced_embed_permissions: bool,
}

/// What a hosted checkout needs.
#[derive(Serialize, ToSchema)]
pub struct CheckoutConfig {
    #[schema(example = "sandbox")]
    environment: String,
    client_token: String,
    /// Price ids by plan.
    prices: BTreeMap<String, String>,
    org_id: String,
}

/// The hosted portal.
#[derive(Serialize, ToSchema)]
pub struct BillingPortal {
    #[schema(format = Uri)]
    url: String,
}

/// What became of a webhook.
#[derive(Serialize, ToSchema)]
pub struct BillingReceipt {
    /// `applied`, `duplicate` or `ignored`.
    #[schema(example = "applied")]
    status: &'static str,
}

/// An event of the billing provider; unknown fields are ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents what is read of a body that is verified as it was sent")]
struct BillingEvent {
    #[schema(example = "evt_01")]
    event_id: String,
    #[schema(example = "subscription.updated")]
    event_type: String,
    #[schema(example = "2026-11-20T10:17:36.789Z")]
    occurred_at: String,
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// A body as it was sent, with its signature: the signature is over these bytes, so nothing may be read of them before.
pub struct Signed {
    signature: Option<String>,
    body: Bytes,
}

impl FromRequest<Http> for Signed {
    type Rejection = ApiError;
    async fn from_request(request: Request, http: &Http) -> Result<Self> {
        // A header that comes twice is none: nobody knows which one a proxy looked at.
        let mut values = request.headers().get_all(BILLING_SIGNATURE_HEADER).iter();
        let first = values.next().filter(|_| values.next().is_none());
        let signature = first.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = received(request, http).await?;
        Ok(Self { signature, body })
    }
}

impl Takes for Signed {
    fn takes(description: &mut Description) {
        let text = "`ts=<unix>;h1=<hex>`: HMAC-SHA256 over the time, a colon and the body.";
        let example = serde_json::json!(format!("ts=1795169856;h1={}", "0f".repeat(32)));
        let form = Some("^ts=[0-9]+(;h1=[0-9a-f]{64})+$");
        description.header_parameter(BILLING_SIGNATURE_HEADER, text, form, example);
        let schema = description.schema_of::<BillingEvent>();
        description.takes_body(vec![("application/json", schema)]);
        description.codes.extend([
            Code::InvalidJson,
            Code::InvalidField,
            Code::MissingField,
            Code::PayloadTooLarge,
        ]);
    }
}

/// Plan, status, usage and limits of the caller's organisation. 200 also without billing: the plan has limits then, too.
pub async fn get(State(http): State<Http>, caller: Caller) -> Result<Answer<BillingView>> {
    http.run(move |app| app.billing(&caller)).await.map(view).map(Answer)
}

/// The plans that there are, smallest first; null as a limit is unlimited.
pub async fn plans(State(_): State<Http>, _caller: Caller) -> Result<List<PlanView>> {
    Ok(List { data: PLANS.iter().map(plan).collect(), next: None })
}

/// Settings of a hosted checkout, for the browser: the token is a public one. 503 `billing_not_configured` without billing.
pub async fn checkout_config(
    State(http): State<Http>,
    caller: Caller,
) -> Result<Answer<CheckoutConfig>> {
    let settings = http.app.billing_settings()?;
    Ok(Answer(CheckoutConfig {
        environment: settings.environment.clone(),
        client_token: settings.client_token.clone().unwrap_or_default(),
        prices: settings.prices.iter().cloned().collect(),
        org_id: caller.org.clone(),
    }))
}

/// A fresh address of the hosted portal. 503 without billing, and where the provider does not answer; 404 without a customer.
pub async fn portal(State(http): State<Http>, caller: Caller) -> Result<Answer<BillingPortal>> {
    let customer = http.run(move |app| app.billing_customer(&caller)).await?;
    let settings = http.app.billing_settings()?;
    let key = settings.api_key.clone().unwrap_or_default();
    let url = outbound::portal(&settings.api_url, &key, &customer).await?;
    Ok(Answer(BillingPortal { url }))
}

/// Takes an event of the billing provider. 200 also for an event that is known or not about us: any other status makes the provider send it again.
///
/// Errors: 401 for its signature, 503 `billing_not_configured` without a key, 400 for a body that is signed and cannot be read.
pub async fn webhook(State(http): State<Http>, sent: Signed) -> Result<Answer<BillingReceipt>> {
    let received =
        http.run(move |app| app.receive_billing(sent.signature.as_deref(), &sent.body)).await?;
    let status = match received {
        Received::Applied => "applied",
        Received::Duplicate => "duplicate",
        Received::Ignored => "ignored",
    };
    Ok(Answer(BillingReceipt { status }))
}

fn view(state: BillingState) -> BillingView {
    BillingView {
        plan: state.plan.name.to_owned(),
        status: state.org.billing.status,
        current_period_end: state.org.billing.current_period_end.map(Time),
        usage: BillingUsage {
            monthly_events: state.monthly_events,
            published_dashboards: state.published_dashboards,
            api_keys: state.api_keys,
        },
        limits: limits(state.plan),
        plans: PLANS.iter().map(plan).collect(),
    }
}

fn plan(plan: &Plan) -> PlanView {
    let features = Features { advanced_embed_permissions: plan.advanced_embed_permissions };
    PlanView { id: plan.name, name: plan.title, limits: limits(plan), features }
}

fn limits(plan: &Plan) -> Limits {
    Limits {
        monthly_events: plan.monthly_events,
        published_dashboards: plan.published_dashboards,
        api_keys: plan.api_keys,
    }
}
