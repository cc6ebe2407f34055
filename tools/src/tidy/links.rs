//! Links of documents lead somewhere: `[the steps](server/README.md#how-to-add-an-endpoint)` names a file that is there and,
//! behind `#`, one of its headings.
//!
//! All files whose name ends in `.md` are read. Links to other hosts are not followed.
//!
//! ```text
//! server/README.md:14: links to doc/old.md, which is not there
//! README.md:9: links to #how-to-fly, which is no heading of /home/me/inlay/server/README.md
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Folders whose documents are not ours; so are those of folders that begin with a dot.
const FOREIGN: [&str; 2] = ["node_modules", "target"];

/// Adds links that lead nowhere.
pub fn check(root: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    // Targets are compared with documents by their real paths.
    let root = root.canonicalize().with_context(|| root.display().to_string())?;
    let mut documents = BTreeMap::new();
    read(&root, &mut documents)?;
    for (document, text) in &documents {
        for (index, line) in prose(text) {
            for target in targets(line) {
                let Some(problem) = problem_of(document, target, &documents) else {
                    continue;
                };
                let shown = document.strip_prefix(&root).unwrap_or(document).display();
                found.push(format!("{shown}:{}: {problem}", index + 1));
            }
        }
    }
    Ok(())
}

/// Reads all documents in a folder and below it, by path.
fn read(folder: &Path, documents: &mut BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !FOREIGN.contains(&name.as_ref()) {
                read(&path, documents)?;
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            documents.insert(path, text);
        }
    }
    Ok(())
}

/// Why a link leads nowhere.
fn problem_of(
    document: &Path,
    target: &str,
    documents: &BTreeMap<PathBuf, String>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (name, heading) = target.split_once('#').unwrap_or((target, ""));
    let named = if name.is_empty() { document } else { &document.with_file_name(name) };
    let Ok(file) = named.canonicalize() else {
        return Some(format!("links to {name}, which is not there"));
    };
    let is_there = heading.is_empty()
        || documents.get(&file).is_some_and(|text| anchors(text).contains(heading));
    (!is_there).then(|| format!("links to #{heading}, which is no heading of {}", file.display()))
}

/// The lines outside blocks of code, with their numbers from zero.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Targets of the links of a line: `[text](target)`, outside of code.
fn targets(line: &str) -> Vec<&str> {
    let of_link = |(at, _): (usize, &str)| {
        let (before, behind) = line.split_at(at);
        // An odd number of backticks before it: it is code.
        let is_code = before.matches('`').count() % 2 == 1;
        behind.strip_prefix("](")?.split_once(')').filter(|_| !is_code)
    };
    line.match_indices("](").filter_map(of_link).map(|(target, _)| target).collect()
}

/// Names that headings have in links: `How to add an endpoint` is `how-to-add-an-endpoint`.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then_some(heading)?.strip_prefix(' ')
    });
    headings
        .map(|heading| {
            let is_part = |char: &char| char.is_alphanumeric() || matches!(char, '-' | '_' | ' ');
            heading
                .trim()
                .to_lowercase()
                .chars()
                .filter(is_part)
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let line = "[a](x.md#how-to), `[no](link)`, ![picture](y.png)";
        assert_eq!(targets(line), ["x.md#how-to", "y.png"]);
        assert_eq!(targets("[`a`](x.md)"), ["x.md"]);
        let text = "# One\n```\n# code\n```\n## How to: `add`, an endpoint\n#no heading\n";
        assert_eq!(anchors(text), ["how-to-add-an-endpoint", "one"].map(String::from).into());

        let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
        let readme = root.join("README.md");
        let documents = BTreeMap::from([(readme.clone(), text.to_owned())]);
        let problem = |target| problem_of(&readme, target, &documents);
        for target in ["https://example.org/x", "Cargo.toml", "../tools/README.md#one", "#one"] {
            assert_eq!(problem(target), None, "{target}");
        }
        for target in ["nowhere.md", "src/../nowhere", "#code", "Cargo.toml#one"] {
            assert!(problem(target).is_some(), "{target}");
        }
    }
}
