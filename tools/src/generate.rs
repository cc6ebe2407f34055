//! Generated code: gRPC from the proto files, by a compiler that is a crate.
//!
//! ```text
//! proto/inlay/v1/inlay.proto
//!   → proto/src/inlay.v1.rs      client and server of the service, which the crate `inlay-proto` includes
//!   → proto/src/inlay.v1.bin     the descriptors, which reflection hands out
//!
//! cargo tool gen --check         proto/src/inlay.v1.rs is not current: run `cargo tool gen`
//! ```
//!
//! The result is committed, so that building Inlay needs no compiler of proto files.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool of the workspace reads and writes its files"
)]

use std::{fs, path::Path};

use anyhow::{Context as _, bail};
use prost::Message as _;

const PROTO: &str = "proto/inlay/v1/inlay.proto";
const GENERATED: &str = "proto/src/inlay.v1.rs";
/// The compiled description of the service, which reflection hands out.
const DESCRIPTORS: &str = "proto/src/inlay.v1.bin";

/// Writes the generated code, or says that it is not current. It is made in a directory of its own first, so that a compiler that
/// fails leaves the old code in place.
///
/// Errors: the proto file does not compile; with `check`, code or descriptors differ.
pub fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let descriptors = protox::compile([root.join(PROTO)], [root.join("proto")]).context(PROTO)?;
    let out = std::env::temp_dir().join(format!("inlay-gen-{}", std::process::id()));
    fs::create_dir_all(&out)?;
    let described = descriptors.encode_to_vec();
    tonic_prost_build::configure().build_client(true).out_dir(&out).compile_fds(descriptors)?;
    let fresh = fs::read_to_string(out.join("inlay.v1.rs"))?;
    fs::remove_dir_all(&out)?;
    let path = root.join(GENERATED);
    if check {
        let is_current = fs::read_to_string(&path).unwrap_or_default() == fresh
            && fs::read(root.join(DESCRIPTORS)).unwrap_or_default() == described;
        if !is_current {
            bail!("{GENERATED} is not current: run `cargo tool gen`");
        }
        return Ok(());
    }
    fs::write(path, fresh)?;
    fs::write(root.join(DESCRIPTORS), described)?;
    Ok(())
}
