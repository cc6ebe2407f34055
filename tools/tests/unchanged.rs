//! `.ci/unchanged.py`, with cargo itself: of two packages those are built that must be, in clones whose files all have
//! the time at which the clone was made.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "workspaces are made and changed as anybody would")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const FILES: [(&str, &str); 6] = [
    (".clippy.toml", "too-many-arguments-threshold = 9\n"),
    ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"one\", \"two\"]\n"),
    ("one/Cargo.toml", "[package]\nname = \"inlay-one\"\nedition = \"2024\"\n"),
    ("one/src/lib.rs", "pub const ONE: u32 = 1;\n"),
    ("two/Cargo.toml", "[package]\nname = \"inlay-two\"\nedition = \"2024\"\n"),
    ("two/src/lib.rs", "pub const TWO: u32 = 2;\n"),
];
const BOTH: [&str; 2] = ["inlay_one", "inlay_two"];

/// One target directory, and clones that are built in it one after the other.
struct Builds {
    directory: tempfile::TempDir,
    runs: u32,
    /// The program that cargo calls in place of the compiler.
    wrapper: Option<PathBuf>,
}

impl Builds {
    /// None where Python is missing, which CI has.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn new() -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "CI has Python");
            eprintln!("skipped: the times of files are set by a script in Python");
            return None;
        }
        Some(Self { directory: tempfile::tempdir().unwrap(), runs: 0, wrapper: None })
    }

    fn target(&self) -> PathBuf {
        self.directory.path().join("target")
    }

    /// A clone with some files changed or added.
    fn clone_with(&mut self, changes: &[(&str, &str)]) -> PathBuf {
        self.runs += 1;
        let root = self.directory.path().join(self.runs.to_string());
        for (path, text) in FILES.iter().chain(changes) {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        root
    }

    fn unchanged(&self, command: &str, root: &Path) {
        let script = Path::new("../.ci/unchanged.py");
        let mut python = Command::new("python3");
        python.arg(script).arg(command).arg(root).arg(self.target());
        assert!(python.output().unwrap().status.success());
    }

    /// The crates that cargo compiles.
    fn build(&self, root: &Path) -> Vec<String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--offline", "--message-format", "json"])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", self.target());
        if let Some(wrapper) = &self.wrapper {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
        }
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let messages = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        let built = messages.filter(|message: &serde_json::Value| message["fresh"] == false);
        let mut names: Vec<String> =
            built.map(|message| message["target"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// A whole run in a new clone, as `.ci/run` does it. No file of it is there for the next one.
    fn run(&mut self, changes: &[(&str, &str)]) -> Vec<String> {
        let root = self.clone_with(changes);
        self.unchanged("begin", &root);
        let built = self.build(&root);
        self.unchanged("end", &root);
        fs::remove_dir_all(&root).unwrap();
        built
    }
}

#[test]
fn a_package_is_built_anew_when_its_files_are_others() {
    let Some(mut builds) = Builds::new() else { return };
    assert_eq!(builds.run(&[]), BOTH);
    assert!(builds.run(&[]).is_empty());
    let other = [("one/src/lib.rs", "pub const ONE: u32 = 3;\n")];
    assert_eq!(builds.run(&other), ["inlay_one"]);
    assert!(builds.run(&other).is_empty());
    assert_eq!(builds.run(&[]), ["inlay_one"], "the older content is other content");
    assert_eq!(builds.run(&[("two/web/new.js", "")]), ["inlay_two"], "a folder may be embedded");
    assert_eq!(builds.run(&[]), ["inlay_two"], "and a file may be gone");
    assert!(builds.run(&[]).is_empty());
}

#[test]
fn nothing_is_taken_from_a_directory_where_others_have_built() {
    let Some(mut builds) = Builds::new() else { return };
    builds.run(&[]);
    let other = builds.clone_with(&[("one/src/lib.rs", "pub const ONE: u32 = 4;\n")]);
    builds.build(&other);
    assert_eq!(builds.run(&[]), BOTH);
    assert!(builds.run(&[]).is_empty());
}

#[test]
fn a_run_that_was_killed_leaves_nothing_to_rely_on() {
    let Some(mut builds) = Builds::new() else { return };
    builds.run(&[]);
    let killed = builds.clone_with(&[("one/src/lib.rs", "pub const ONE: u32 = 5;\n")]);
    builds.unchanged("begin", &killed);
    builds.build(&killed);
    assert_eq!(builds.run(&[]), BOTH);
    assert!(builds.run(&[]).is_empty());
}

#[test]
fn a_file_that_changes_during_a_run_is_built_anew() {
    let Some(mut builds) = Builds::new() else { return };
    builds.run(&[]);
    let root = builds.clone_with(&[]);
    builds.unchanged("begin", &root);
    fs::write(root.join("one/src/lib.rs"), "pub const ONE: u32 = 6;\n").unwrap();
    builds.build(&root);
    builds.unchanged("end", &root);
    assert_eq!(builds.run(&[]), ["inlay_one"]);
}

#[test]
fn the_manifest_of_the_workspace_is_everybodys() {
    let Some(mut builds) = Builds::new() else { return };
    builds.run(&[]);
    let manifest =
        [("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"one\", \"two\"]\n\n")];
    assert_eq!(builds.run(&manifest), BOTH);
}

#[test]
fn settings_of_a_clone_that_is_gone_are_not_missed() {
    let Some(mut builds) = Builds::new() else { return };
    if Command::new("clippy-driver").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI has clippy");
        return;
    }
    builds.wrapper = Some(Path::new("../.ci/checked_rustc.py").canonicalize().unwrap());
    let documented = [
        ("one/src/lib.rs", "//! One.\n\n/// One.\npub const ONE: u32 = 1;\n"),
        ("two/src/lib.rs", "//! Two.\n\n/// Two.\npub const TWO: u32 = 2;\n"),
    ];
    assert_eq!(builds.run(&documented), BOTH);
    assert!(builds.run(&documented).is_empty());
    let settings = (".clippy.toml", "too-many-arguments-threshold = 8\n");
    assert_eq!(builds.run(&[documented[0], documented[1], settings]), BOTH);
}
