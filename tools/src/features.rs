//! Both commands of the README build each crate of others in the same way.
//!
//! Cargo gives a crate the features that everybody in the build asks for. Where a test asks for one more (say
//! `test-util` of tokio), `cargo test --workspace` builds that crate and all that depend on it a second time,
//! and everyone who tries both commands waits for minutes. The fix is to ask for the feature in
//! `[workspace.dependencies]`.
//!
//! ```text
//! cargo tree of inlay            tokio v1.54.1|net,rt,time
//! cargo tree of the workspace    tokio v1.54.1|net,rt,test-util,time       the same crate, built again for the tests
//!
//! error: `cargo test --workspace` would build these again, with other features than `cargo run`:
//! tokio v1.54.1|net,rt,time
//! ```

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::{Context as _, bail, ensure};

/// Checks the features of the binary's crates against those of the whole workspace. Crates that only tests use do not matter.
///
/// Errors: when features differ, cargo fails, or it lists so few crates that the check would be of nothing.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let of_binary = built(root, &["--package", "inlay", "--edges", "normal,build"])?;
    let of_workspace = built(root, &["--workspace", "--edges", "normal,build,dev"])?;
    ensure!(of_binary.len() > 100, "cargo knows only {} crates", of_binary.len());
    let differing = differing(&of_binary, &of_workspace);
    if differing.is_empty() {
        return Ok(());
    }
    bail!(
        "`cargo test --workspace` would build these again, with other features than `cargo run`:\n{}",
        differing.join("\n")
    )
}

/// Crates with their versions and features, as `name v1.0.0|a,b`; `arguments` say of which packages and by which edges.
fn built(root: &Path, arguments: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let output = Command::new("cargo")
        .args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"])
        .args(arguments)
        .current_dir(root)
        .output()
        .context("cargo cannot be run")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(without_notes).collect())
}

/// A line without what cargo adds to it: `(*)` for a repetition, `(proc-macro)`.
fn without_notes(line: &str) -> String {
    line.replace(" (*)", "").replace(" (proc-macro)", "")
}

/// Lines of the binary that the workspace does not have: crates with another set of features there.
fn differing(of_binary: &BTreeSet<String>, of_workspace: &BTreeSet<String>) -> Vec<String> {
    of_binary.difference(of_workspace).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_another_feature_is_named() {
        let lines = |lines: &[&str]| -> BTreeSet<String> {
            lines.iter().map(|line| without_notes(line)).collect()
        };
        let of_binary = lines(&["a v1.0.0|std", "b v2.0.0 (proc-macro)|", "c v1.0.0|x (*)"]);
        let of_workspace =
            lines(&["a v1.0.0|std", "b v2.0.0|", "c v1.0.0|test-util,x", "only-tests v1.0.0|"]);
        assert_eq!(differing(&of_binary, &of_workspace), ["c v1.0.0|x"]);
        assert!(differing(&of_workspace, &of_workspace).is_empty());
    }
}
