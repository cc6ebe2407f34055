//! The files, prepared once at start: comments stripped from our own modules, a hash over all.

use std::collections::{BTreeMap, BTreeSet};

use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::{page::Assets, strip::strip_comments};
use crate::base::secret::hex;

#[derive(RustEmbed)]
#[folder = "web/"]
#[exclude = "test/*"]
#[exclude = "vendor/vendor.mjs"]
struct Tree;

/// First module of the embed page.
const EMBED_ENTRY: &str = "embed/main.js";

/// A file as it is served.
#[derive(Debug, Clone)]
pub struct WebFile {
    /// Media type.
    pub content_type: &'static str,
    /// Content.
    pub bytes: Vec<u8>,
}

/// All files by path below the base.
pub struct Files {
    files: BTreeMap<String, WebFile>,
    base: String,
    modules: Vec<String>,
}

impl Files {
    /// Prepares the tree.
    pub fn load() -> Self {
        let mut files = BTreeMap::new();
        for path in Tree::iter() {
            let Some(file) = Tree::get(&path) else { continue };
            let bytes = match std::str::from_utf8(&file.data) {
                Ok(source) if path.ends_with(".js") && !path.starts_with("vendor/") => {
                    strip_comments(source).into_bytes()
                }
                _ => file.data.to_vec(),
            };
            files.insert(path.to_string(), WebFile { content_type: content_type(&path), bytes });
        }
        let mut hash = Sha256::new();
        for (path, file) in &files {
            hash.update(path.as_bytes());
            hash.update(&file.bytes);
        }
        let base = format!("/assets/{}", hex(&hash.finalize()[..8]));
        let modules = import_graph(&files, EMBED_ENTRY);
        Self { files, base, modules }
    }

    /// The file at a path below the base.
    pub fn find(&self, path: &str) -> Option<&WebFile> {
        self.files.get(path)
    }

    /// Where documents find the files.
    pub fn assets(&self) -> Assets {
        Assets { base: self.base.clone(), modules: self.modules.clone() }
    }

    /// The path that all files are below.
    pub fn base(&self) -> &str {
        &self.base
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

/// Every module that `entry` imports, directly or not, itself first.
fn import_graph(files: &BTreeMap<String, WebFile>, entry: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut order = Vec::new();
    let mut open = vec![entry.to_owned()];
    while let Some(path) = open.pop() {
        let Some(file) = files.get(&path) else { continue };
        if !found.insert(path.clone()) {
            continue;
        }
        let source = String::from_utf8_lossy(&file.bytes);
        open.extend(imports(&source).filter_map(|import| resolve(&path, import)));
        order.push(path);
    }
    order
}

/// Relative module names behind `from` or a bare `import`.
fn imports(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices("\"./").chain(source.match_indices("\"../")).filter_map(|(at, _)| {
        let before = source.get(..at)?.trim_end();
        let is_import = before.ends_with("from") || before.ends_with("import");
        let rest = source.get(at + 1..)?;
        is_import.then(|| rest.split('"').next()).flatten()
    })
}

fn resolve(from: &str, import: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in import.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embed_page_finds_its_whole_graph() {
        let files = Files::load();
        let assets = files.assets();
        assert!(assets.modules.len() > 15, "{:?}", assets.modules);
        assert!(assets.modules.iter().any(|path| path == "vendor/preact.js"));
        for module in &assets.modules {
            let source = String::from_utf8_lossy(&files.find(module).unwrap().bytes);
            for import in imports(&source) {
                let target = resolve(module, import).unwrap();
                assert!(
                    files.find(&target).is_some(),
                    "{module} imports {import}, which does not exist"
                );
            }
        }
        assert!(
            files.find("vendor/vendor.mjs").is_none()
                && files.find("test/format.test.js").is_none()
        );
    }
}
