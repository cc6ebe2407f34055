//! Names of types: one that stands in three places says too little in each of them.
//!
//! ```text
//! type Layout stands in 4 files: engine/src/column/image.rs, …
//! ```

use std::collections::BTreeMap;

use super::source::Crate;

/// A name may stand in so many files.
const FILES_MAX: usize = 2;
/// Names that may stand more often: each is the field's own word where it stands.
const USUAL: [&str; 6] = ["Answer", "Event", "Plan", "Row", "State", "Table"];

/// Adds the names that stand too often.
pub fn check(crates: &[Crate], found: &mut Vec<String>) {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in crates.iter().flat_map(|modules| modules.files.values()) {
        for name in types_of(file.code()) {
            let known = files.entry(name).or_default();
            if known.last() != Some(&file.shown.as_str()) {
                known.push(&file.shown);
            }
        }
    }
    for (name, files) in files {
        if files.len() > FILES_MAX && !USUAL.contains(&name) {
            found.push(format!(
                "type {name} stands in {} files: {}",
                files.len(),
                files.join(", ")
            ));
        }
    }
}

/// Names of the types that a file defines at its outermost level: struct, enum, trait and type.
fn types_of(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in code.lines() {
        let rest = ["pub(crate) ", "pub(super) ", "pub "]
            .iter()
            .fold(line, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let named =
            ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word));
        names.extend(named.and_then(|rest| {
            rest.split(|char: char| !(char.is_alphanumeric() || char == '_')).next()
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_kinds_are_found() {
        let code = "pub struct A<'a>;\nenum B {\n    type No = u8;\n}\npub(crate) trait C: D {}\ntype E = u8;\n";
        assert_eq!(types_of(code), ["A", "B", "C", "E"]);
    }
}
