//! READMEs name source files and constants, which must be there: ``| body | 8 MiB | `http/v1/mod.rs` `BODY_BYTES_MAX` |``.
//!
//! A file is looked for below the crate's `src`, the crate, and the workspace. A constant behind it must stand in it.
//!
//! ```text
//! engine/README.md:12: names store/gone.rs, which is not there
//! server/README.md:80: names BODY_BYTES_MAX, which is not in the file before it
//! ```
//!
//! A word with `<` or `*` is a pattern and not looked for, and names that begin with `INLAY` are variables of the environment.

use std::{fs, path::Path};

use anyhow::Context as _;

/// Folders with a README.
const FOLDERS: [&str; 9] =
    ["", "bench", "engine", "proto", "server", "server/cluster", "server/sql", "tests", "tools"];

/// Adds what READMEs name and is not there.
pub fn check(root: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for folder in FOLDERS {
        let directory = root.join(folder);
        let readme = directory.join("README.md");
        if !readme.exists() {
            continue;
        }
        let text = fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
        let mut bases = vec![directory.join("src"), directory.clone(), root.to_owned()];
        // The one of the workspace speaks of all crates.
        if folder.is_empty() {
            bases.extend(
                ["engine", "server", "server/cluster", "server/sql"]
                    .map(|name| root.join(name).join("src")),
            );
        }
        for (index, line) in text.lines().enumerate() {
            let mut last: Option<String> = None;
            for word in code_words(line) {
                let problem = if word.ends_with(".rs")
                    && word.contains('/')
                    && !word.contains(['<', '*'])
                {
                    let file = bases.iter().map(|base| base.join(word)).find(|file| file.exists());
                    last = file.and_then(|file| fs::read_to_string(file).ok());
                    last.is_none().then(|| format!("names {word}, which is not there"))
                } else if is_constant(word) && last.is_some() {
                    let is_there = last.as_deref().is_some_and(|text| text.contains(word));
                    (!is_there).then(|| format!("names {word}, which is not in the file before it"))
                } else {
                    None
                };
                let shown = Path::new(folder).join("README.md");
                found.extend(
                    problem.map(|text| format!("{}:{}: {text}", shown.display(), index + 1)),
                );
            }
        }
    }
    Ok(())
}

/// Texts between backticks: `http/v1/mod.rs` and `BODY_BYTES_MAX` of the line above.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a word is a constant's name: `ROWS_MAX`.
fn is_constant(word: &str) -> bool {
    word.contains('_')
        && !word.starts_with("INLAY")
        && word
            .chars()
            .all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_constants_of_a_line_are_found() {
        let line = "| time | 60 s | `http/layers.rs` `ANSWER_TIME_MAX`, not `INLAY_PORT` |";
        assert_eq!(
            code_words(line).collect::<Vec<_>>(),
            ["http/layers.rs", "ANSWER_TIME_MAX", "INLAY_PORT"]
        );
        assert!(
            is_constant("ANSWER_TIME_MAX")
                && !is_constant("INLAY_PORT")
                && !is_constant("http/a.rs")
        );
    }
}
