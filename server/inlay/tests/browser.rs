//! The embed and the console in a real browser: `tests/browser`, run against the binary that was just built.
//! Budgets of bytes and times are a test of their own, `-- --ignored`: times mean nothing beside other tests.
//!
//! Needs Chromium, Node, libfaketime and `npm install`. What is missing is named, and the test passes
//! without having looked; where `CI` is set, it fails.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

/// What the tests need and is not here.
fn missing(root: &Path) -> Vec<&'static str> {
    let needs = [
        ("Chromium", find(&["chromium", "chromium-browser", "google-chrome"]).is_some()),
        ("Node", runs("node")),
        ("faketime", find(&["faketime"]).is_some()),
        ("npm install", root.join("node_modules/@playwright/test").is_dir()),
    ];
    needs.into_iter().filter(|(_, is_here)| !is_here).map(|(name, _)| name).collect()
}

#[test]
fn the_embed_works_in_a_browser() {
    run(&["--project=works", "--project=looks"]);
}

#[test]
#[ignore = "times are measured when nothing else runs"]
fn budgets_hold_in_a_browser() {
    run(&["--project=budget"]);
}

/// Runs projects of the browser tests.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn run(projects: &[&str]) {
    let root = Path::new("../..").canonicalize().expect("the project is there");
    let missing = missing(&root);
    if !missing.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "CI has a browser; missing: {missing:?}");
        eprintln!("skipped: the browser tests need {}", missing.join(", "));
        return;
    }
    let browser = find(&["chromium", "chromium-browser", "google-chrome"]).unwrap_or_default();
    let shell = find(&["chromium-headless-shell"]).unwrap_or_else(|| browser.clone());
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let status = Command::new(root.join("node_modules/.bin/playwright"))
        .args(["test", "--config", "tests/browser/playwright.config.js"])
        .args(projects)
        .env("TEST_INLAY", env!("CARGO_BIN_EXE_inlay"))
        .env("TEST_CHROMIUM", browser)
        .env("TEST_HEADLESS_SHELL", shell)
        .env("TEST_OUTPUT", output)
        .current_dir(&root)
        .status()
        .expect("the browser tests start");
    assert!(status.success(), "browser tests failed");
}
