//! Signatures of webhooks, as Standard Webhooks has them.
//!
//! ```text
//! webhook-id: 0197…                        the same at every attempt
//! webhook-timestamp: 1614265330            seconds since 1970, of the attempt
//! webhook-signature: v1,g0hM9SsE+OTP…=     HMAC-SHA256 of `id.timestamp.body` by the secret of the rule,
//!                                          and after a blank by the one before, for a day after a change
//! ```

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Headers that let a receiver check that a body is ours and new: those of Standard Webhooks. `id` is
/// the same at every attempt, `at_ms` that of the attempt. Without a secret there is only the id, by which a receiver recognises
/// a message that it has.
///
/// Source: <https://github.com/standard-webhooks/standard-webhooks>
///
/// `secrets` are `whsec_` and Base64, the current one first. Each gives one signature: `v1,<Base64> v1,<Base64>`.
pub fn signature_headers(
    secrets: &[&str],
    id: &str,
    at_ms: i64,
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let seconds = at_ms.div_euclid(1_000).to_string();
    let signature = |secret: &&str| {
        // A secret of ours always decodes; with an empty key the signature is wrong, and the message still goes out.
        let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap_or_default();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
            mac.update(part);
        }
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    };
    let signatures: Vec<String> = secrets.iter().filter_map(signature).collect();
    let mut headers = vec![("webhook-id", id.to_owned())];
    if !signatures.is_empty() {
        headers.push(("webhook-signature", signatures.join(" ")));
        headers.push(("webhook-timestamp", seconds));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let headers = signature_headers(
            &[secret, "whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330_000,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(headers[2].1, "1614265330");
        let (first, second) = headers[1].1.split_once(' ').unwrap();
        assert_eq!(first, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(second.starts_with("v1,") && second != first);
        let unsigned = signature_headers(&[], "msg_1", 0, b"{}");
        assert_eq!(unsigned, [("webhook-id", "msg_1".to_owned())]);
    }
}
