//! The floors: a module uses only modules of the groups above it.
//!
//! In `lib.rs`, and in any `mod.rs` with children, module lines stand in groups parted by blank
//! lines, lowest floor first. This reads the groups and every `crate::` and `super::` path of the
//! files below, and names each line that reaches sideways or up. Tests are exempt.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

const CRATES: [&str; 4] = ["engine", "server", "sql", "sql/protocol"];
/// Lines of a source file, at most; beyond it there is a second noun inside.
const LINES_MAX: usize = 700;

/// Checks all crates; the error lists every line that breaks a rule.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for name in CRATES {
        let source = root.join(name).join("src");
        let mut modules = Modules::default();
        modules.read(&source, &source.join("lib.rs"), &[])?;
        for (path, file) in &modules.files {
            check_file(&modules, path, file, root, &mut found)?;
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}\n{} lines break the floors", found.join("\n"), found.len())
}

type ModulePath = Vec<String>;

#[derive(Default)]
struct Modules {
    /// File of each module.
    files: BTreeMap<ModulePath, PathBuf>,
    /// Group of each module among its siblings, rising from the lowest floor.
    floors: BTreeMap<ModulePath, usize>,
}

impl Modules {
    fn read(&mut self, directory: &Path, file: &Path, path: &[String]) -> anyhow::Result<()> {
        self.files.insert(path.to_vec(), file.to_owned());
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let mut floor = 0;
        let mut in_group = false;
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
            self.read(&below, &file, &child)?;
        }
        Ok(())
    }
}

fn module_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod "))?;
    rest.strip_suffix(';')
}

fn check_file(
    modules: &Modules,
    path: &[String],
    file: &Path,
    root: &Path,
    found: &mut Vec<String>,
) -> anyhow::Result<()> {
    let text = fs::read_to_string(file)?;
    let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        found.push(format!("{shown}: has {lines} lines, more than {LINES_MAX}"));
    }
    if !text.starts_with("//!") {
        found.push(format!("{shown}:1: does not open with its story"));
    }
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    for (number, used) in used_paths(code, path) {
        if let Some(problem) = breaks_floors(modules, path, &used) {
            found.push(format!("{shown}:{number}: {problem}"));
        }
    }
    Ok(())
}

/// Module paths that `use` lines and inline paths name, with their line numbers. Braces are
/// followed one level deep, as rustfmt writes them.
fn used_paths(code: &str, path: &[String]) -> Vec<(usize, ModulePath)> {
    let mut out = Vec::new();
    for (start, base) in code
        .match_indices("crate::")
        .map(|(at, _)| (at + "crate::".len(), Vec::new()))
        .chain(code.match_indices("super::").map(|(at, _)| {
            let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
            (at + "super::".len(), parent.to_vec())
        }))
    {
        let number = code[..start].lines().count();
        if code[..start].lines().last().is_some_and(|line| line.trim_start().starts_with("//")) {
            continue;
        }
        for names in names_after(&code[start..]) {
            out.push((number, base.iter().cloned().chain(names).collect()));
        }
    }
    out
}

fn names_after(text: &str) -> Vec<Vec<String>> {
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    if let Some(inside) = text.strip_prefix('{') {
        let mut depth = 0;
        let mut item = String::new();
        let mut items = Vec::new();
        for char in inside.chars() {
            match char {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => items.push(std::mem::take(&mut item)),
                _ => {}
            }
            item.push(char);
        }
        items.push(item);
        return items
            .iter()
            .flat_map(|item| names_after(item.trim_start_matches([',', ' ', '\n'])))
            .collect();
    }
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(|char| !is_name(char)).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        names.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(next) => rest = next,
            None => break,
        }
    }
    if names.is_empty() { Vec::new() } else { vec![names] }
}

/// Where the two paths part, the used module must stand on a lower floor.
fn breaks_floors(modules: &Modules, from: &[String], used: &[String]) -> Option<String> {
    let shared = from.iter().zip(used).take_while(|(a, b)| a == b).count();
    let (mine, theirs) = (from.get(..=shared)?, used.get(..=shared)?);
    let (mine_floor, their_floor) = (modules.floors.get(mine)?, modules.floors.get(theirs)?);
    (their_floor >= mine_floor).then(|| {
        format!("{} uses {}, which is not on a lower floor", mine.join("::"), theirs.join("::"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_uses_and_code() {
        let code = "use crate::{\n    a::B,\n    c::{D, e::F},\n};\nfn f() { super::g::h(); }\n// crate::no\n";
        let path = ["x".to_owned(), "y".to_owned()];
        let used: Vec<String> =
            used_paths(code, &path).iter().map(|(_, names)| names.join("/")).collect();
        assert_eq!(used, ["a/B", "c", "x/g/h"]);
    }

    #[test]
    fn a_step_sideways_is_found() {
        let mut modules = Modules::default();
        for (name, floor) in [("low", 0), ("left", 1), ("right", 1)] {
            modules.floors.insert(vec![name.to_owned()], floor);
        }
        let uses = |from: &str, used: &str| {
            breaks_floors(&modules, &[from.to_owned()], &[used.to_owned()]).is_some()
        };
        assert!(uses("left", "right") && uses("low", "left"));
        assert!(!uses("right", "low"));
    }
}
