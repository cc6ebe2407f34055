//! What the parts of Inlay and its clients agree on: names on the wire, and the internal gRPC service,
//! generated from `inlay/v1/*.proto`.
//!
//! The generated code is committed, so that building needs no protobuf compiler. `cargo tool gen`
//! writes it again; `cargo tool gen --check` says whether it is current.

pub mod names;

#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
pub mod v1 {
    include!("inlay.v1.rs");
}

/// The compiled description of the service, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("inlay.v1.bin");
