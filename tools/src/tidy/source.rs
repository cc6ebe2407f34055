//! The source files of our crates, each with its module path and the floor of each module.
//!
//! In `lib.rs` or `main.rs`, and in any `mod.rs` with children, module lines stand in groups parted by blank
//! lines, lowest floor first:
//!
//! ```text
//! mod error;        floor 0
//!
//! mod store;        floor 1
//!
//! mod app;          floor 2
//! ```

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Root files of our crates.
const ROOTS: [&str; 11] = [
    "bench/src/lib.rs",
    "engine/src/lib.rs",
    "proto/src/lib.rs",
    "server/cluster/src/lib.rs",
    "server/inlay/src/main.rs",
    "server/sql/protocol/src/lib.rs",
    "server/sql/src/lib.rs",
    "server/src/lib.rs",
    "tests/src/lib.rs",
    "tools/src/inspect/main.rs",
    "tools/src/main.rs",
];

/// Names from the root of a crate: `["app", "embed", "views"]`.
pub type ModulePath = Vec<String>;

/// A crate: its modules.
#[derive(Default)]
pub struct Crate {
    /// Each module with its file.
    pub files: BTreeMap<ModulePath, SourceFile>,
    /// Group of each module among its siblings, rising from the lowest floor.
    pub floors: BTreeMap<ModulePath, usize>,
}

/// A source file of one module.
pub struct SourceFile {
    /// Its path below the root of the workspace.
    pub shown: String,
    /// The whole text, with the tests.
    pub text: String,
}

impl SourceFile {
    /// The text before the tests of the module.
    pub fn code(&self) -> &str {
        self.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default()
    }
}

/// Reads the crates of the workspace, from the root file of each along its module lines. Errors: a file cannot be read.
pub fn read_crates(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let read = |name: &&str| {
        let file = root.join(name);
        let mut modules = Crate::default();
        let directory = file.parent().unwrap_or(root).to_owned();
        modules.read(root, &directory, &file, &[])?;
        Ok(modules)
    };
    ROOTS.iter().map(read).collect()
}

impl Crate {
    fn read(
        &mut self,
        root: &Path,
        directory: &Path,
        file: &Path,
        path: &[String],
    ) -> anyhow::Result<()> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let mut floor = 0;
        let mut in_group = false;
        let mut children: Vec<(ModulePath, PathBuf, PathBuf)> = Vec::new();
        for line in text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")) {
            if line.trim().is_empty() && in_group {
                floor += 1;
                in_group = false;
            }
            let Some(name) = module_name(line) else { continue };
            in_group = true;
            let child: ModulePath = path.iter().cloned().chain([name.to_owned()]).collect();
            self.floors.insert(child.clone(), floor);
            let below = directory.join(name);
            let file = directory.join(format!("{name}.rs"));
            let file = if file.exists() { file } else { below.join("mod.rs") };
            children.push((child, below, file));
        }
        self.files.insert(path.to_vec(), SourceFile { shown, text });
        for (child, below, file) in children {
            // Code that a build script writes has no rules.
            if file.exists() {
                self.read(root, &below, &file, &child)?;
            }
        }
        Ok(())
    }

    /// Whether code of one module may use another: where their paths part, the used one must be on a lower floor.
    /// The modules that meet there, if not.
    pub fn breaks_floors<'a>(
        &self,
        from: &'a [String],
        used: &'a [String],
    ) -> Option<(&'a [String], &'a [String])> {
        let shared = from.iter().zip(used).take_while(|(a, b)| a == b).count();
        let (mine, theirs) = (from.get(..=shared)?, used.get(..=shared)?);
        let (mine_floor, their_floor) = (self.floors.get(mine)?, self.floors.get(theirs)?);
        (their_floor >= mine_floor).then_some((mine, theirs))
    }
}

/// The name that a line declares: `store` of `pub mod store;`, nothing of any other line.
fn module_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod "))?;
    rest.strip_suffix(';')
}
