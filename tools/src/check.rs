//! `cargo tool check`: every check, in order, stopping at the first that fails.
//!
//! `== seconds: fmt 1, tidy 2, …` at the end says what each took.
//!
//! ```text
//! in order     fmt, tidy, gen, clippy, test build, test, rigs, sabotage, dist, web, …, typos, budgets
//! beside them  build (from gen on), which rigs wait for; then quiet rigs, which budgets wait for
//!
//! == fmt
//! == tidy
//! == gen
//! == build                                     starts; the next one does not wait for it
//! == clippy
//! error: …
//! == seconds: fmt 1, tidy 2, gen 3             after the steps of the background were asked to end
//! clippy failed                                exit code 1
//!
//! deny: skipped, it is not installed here      on a developer's machine; with CI set it fails instead
//! ```
//!
//! Where cargo compiles our crates by `.ci/checked_rustc.py`, as CI does, the test build has clippy's lints and writes
//! the documentation: both steps fall away, and benches are built too, so that they are linted.

use std::{
    path::Path,
    process::Command,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

/// A check: its name, the command, and how it is run. [`BINARY`] in a command stands for the path of the server.
struct CheckStep {
    name: &'static str,
    command: &'static [&'static str],
    /// Whether the program may be missing on a developer's machine.
    optional: bool,
    /// Whether the steps after it start at once. Its result is looked at after the last one.
    background: bool,
    /// A step of the background that must have passed before this one starts; one of the background waits for it there.
    needs: Option<&'static str>,
}

