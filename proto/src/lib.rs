//! The internal gRPC service of Inlay, generated from `inlay/v1/*.proto`.
//!
//! The generated code is committed, so that building needs no protobuf compiler. `cargo tool gen`
//! writes it again; `cargo tool gen --check` says whether it is current.

#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
pub mod v1 {
    include!("inlay.v1.rs");
}
