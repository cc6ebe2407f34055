//! `.ci/checked_rustc.py`, with cargo itself: what clippy or rustdoc warns of fails the build, in code and in tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "packages are made as anybody would")]

use std::{fs, path::Path, process::Command};

const MANIFEST: &str = "[package]\nname = \"one\"\nedition = \"2024\"\n\n[workspace]\n";
const CLEAN: &str = "//! A crate.\n\n/// As [`TWO`].\npub const ONE: u32 = 1;\n\n/// Two.\npub const TWO: u32 = 2;\n";

/// Builds a package of one file with its tests. `Err` has what was printed.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn build(source: &str) -> Option<Result<bool, String>> {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("python3") || !is_there("clippy-driver") {
        assert!(std::env::var_os("CI").is_none(), "CI has Python and clippy");
        eprintln!("skipped: needs Python and clippy");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(root.join("src/lib.rs"), source).unwrap();
    let wrapper = Path::new("../.ci/checked_rustc.py").canonicalize().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--no-run"])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(match output.status.success() {
        true => Ok(root.join("target/doc/one/constant.ONE.html").exists()),
        false => Err(text),
    })
}

#[test]
fn what_is_clean_is_compiled_and_documented() {
    let Some(built) = build(CLEAN) else { return };
    assert_eq!(built, Ok(true));
}

#[test]
fn warnings_of_clippy_and_rustdoc_fail_the_build() {
    let wrong = [
        ("needless_return", "/// One.\npub fn one() -> u32 {\n    return 1;\n}\n"),
        ("unused_variables", "/// One.\npub fn one() {\n    let two = 2;\n}\n"),
        ("broken_intra_doc_links", "/// As [`three`].\npub fn one() {}\n"),
        ("bool_assert_comparison", "#[test]\nfn one() {\n    assert_eq!(1 < 2, true);\n}\n"),
    ];
    for (lint, code) in wrong {
        let Some(built) = build(&format!("{CLEAN}\n{code}")) else { return };
        let text = built.unwrap_err();
        assert!(text.contains(lint), "{lint}: {text}");
    }
}
