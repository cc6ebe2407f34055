//! One program for all targets: `INLAY_FUZZ` names the one to run.

#![no_main]

use std::sync::LazyLock;

use inlay_engine::{Target, targets};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("INLAY_FUZZ").unwrap_or_default();
    let known = || targets().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = targets().iter().find(|(known, _)| *known == name);
    *found.unwrap_or_else(|| panic!("INLAY_FUZZ is '{name}', and not one of {}", known()))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.1(bytes));
