//! Licences of everything that the binary is made of.
//!
//! `THIRD-PARTY-LICENSES.txt` of the archive: each crate that is compiled into the server with its
//! licence expression, then the licence texts that these crates carry, each text once with the crates that
//! it belongs to; then those of the web libraries and fonts that are inside the binary.
//!
//! ```text
//! Inlay contains the following software of others.
//!
//! serde 1.0.229: MIT OR Apache-2.0
//! tokio 1.54.1: MIT
//! some-crate 1.0.0: MIT (its package holds no licence text)
//! …
//! The standard library of Rust: MIT OR Apache-2.0
//! preact.txt: a file inside the binary
//!
//! ================================================================================
//! serde 1.0.229, serde_core 1.0.229, …
//! --------------------------------------------------------------------------------
//! Copyright (c) …
//! ```
//!
//! A crate without a licence expression ends it: `some-crate 1.0.0 names no licence`. Crates of tests and tools are not in the binary and
//! not in the file.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool of the workspace reads and writes its files"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// How names of files with a licence begin, in capitals: `LICENSE-MIT` and `license.md` are such.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Licences of files that are embedded in the binary and are no crates.
const EMBEDDED: [&str; 2] = ["server/web/vendor/licenses", "server/fonts/OFL.txt"];

/// The JSON of `cargo metadata`: the packages of the workspace and their dependencies.
pub struct Metadata(Value);

/// Asks cargo.
///
/// Errors: when it does not answer, or the lock file does not fit.
pub fn metadata(root: &Path) -> anyhow::Result<Metadata> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &host])
        .current_dir(root)
        .output()
        .context("cargo cannot be run")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(Metadata(serde_json::from_slice(&output.stdout)?))
}

/// A crate that is compiled into the server: `serde 1.0.229`, its licence expression, and where cargo has unpacked it.
struct Package {
    title: String,
    license: String,
    folder: PathBuf,
}

impl Metadata {
    /// The directory in which cargo builds, `target` by default.
    pub fn target_directory(&self) -> anyhow::Result<PathBuf> {
        let path =
            self.0["target_directory"].as_str().context("cargo names no target directory")?;
        Ok(PathBuf::from(path))
    }

    /// The version of a package of the workspace: `0.1.0` of `inlay`. Errors: there is no such package.
    pub fn version(&self, name: &str) -> anyhow::Result<&str> {
        let package = self.packages().find(|package| package["name"] == name);
        package.and_then(|package| package["version"].as_str()).with_context(|| name.to_owned())
    }

    /// All packages, those of the workspace and others.
    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.0["packages"].as_array().into_iter().flatten()
    }

    /// The crates of others that the server depends on when it runs, in the order of their names.
    fn of_server(&self) -> anyhow::Result<Vec<Package>> {
        let ids = self.reached("inlay")?;
        let mut packages = Vec::new();
        let foreign = |package: &&Value| !package["source"].is_null();
        for package in self.packages().filter(foreign) {
            let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
            if ids.contains(package["id"].as_str().unwrap_or_default()) {
                let title = format!("{} {}", text("name"), text("version"));
                let manifest = PathBuf::from(text("manifest_path"));
                let folder = manifest.parent().context("a manifest stands in a folder")?.to_owned();
                ensure!(!text("license").is_empty(), "{title} names no licence");
                packages.push(Package { title, license: text("license"), folder });
            }
        }
        packages.sort_by(|a, b| a.title.cmp(&b.title));
        Ok(packages)
    }

    /// Ids of the packages that one reaches by its normal dependencies.
    fn reached(&self, name: &str) -> anyhow::Result<BTreeSet<&str>> {
        let start = self.packages().find(|package| package["name"] == name);
        let start = start.and_then(|package| package["id"].as_str()).context("no such package")?;
        let nodes: BTreeMap<&str, &Value> = self.0["resolve"]["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|node| Some((node["id"].as_str()?, node)))
            .collect();
        let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                let node = nodes.get(id).with_context(|| format!("{id} is not resolved"))?;
                open.extend(normal_dependencies(node));
            }
        }
        Ok(reached)
    }
}

/// Packages that one depends on when it runs: neither those of its tests nor those of its build script.
fn normal_dependencies(node: &Value) -> impl Iterator<Item = &str> {
    let is_normal = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_normal).filter_map(|dependency| dependency["pkg"].as_str())
}

/// The text of `THIRD-PARTY-LICENSES.txt`.
///
/// Errors: for a crate without a licence, and for files that cannot be read.
pub fn third_party(root: &Path, metadata: &Metadata) -> anyhow::Result<String> {
    let packages = metadata.of_server()?;
    ensure!(packages.len() > 100, "cargo knows only {} crates", packages.len());
    let mut out = String::from("Inlay contains the following software of others.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Package { title, license, folder } in &packages {
        let found = texts_in(folder)?;
        let note = if found.is_empty() { " (its package holds no licence text)" } else { "" };
        out.push_str(&format!("{title}: {license}{note}\n"));
        for text in found {
            texts.entry(text).or_default().push(title.clone());
        }
    }
    out.push_str("The standard library of Rust: MIT OR Apache-2.0\n");
    for path in EMBEDDED {
        for (name, text) in embedded(&root.join(path))? {
            out.push_str(&format!("{name}: a file inside the binary\n"));
            texts.entry(text).or_default().push(name);
        }
    }
    for (text, titles) in texts {
        out.push_str(&format!(
            "\n{:=<80}\n{}\n{:-<80}\n{}\n",
            "",
            titles.join(", "),
            "",
            text.trim()
        ));
    }
    Ok(out)
}

/// Texts of the licence files of a package, in the order of their names. C code stands one folder below.
fn texts_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut folders = vec![folder.to_owned()];
    for entry in sorted(folder)? {
        if entry.is_dir() {
            folders.push(entry);
        }
    }
    for folder in folders {
        for path in sorted(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            if path.is_file() && NAMES.iter().any(|known| name.starts_with(known)) {
                let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    texts.dedup();
    Ok(texts)
}

/// The licence files at a path, a file or a folder of them, with their names.
fn embedded(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let files = if path.is_dir() { sorted(path)? } else { vec![path.to_owned()] };
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok((file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text))
    };
    files.into_iter().map(read).collect()
}

/// Entries of a folder, by name: the text is the same on every machine.
fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_the_server_have_licences_and_those_of_tests_are_not_named() {
        let root = Path::new("..");
        let text = third_party(root, &metadata(root).unwrap()).unwrap();
        let lists = |name: &str| text.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(lists("datafusion-sql") && lists("aws-lc-sys") && lists("serde"));
        assert!(!lists("criterion") && !lists("proptest") && !lists("inlay-engine"));
        assert!(text.contains("SIL OPEN FONT LICENSE") && text.contains("preact.txt"));
    }
}
