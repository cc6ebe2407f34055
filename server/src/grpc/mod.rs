//! The internal gRPC service, for tooling: it sees every namespace and knows no organisation.
//!
//! It listens on a loopback address, or asks for a token. Health and reflection come with it. A namespace is one environment of one
//! organisation; tools name it by its number. `proto/inlay/v1/inlay.proto` describes all calls:
//!
//! ```text
//! $ grpcurl -plaintext 127.0.0.1:8081 list             among others:
//! grpc.health.v1.Health
//! inlay.v1.Inlay
//! $ grpcurl -plaintext -d '{"name": "01a21f84"}' 127.0.0.1:8081 inlay.v1.Inlay/DescribeSegment
//! $ grpcurl -plaintext -H 'authorization: Bearer secret' prod:8081 inlay.v1.Inlay/Stats
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `access` | the check of the token, before any call |
//! | `incoming` | accepted connections, as many at once as there are permits |
//! | `service` | the calls |
//! | `convert` | messages of the wire from and to types of the engine |

mod convert;

mod access;
mod incoming;
mod service;

pub use access::Guard;
pub use incoming::incoming;
pub use service::service;
