//! `cargo tool check`: every check, in order, stopping at the first that fails.

use std::{path::Path, process::Command};

use anyhow::{Context as _, bail};

/// A check: its name, the command, and whether it may be missing on a developer's machine.
struct Step {
    name: &'static str,
    command: &'static [&'static str],
    optional: bool,
}

const fn step(name: &'static str, command: &'static [&'static str]) -> Step {
    Step { name, command, optional: false }
}

const STEPS: [Step; 14] = [
    step("fmt", &["cargo", "fmt", "--all", "--check"]),
    step("clippy", &CLIPPY),
    step("tidy", &["cargo", "tool", "tidy"]),
    step("gen", &["cargo", "tool", "gen", "--check"]),
    step("test", &["cargo", "test", "--workspace"]),
    // The rigs are about what is shipped, and time matters in them.
    step("build", &["cargo", "build", "--release", "-p", "inlay-server"]),
    Step { name: "rigs", command: &["python3", "tests/rigs/all.py", BINARY], optional: true },
    // Rigs must fail when the ledger is spoiled: one that cannot shows nothing. Those that take longest are left
    // out: `power` has its own control, and the others compare the same ledger.
    Step { name: "sabotage", command: &SABOTAGE, optional: true },
    Step { name: "web", command: &["npm", "run", "--silent", "unit"], optional: true },
    Step { name: "types", command: &["npm", "run", "--silent", "types"], optional: true },
    Step { name: "bundle", command: &["npm", "run", "--silent", "build:check"], optional: true },
    step("doc", &["cargo", "doc", "--workspace", "--no-deps", "--document-private-items"]),
    Step {
        name: "deny",
        command: &["cargo", "deny", "--log-level", "error", "check", "bans", "licenses", "sources"],
        optional: true,
    },
    Step { name: "typos", command: &["typos"], optional: true },
];

/// With the targets of the fuzzer, which nothing else builds.
const CLIPPY: [&str; 9] = [
    "cargo",
    "clippy",
    "--workspace",
    "--all-targets",
    "--features",
    "inlay-engine/fuzz",
    "--",
    "-D",
    "warnings",
];

const SABOTAGE: [&str; 13] = [
    "python3",
    "tests/rigs/all.py",
    BINARY,
    "--sabotage",
    "lose",
    "--only",
    "kill",
    "stop",
    "full",
    "flips",
    "clock",
    "retention",
    "descriptors",
];

/// Stands for the path of the server's binary.
const BINARY: &str = "{inlay}";

/// Where cargo puts the binary that tests use.
fn binary(root: &Path) -> std::ffi::OsString {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    target.join("release").join("inlay").into_os_string()
}

/// Runs all checks. Where `CI` is set, a tool that is missing is a failure.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub fn run(root: &Path) -> anyhow::Result<()> {
    let in_ci = std::env::var_os("CI").is_some();
    for Step { name, command, optional } in &STEPS {
        println!("== {name}");
        let (program, arguments) = command.split_first().context("a check has a command")?;
        if *optional && !in_ci && !is_installed(program, arguments) {
            println!("{name}: skipped, it is not installed here");
            continue;
        }
        let mut run = Command::new(program);
        for argument in arguments {
            match *argument {
                BINARY => run.arg(binary(root)),
                argument => run.arg(argument),
            };
        }
        run.current_dir(root);
        if *name == "doc" {
            run.env("RUSTDOCFLAGS", "-D warnings");
        }
        if !run.status().with_context(|| format!("{name}: cannot run {program}"))?.success() {
            bail!("{name} failed");
        }
    }
    println!("== all checks passed");
    Ok(())
}

fn is_installed(program: &str, arguments: &[&str]) -> bool {
    let mut ask = Command::new(program);
    if program == "cargo" {
        ask.args(arguments.first());
    }
    ask.arg("--version").output().is_ok_and(|output| output.status.success())
}
