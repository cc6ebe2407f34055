//! The client libraries, `tools/clients`, beside the binary that was just built: their own tests, in Python and in Node.
//!
//! Needs Python 3.10, Node and `npm install`. What is missing is named, and the test passes without having looked; where `CI`
//! is set, it fails.

use std::{path::Path, process::Command};

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Runs a suite in the root of the repository, if what it needs is there.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn suite(needs: &[(&str, bool)], program: &str, arguments: &[&str]) {
    let missing: Vec<&str> =
        needs.iter().filter(|(_, is_here)| !is_here).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "CI has them; missing: {missing:?}");
        eprintln!("skipped: this test needs {}", missing.join(", "));
        return;
    }
    let status = Command::new(program)
        .args(arguments)
        .env("TEST_INLAY", env!("CARGO_BIN_EXE_inlay"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir("../..")
        .status()
        .expect("the suite starts");
    assert!(status.success(), "{program} {arguments:?} failed");
}

#[test]
fn the_python_client_works_beside_a_server() {
    let is_new = "import sys; sys.exit(sys.version_info < (3, 10))";
    let tests = "tools/clients/python/tests";
    suite(
        &[("Python 3.10", runs("python3", &["-c", is_new]))],
        "python3",
        &["-m", "unittest", "discover", "-s", tests, "-t", "tools/clients/python"],
    );
}

#[test]
fn the_node_client_works_beside_a_server() {
    let has_packages = Path::new("../../node_modules/esbuild").is_dir();
    suite(
        &[("Node", runs("node", &["--version"])), ("npm install", has_packages)],
        "node",
        &["--test", "tools/clients/node/test/client.test.js"],
    );
}
