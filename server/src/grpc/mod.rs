//! The internal gRPC service, for tooling: it sees every namespace and knows no organisation.
//!
//! It listens on a loopback address, or asks for a token. Health and reflection come with it.

mod convert;

mod access;
mod incoming;
mod service;

pub use access::Guard;
pub use incoming::incoming;
pub use service::service;
