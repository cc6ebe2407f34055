//! The signature of a billing webhook, and of what one process of a store sends another: `ts=<unix>;h1=<hex>`, several `h1` while keys change.
//!
//! HMAC-SHA256 over the time, a colon and the body as it was sent. It is checked before anything of the
//! body is read, in constant time, and it is good for a few minutes, so that a recorded request is worth
//! nothing later. With the key `pdl_ntfset_test`:
//!
//! ```text
//! body     {"event_id":"evt_01"}
//! signed   1795169856:{"event_id":"evt_01"}
//! header   ts=1795169856;h1=01565fde8c2a4bc7739c2c2061e7b205ee5b5a3317c1666d2811dbdd5160a6c0
//!
//! ts=1795169856;h1=<of the old key>;h1=<of the new key>     one match is enough
//! ts=1795169856                                             Form: no signature
//! ts=1795169856;h1=01565FDE…                                Form: upper case
//! ts=1795169000;h1=…                                        Time: more than 300 s from our clock
//! ```

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::secret::{hex, unhex};

const SIGNATURE_BYTES: usize = 32;

/// Why a signature does not count; only the log is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureError {
    /// The header is not of this form.
    Form,
    /// The time is too far from ours.
    Time,
    /// No signature is of any of our keys.
    Key,
}

/// Checks a header against a body. `keys` are those that are good now; `tolerance_seconds` is how far the time may be off, in either
/// direction, that much included.
///
/// Errors: why the signature does not count. The caller answers 401 in every case.
pub fn verify(
    header: &str,
    body: &[u8],
    keys: &[String],
    now_seconds: i64,
    tolerance_seconds: i64,
) -> Result<(), SignatureError> {
    let (mut ts, mut signatures) = (None, Vec::new());
    for part in header.split(';') {
        // What is no pair, and schemes that are not ours, may come beside.
        match part.split_once('=') {
            Some(("ts", value)) if !value.is_empty() => ts = Some(value),
            Some(("h1", value)) => {
                signatures.extend(unhex(value).filter(|bytes| bytes.len() == SIGNATURE_BYTES));
            }
            _ => {}
        }
    }
    let ts = ts.and_then(leading_number).ok_or(SignatureError::Form)?;
    if signatures.is_empty() {
        return Err(SignatureError::Form);
    }
    if now_seconds.abs_diff(ts) > tolerance_seconds.unsigned_abs() {
        return Err(SignatureError::Time);
    }
    let matches = |key: &String| {
        signatures.iter().any(|signature| {
            signer(key, ts, body).is_some_and(|mac| mac.verify_slice(signature).is_ok())
        })
    };
    if keys.iter().any(matches) { Ok(()) } else { Err(SignatureError::Key) }
}

/// The header for a body: `ts=1795169856;h1=01565fde…`. Empty for an empty key, which nobody checks against.
pub fn sign(body: &[u8], key: &str, now_seconds: i64) -> String {
    let signed = signer(key, now_seconds, body).map(|mac| hex(&mac.finalize().into_bytes()));
    signed.map(|hex| format!("ts={now_seconds};h1={hex}")).unwrap_or_default()
}

/// The number that a text begins with, as the provider's own library reads it: the signature is over the
/// number, not over the text.
fn leading_number(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// The HMAC of a key over time and body, before it is compared. `None` for an empty key.
fn signer(key: &str, ts: i64, body: &[u8]) -> Option<Hmac<Sha256>> {
    // An empty key would be one that everybody has.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).ok().filter(|_| !key.is_empty())?;
    mac.update(ts.to_string().as_bytes());
    mac.update(b":");
    mac.update(body);
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_169_856;

    fn sign(key: &str, ts: i64, body: &str) -> String {
        let header = super::sign(body.as_bytes(), key, ts);
        header.split_once("h1=").unwrap().1.to_owned()
    }

    #[test]
    fn a_signature_counts_for_its_body_key_and_time() {
        let keys = ["old".to_owned(), "new".to_owned()];
        let check = |header: &str, body: &str| verify(header, body.as_bytes(), &keys, NOW, 300);
        let good = sign("new", NOW, "{}");
        let header = format!("ts={NOW};h1={good}");
        assert_eq!(check(&header, "{}"), Ok(()));
        assert_eq!(check(&header, "{} "), Err(SignatureError::Key));
        let other = sign("other", NOW, "{}");
        assert_eq!(check(&format!("ts={NOW};h1={other}"), "{}"), Err(SignatureError::Key));
        for h1 in [format!("h1={other};h1={good}"), format!("h1={good};h1={other}")] {
            assert_eq!(check(&format!("ts={NOW};{h1}"), "{}"), Ok(()));
        }
        assert_eq!(check(&format!("h2=x;ts={NOW};h1={good}"), "{}"), Ok(()));
        for (age, expected) in [
            (300, Ok(())),
            (301, Err(SignatureError::Time)),
            (-300, Ok(())),
            (-301, Err(SignatureError::Time)),
        ] {
            let ts = NOW - age;
            let header = format!("ts={ts};h1={}", sign("old", ts, "{}"));
            assert_eq!(check(&header, "{}"), expected, "{age}");
        }
        // Read as the provider's library reads them.
        for header in [
            format!("ts={NOW}.5;h1={good}"),
            format!("ts=00{NOW};h1={good}"),
            format!("ts=1;ts={NOW};h1={good}"),
            format!("v1;ts={NOW};h1={good};"),
        ] {
            assert_eq!(check(&header, "{}"), Ok(()), "{header}");
        }
        for header in [
            String::new(),
            format!("ts={NOW}"),
            format!("h1={good}"),
            format!("ts=;h1={good}"),
            format!("ts={NOW};h2={good}"),
            format!("ts=-{NOW};h1={good}"),
            format!("ts=99999999999999999999;h1={good}"),
            format!("ts=NaN;h1={good}"),
            format!("ts={NOW}; h1={good}"),
            format!("ts={NOW};h1={}", good.to_uppercase()),
            format!("ts={NOW};h1={}", &good[..62]),
            format!("ts={NOW},h1={good}"),
        ] {
            assert_eq!(check(&header, "{}"), Err(SignatureError::Form), "{header}");
        }
        let empty = format!("ts={NOW};h1={good}");
        assert_eq!(verify(&empty, b"{}", &[String::new()], NOW, 300), Err(SignatureError::Key));
    }
}
