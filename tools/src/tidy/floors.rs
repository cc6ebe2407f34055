//! The floors: a module uses only modules of the groups above it.
//!
//! This reads every `crate::` and `super::` path, and names each line that reaches sideways or up:
//!
//! ```text
//! server/src/store/keys.rs:9: store uses app, which is not on a lower floor
//! ```
//!
//! Tests are exempt.

use super::source::{Crate, ModulePath, SourceFile};

/// Lines of a source file, at most; beyond it there is a second noun inside.
const LINES_MAX: usize = 700;

/// Adds what breaks the floors.
pub fn check(crates: &[Crate], found: &mut Vec<String>) {
    for modules in crates {
        for (path, file) in &modules.files {
            check_file(modules, path, file, found);
        }
    }
}

fn check_file(modules: &Crate, path: &[String], file: &SourceFile, found: &mut Vec<String>) {
    let shown = &file.shown;
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        found.push(format!("{shown}: has {lines} lines, more than {LINES_MAX}"));
    }
    if !file.text.starts_with("//!") {
        found.push(format!("{shown}:1: does not open with its story"));
    }
    for (number, used) in used_paths(file.code(), path) {
        if let Some((mine, theirs)) = modules.breaks_floors(path, &used) {
            let (mine, theirs) = (mine.join("::"), theirs.join("::"));
            found.push(format!(
                "{shown}:{number}: {mine} uses {theirs}, which is not on a lower floor"
            ));
        }
    }
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

/// Paths behind `crate::` or `super::`: `[a, B]` of `a::B;`, two of `{a::B, c::d}`.
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
        let mut modules = Crate::default();
        for (name, floor) in [("low", 0), ("left", 1), ("right", 1)] {
            modules.floors.insert(vec![name.to_owned()], floor);
        }
        let uses = |from: &str, used: &str| {
            modules.breaks_floors(&[from.to_owned()], &[used.to_owned()]).is_some()
        };
        assert!(uses("left", "right") && uses("low", "left"));
        assert!(!uses("right", "low"));
    }
}
