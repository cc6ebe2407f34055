//! Secrets that we mint: how they look, and what of them is stored.
//!
//! Keys and session ids are random enough that SHA-256 protects them at rest; only that digest is
//! stored, and looking it up by its digest tells an attacker nothing through time. Passwords are
//! chosen by people and go through bcrypt instead.
//!
//! ```text
//! inlay_admin_92wx2V83UPS503ppF2Qgv39AzrLdA6xMhSwTDR6GNQ4cNZoZk
//! │           │                                          └ 6 characters: the beginning of SHA-256 over all before, as base64url
//! │           └ 43 characters: 32 random bytes as base64url
//! └ prefix: what kind of secret it is, also to scanners that look for leaked ones
//! ```
//!
//! A secret with a wrong checksum was mistyped or cut, and is refused without a look into the store.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use inlay_engine::Rng;
use sha2::{Digest, Sha256};

/// Random bytes in every secret.
const SECRET_BYTES: usize = 32;

/// A new secret: `prefix`, 32 random bytes, and a checksum, so that a mistyped or cut one is known
/// without asking the store.
pub fn mint(prefix: &str, rng: &dyn Rng) -> String {
    let mut bytes = [0; SECRET_BYTES];
    rng.fill(&mut bytes);
    let body = URL_SAFE_NO_PAD.encode(bytes);
    let check = checksum(prefix, &body);
    format!("{prefix}{body}{check}")
}

/// Whether `text` has the form of a secret minted with `prefix`.
/// No secret of another prefix is, nor one that lacks its last character. It says nothing about whether the secret was ever minted.
pub fn is_well_formed(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix)
        .and_then(|rest| rest.split_at_checked(rest.len().checked_sub(CHECKSUM_CHARS)?))
        .is_some_and(|(body, check)| checksum(prefix, body) == check)
}

const CHECKSUM_CHARS: usize = 6;

/// The checksum of a secret. The prefix counts, so that the body of one kind is no secret of another kind.
fn checksum(prefix: &str, body: &str) -> String {
    let digest = Sha256::new().chain_update(prefix).chain_update(body).finalize();
    let mut text = URL_SAFE_NO_PAD.encode(&digest[..5]);
    text.truncate(CHECKSUM_CHARS);
    text
}

/// The stored form of a secret: 64 lower-case hexadecimal digits of its SHA-256, prefix and checksum included.
pub fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Lower-case hexadecimal digits: `[0, 15, 16, 255]` is `000f10ff`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|at| char::from(DIGITS[usize::from(at)]));
    bytes.iter().flat_map(digits).collect()
}

/// Bytes of lower-case hexadecimal digits. `None` for an odd number of them, upper case, and any other character.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use inlay_engine::SeededRng;

    use super::*;

    #[test]
    fn digits_come_back_as_bytes() {
        assert_eq!(unhex(&hex(&[0, 15, 16, 255])).unwrap(), [0, 15, 16, 255]);
        assert_eq!((unhex("0"), unhex("0G"), unhex("AA")), (None, None, None));
    }

    #[test]
    fn a_changed_secret_is_not_well_formed() {
        let secret = mint("inlay_admin_", &SeededRng::new(1));
        assert!(is_well_formed("inlay_admin_", &secret));
        assert!(!is_well_formed("inlay_ingest_", &secret));
        assert!(!is_well_formed("inlay_admin_", &secret[..secret.len() - 1]));
        assert!(!is_well_formed("inlay_admin_", "inlay_admin_é"));
        let mut other = secret.clone().into_bytes();
        other[20] ^= 1;
        assert!(!is_well_formed("inlay_admin_", &String::from_utf8(other).unwrap()));
        assert_ne!(secret, mint("inlay_admin_", &SeededRng::new(2)));
    }
}