/// A check that runs alone, and without which nothing passes.
const fn step(name: &'static str, command: &'static [&'static str]) -> CheckStep {
    CheckStep { name, command, optional: false, background: false, needs: None }
}

/// The same, skipped on a machine that has not its program.
const fn optional(name: &'static str, command: &'static [&'static str]) -> CheckStep {
    CheckStep { optional: true, ..step(name, command) }
}

/// Set to the program in whose place cargo calls the compiler for crates of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";
const CHECKED_RUSTC: &str = "checked_rustc";

/// Whether the build lints and documents what it compiles.
fn build_checks() -> bool {
    std::env::var_os(WRAPPER).is_some_and(|path| path.to_string_lossy().contains(CHECKED_RUSTC))
}

/// All checks in their order: the quick ones that fail often come first.
const STEPS: [CheckStep; 19] = [
    step("fmt", &["cargo", "fmt", "--all", "--check"]),
    step("tidy", &["cargo", "tool", "tidy"]),
    step("gen", &["cargo", "tool", "gen", "--check"]),
    // The rigs are about what is shipped, and time matters in them. Built beside clippy and the tests: each of these
    // ends with one large crate that only one core works on. To compile calls between crates together takes eight minutes, and
    // changes no answer.
    CheckStep { background: true, ..step(RELEASE, &QUICK_RELEASE) },
    step(CLIPPY, &LINT),
    step(TEST_BUILD, &["cargo", "test", "--workspace", "--no-run"]),
    // Asleep most of the time, and without a limit on it: beside everything that follows.
    CheckStep { background: true, needs: Some(RELEASE), ..optional(QUIET, &QUIET_RIGS) },
    step("test", &["cargo", "test", "--workspace"]),
    CheckStep { needs: Some(RELEASE), ..optional("rigs", &RIGS) },
    // Rigs must fail when the ledger is spoiled: one that cannot shows nothing. Those that take longest are left
    // out: `power` has its own control, and the others compare the same ledger.
    optional("sabotage", &SABOTAGE),
    step("dist", &["cargo", "tool", "dist", "--binary", BINARY]),
    optional("web", &["npm", "run", "--silent", "unit"]),
    optional("format", &["npm", "run", "--silent", "format:check"]),
    optional("types", &["npm", "run", "--silent", "types"]),
    optional("bundle", &["npm", "run", "--silent", "build:check"]),
    step(DOC, &["cargo", "doc", "--workspace", "--no-deps", "--document-private-items"]),
    optional("deny", &DENY),
    optional("typos", &["typos"]),
    // When nothing else runs: beside other tests times are theirs.
    CheckStep { needs: Some(QUIET), ..step("budgets", &BUDGETS) },
];

/// The binary of the rigs.
const QUICK_RELEASE: [&str; 7] =
    ["cargo", "build", "--release", "-p", "inlay", "--config", "profile.release.lto=\"off\""];

/// The step that builds the binary of the rigs.
const RELEASE: &str = "build";

/// The step of the rigs that others run beside.
const QUIET: &str = "quiet rigs";

const CLIPPY: &str = "clippy";
const TEST_BUILD: &str = "test build";
const DOC: &str = "doc";

/// Bounds of bytes and times of pages in a browser: tests that are ignored unless they are asked for.
const BUDGETS: [&str; 7] = ["cargo", "test", "--workspace", "--test", "browser", "--", "--ignored"];

const QUIET_RIGS: [&str; 9] =
    ["python3", "tests/rigs/all.py", BINARY, "--at-once", "1", "--only", "soak", "power", "rules"];

const RIGS: [&str; 7] =
    ["python3", "tests/rigs/all.py", BINARY, "--except", "soak", "power", "rules"];

const DENY: [&str; 8] =
    ["cargo", "deny", "--log-level", "error", "check", "bans", "licenses", "sources"];

/// With the targets of the fuzzer, which are else built for the tests of the engine only.
const LINT: [&str; 9] = [
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

/// How a step of the background ended, once it has.
#[derive(Default)]
struct Outcome {
    passed: Mutex<Option<bool>>,
    ended: Condvar,
}

impl Outcome {
    /// Records the end of the step, and wakes all that wait for it.
    fn set(&self, passed: bool) {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(passed);
        self.ended.notify_all();
    }

    /// Waits for the end; whether the step passed.
    fn wait(&self) -> bool {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *passed {
                Some(passed) => return passed,
                None => passed = self.ended.wait(passed).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// A step that others run beside.
struct Running {
    name: &'static str,
    outcome: Arc<Outcome>,
    /// The process, once there is one.
    process: Arc<AtomicU32>,
    thread: JoinHandle<anyhow::Result<Duration>>,
}

impl Running {
    /// Starts a step as soon as the one that it needs has passed.
    fn start(name: &'static str, mut command: Command, needed: Option<Arc<Outcome>>) -> Self {
        let (outcome, process) = (Arc::<Outcome>::default(), Arc::<AtomicU32>::default());
        let (ends, known) = (Arc::clone(&outcome), Arc::clone(&process));
        let thread = thread::spawn(move || {
            let result = match needed.is_none_or(|needed| needed.wait()) {
                true => run_timed(name, &mut command, Some(&known)),
                false => Err(anyhow::anyhow!("{name} was not started")),
            };
            ends.set(result.is_ok());
            result
        });
        Self { name, outcome, process, thread }
    }

    /// Asks the process to end; it ends what it has started, too.
    fn stop(&self) {
        let process = self.process.load(Ordering::Acquire);
        if process != 0 {
            let _ = Command::new("kill").arg(process.to_string()).status();
        }
    }

    /// Waits for the end of the step.
    fn wait(self, times: &mut Vec<(&'static str, Duration)>) -> anyhow::Result<()> {
        let ended = self.thread.join().map_err(|_| anyhow::anyhow!("{} panicked", self.name))?;
        times.push((self.name, ended?));
        Ok(())
    }
}

/// Runs a command to its end; how long it took, or that it failed.
fn run_timed(
    name: &'static str,
    command: &mut Command,
    process: Option<&AtomicU32>,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{name}: cannot be run"))?;
    if let Some(process) = process {
        process.store(child.id(), Ordering::Release);
    }
    let status = child.wait()?;
    if let Some(process) = process {
        process.store(0, Ordering::Release);
    }
    if !status.success() {
        bail!("{name} failed");
    }
    Ok(started.elapsed())
}

/// Runs all checks and says how long each took. Where `CI` is set, a tool that is missing is a failure.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub fn run(root: &Path) -> anyhow::Result<()> {
    let (mut times, mut running) = (Vec::new(), Vec::new());
    let mut checked = run_steps(root, &mut times, &mut running);
    for step in running {
        if checked.is_err() {
            step.stop();
        }
        let passed = step.wait(&mut times);
        checked = checked.and(passed);
    }
    let times = times.iter().map(|(name, time)| format!("{name} {}", time.as_secs()));
    println!("== seconds: {}", times.collect::<Vec<_>>().join(", "));
    checked?;
    println!("== all checks passed");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn run_steps(
    root: &Path,
    times: &mut Vec<(&'static str, Duration)>,
    running: &mut Vec<Running>,
) -> anyhow::Result<()> {
    let in_ci = std::env::var_os("CI").is_some();
    let build_checks = build_checks();
    for CheckStep { name, command, optional, background, needs } in &STEPS {
        let needed = running.iter().find(|running| Some(running.name) == *needs);
        let needed = needed.map(|running| Arc::clone(&running.outcome));
        if build_checks && [CLIPPY, DOC].contains(name) {
            continue;
        }
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
        if *name == TEST_BUILD && build_checks {
            run.arg("--all-targets");
        }
        if *name == RELEASE {
            // What is shipped comes from the compiler itself.
            run.env_remove(WRAPPER);
        }
        if *name == DOC {
            run.env("RUSTDOCFLAGS", "-D warnings");
        }
        if *name == "test" {
            // Many tests wait for a process, a sync or a time limit: a fifth less time with two for each core.
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            run.env("RUST_TEST_THREADS", (2 * cores).to_string());
        }
        if *background {
            running.push(Running::start(name, run, needed));
            continue;
        }
        if needed.is_some_and(|needed| !needed.wait()) {
            bail!("{name} was not started");
        }
        times.push((*name, run_timed(name, &mut run, None)?));
    }
    Ok(())
}

/// Whether a program answers to `--version`; of cargo, whether the subcommand does.
fn is_installed(program: &str, arguments: &[&str]) -> bool {
    let mut ask = Command::new(program);
    if program == "cargo" {
        ask.args(arguments.first());
    }
    ask.arg("--version").output().is_ok_and(|output| output.status.success())
}
