//! The billing provider's API: one call, for the hosted portal of a customer.
//!
//! ```text
//! POST https://api.paddle.com/customers/ctm_01/portal-sessions
//! authorization: Bearer <key>
//!
//! {}
//!
//! 2xx {"data": {"urls": {"general": {"overview": "https://…"}}}}
//! ```
//!
//! The answer is a link that is good for one session; it is passed on and never stored.

use std::time::Duration;

use reqwest::{Client, Url, redirect::Policy};
use serde::Deserialize;

use crate::error::{ApiError, Code, Result};

/// The provider gets this long to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

// The parts of the answer that are read: `data.urls.general.overview`. All others are ignored.
#[derive(Deserialize)]
struct ProviderResponse {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    urls: Urls,
}

#[derive(Deserialize)]
struct Urls {
    general: General,
}

#[derive(Deserialize)]
struct General {
    overview: String,
}

/// The address of a fresh portal session of a customer such as `ctm_01`.
///
/// Errors: 503, "the billing provider does not answer; retry soon", for everything that goes wrong: an address that is no URL, no answer
/// within 10 s, another status than 2xx, another body. The cause is for the log, without the URL.
pub async fn portal(api_url: &str, api_key: &str, customer: &str) -> Result<String> {
    let failed = |cause: String| ApiError {
        cause: Some(cause),
        ..ApiError::new(Code::Overloaded, "the billing provider does not answer; retry soon")
    };
    let mut url = Url::parse(api_url).map_err(|error| failed(error.to_string()))?;
    // The id becomes one segment of the path, whatever it holds.
    url.path_segments_mut()
        .map_err(|()| failed("the billing API has no path".to_owned()))?
        .pop_if_empty()
        .extend(["customers", customer, "portal-sessions"]);
    let client = Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let sent = client.post(url).bearer_auth(api_key).json(&serde_json::json!({})).send().await;
    let response = sent.map_err(|error| failed(error.without_url().to_string()))?;
    let status = response.status();
    if !status.is_success() {
        return Err(failed(format!("the billing API answered {status}")));
    }
    let answer: ProviderResponse =
        response.json().await.map_err(|error| failed(error.without_url().to_string()))?;
    Ok(answer.data.urls.general.overview)
}
