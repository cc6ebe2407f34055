//! Who may call: somebody on this machine, or somebody with the token.
//!
//! ```text
//! INLAY_GRPC_TOKEN not set              every call passes; the address is a loopback address, which the start has checked
//! authorization: Bearer <the token>     passes
//! authorization: <the token>            UNAUTHENTICATED: the bearer token of INLAY_GRPC_TOKEN is missing or wrong
//! no authorization                      the same
//! ```
//!
//! Health and reflection are calls as all others, and need the token too.

use sha2::{Digest, Sha256};
use tonic::{Request, Status, service::Interceptor};

/// Asks for the bearer token where one is set. It keeps the token's SHA-256, not the token; `None` lets every call pass.
#[derive(Clone)]
pub struct Guard {
    digest: Option<[u8; 32]>,
}

impl Guard {
    /// A guard that asks for `token`, or lets every call pass where there is none.
    pub fn new(token: Option<&str>) -> Self {
        Self { digest: token.map(|token| Sha256::digest(token.as_bytes()).into()) }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(expected) = &self.digest else { return Ok(request) };
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let given: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Digests are compared whole: their difference says nothing about the token.
        let differs = expected.iter().zip(&given).fold(0, |sum, (a, b)| sum | (a ^ b));
        if differs == 0 {
            return Ok(request);
        }
        Err(Status::unauthenticated("the bearer token of INLAY_GRPC_TOKEN is missing or wrong"))
    }
}
