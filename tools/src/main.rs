//! `cargo tool`: the checks of this workspace, the same for everyone and for CI.
//!
//! `check` runs all of them in order; `tidy` reads the floors and the features of dependencies; `gen` writes
//! generated code; `dist` packs the binary with what belongs to it.
//!
//! ```text
//! $ cargo tool tidy
//! server/src/store/keys.rs:9: store uses app, which is not on a lower floor
//! 1 lines break the rules
//! $ echo $?
//! 1
//! $ cargo tool gen --check                     silent, exit code 0: the generated code is current
//! $ cargo tool nonsense                        the usage, exit code 1
//! ```
//!
//! `cargo tool` is an alias in `.cargo/config.toml`: it runs this program from the source, so a check is never older than the tree.

mod check;
mod features;
mod generate;
mod licenses;
mod tidy;

mod dist;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;

/// Printed by `help`, and as the error of words that are no command.
const USAGE: &str = "usage: cargo tool COMMAND

  check                  every check of this repository, as CI runs it
  tidy                   floors of modules, calls between subjects, comments, READMEs, features of dependencies
  gen [--check]          writes generated code; with --check, says whether it is current
  dist [--binary PATH]   packs the release binary with manual, completions, unit and licences

  cargo bench -p inlay-bench                      kernels, ingest and queries
  UPDATE=1 cargo test -p inlay-tests -- contract  writes server/doc/openapi.json
  npm run build | unit | types | api              web files, their tests, types, and the types of the API";

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = root().and_then(|root| match words[..] {
        [] | ["help" | "--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        ["check"] => check::run(&root),
        ["tidy"] => tidy::run(&root).and_then(|()| features::run(&root)),
        ["gen"] => generate::run(&root, false),
        ["gen", "--check"] => generate::run(&root, true),
        ["dist"] => dist::run(&root, None),
        ["dist", "--binary", binary] => dist::run(&root, Some(Path::new(binary))),
        _ => anyhow::bail!(USAGE),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace: the one above this crate. Read when the tool runs: the binary may have been built in
/// another clone with the same files.
fn root() -> anyhow::Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run it with `cargo tool`")?;
    PathBuf::from(here).parent().map(PathBuf::from).context("this crate stands inside a workspace")
}
