//! Files for browsers, prepared once at start: a hash over all, and a copy as gzip of each but the fonts. Copies as brotli come with the bundles.
//!
//! ```text
//! /assets/3b963ae98bb164ec/dist/embed.js             text/javascript; charset=utf-8, and as gzip; as brotli from dist/embed.js.br
//! /assets/3b963ae98bb164ec/dist/console/alert.js     a page of the console
//! /assets/3b963ae98bb164ec/fonts/inter.woff2         font/woff2, compressed already
//! /assets/3b963ae98bb164ec/vendor/licenses/preact.txt
//! ```
//!
//! The hash changes with any file, so an address never has other content; an address with an older hash is 404. Sources, tests and build
//! scripts are not embedded.

use std::collections::{BTreeMap, BTreeSet};

use flate2::{Compression, write::GzEncoder};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::page::Assets;
use crate::base::secret::hex;

/// Output of `server/web/build.mjs`: bundles and style sheets, which are checked in.
#[derive(RustEmbed)]
#[folder = "web/dist/"]
#[prefix = "dist/"]
struct Bundles;

/// The fonts of pages.
#[derive(RustEmbed)]
#[folder = "web/fonts/"]
#[prefix = "fonts/"]
struct Fonts;

/// The licences of the packages inside the bundles.
#[derive(RustEmbed)]
#[folder = "web/vendor/licenses/"]
#[prefix = "vendor/licenses/"]
struct Licenses;

/// Types of the helper for host pages; the other files of its folder are sources.
const HOST_TYPES: (&str, &[u8]) =
    ("host/public.d.ts", include_bytes!("../../web/host/public.d.ts"));

/// First module of the embed page.
const EMBED_ENTRY: &str = "dist/embed.js";
/// First module of the console.
const CONSOLE_ENTRY: &str = "dist/console/main.js";
/// First module of its messages.
const MESSAGE_ENTRY: &str = "dist/message.js";
/// Prefix of media types that are compressed already.
const COMPRESSED: &str = "font/";
/// What the name of a file's copy as brotli ends with.
const BROTLI: &str = ".br";

/// A file as it is served.
#[derive(Debug, Clone)]
pub struct WebFile {
    /// Media type, with `charset=utf-8` for text.
    pub content_type: &'static str,
    /// Content without compression.
    pub bytes: Vec<u8>,
    /// Content as gzip; absent where that is not smaller.
    pub gzip: Option<Vec<u8>>,
    /// Content as brotli: of scripts and style sheets, made with the bundles.
    pub brotli: Option<Vec<u8>>,
}

/// All files by path below the base, such as `dist/embed.js`.
pub struct Files {
    files: BTreeMap<String, WebFile>,
    base: String,
    modules: Vec<String>,
    message_modules: Vec<String>,
    /// Imports of each script, by path.
    imports: BTreeMap<String, Vec<String>>,
}

impl Files {
    /// Reads the embedded files and prepares them.
    pub fn load() -> Self {
        let (mut copies, bundles): (BTreeMap<_, _>, BTreeMap<_, _>) =
            contents::<Bundles>().partition(|(path, _)| path.ends_with(BROTLI));
        let types = (HOST_TYPES.0.to_owned(), HOST_TYPES.1.to_vec());
        let embedded = bundles.into_iter().chain(contents::<Fonts>()).chain(contents::<Licenses>());
        let files: BTreeMap<String, WebFile> = embedded
            .chain([types])
            .map(|(path, bytes)| {
                let content_type = content_type(&path);
                let gzip = (!content_type.starts_with(COMPRESSED)).then(|| gzip(&bytes)).flatten();
                let brotli = copies.remove(&format!("{path}{BROTLI}"));
                (path, WebFile { content_type, bytes, gzip, brotli })
            })
            .collect();
        let mut hash = Sha256::new();
        for (path, file) in &files {
            hash.update(path.as_bytes());
            hash.update(&file.bytes);
            hash.update(file.brotli.as_deref().unwrap_or_default());
        }
        let base = format!("/assets/{}", hex(&hash.finalize()[..8]));
        let imports = all_imports(&files);
        let modules = import_graph(&imports, EMBED_ENTRY);
        let message_modules = import_graph(&imports, MESSAGE_ENTRY);
        Self { files, base, modules, message_modules, imports }
    }

    /// The file with this path below the base, if there is one: `fonts/inter.woff2`. The path is a key and never reaches a disk.
    pub fn find(&self, path: &str) -> Option<&WebFile> {
        self.files.get(path)
    }

    /// Where the documents of dashboards find the files.
    pub fn assets(&self) -> Assets {
        Assets { base: self.base.clone(), modules: self.modules.clone() }
    }

    /// Where the documents of messages find them.
    pub fn message_assets(&self) -> Assets {
        Assets { base: self.base.clone(), modules: self.message_modules.clone() }
    }

    /// Modules that a page of the console needs, the entry first. An address without a page has those of every page.
    pub fn console_modules(&self, page: &str) -> Vec<String> {
        let mut modules = import_graph(&self.imports, CONSOLE_ENTRY);
        for module in import_graph(&self.imports, &super::module_of(page)) {
            if !modules.contains(&module) {
                modules.push(module);
            }
        }
        modules
    }

    /// The path above all files: `/assets/` and 16 hexadecimal digits of the hash.
    pub fn base(&self) -> &str {
        &self.base
    }
}

/// Path and content of each file of an embedded folder.
fn contents<T: RustEmbed>() -> impl Iterator<Item = (String, Vec<u8>)> {
    T::iter().filter_map(|path| Some((path.to_string(), T::get(&path)?.data.into_owned())))
}

/// The content as gzip, at the best level since it is done once; `None` where that is not smaller.
fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write as _;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|compressed| compressed.len() < bytes.len())
}

/// The media type by the ending of a path. TypeScript is shown as text: these are types for authors of host pages.
fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("ts") => "text/plain; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

/// Imports of each script; read once, since a page lists all that it needs.
fn all_imports(files: &BTreeMap<String, WebFile>) -> BTreeMap<String, Vec<String>> {
    let scripts = files.iter().filter(|(path, _)| path.ends_with(".js"));
    scripts
        .map(|(path, file)| {
            let source = String::from_utf8_lossy(&file.bytes);
            (path.clone(), imports(&source).filter_map(|import| resolve(path, import)).collect())
        })
        .collect()
}

/// Every module that `entry` imports, directly or not, itself first.
fn import_graph(imports: &BTreeMap<String, Vec<String>>, entry: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut order = Vec::new();
    let mut open = vec![entry.to_owned()];
    while let Some(path) = open.pop() {
        let Some(imported) = imports.get(&path) else { continue };
        if !found.insert(path.clone()) {
            continue;
        }
        open.extend(imported.iter().cloned());
        order.push(path);
    }
    order
}

/// Relative module names behind `from` or a bare `import`.
///
/// Of `import{a}from"./chunk-1.js";import"../b.js"` these are `./chunk-1.js` and `../b.js`. A dynamic `import("./c.js")` is not among
/// them: such a module is fetched when it is needed. The bundler writes imports in these forms, so no parser of JavaScript is needed.
fn imports(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices("\"./").chain(source.match_indices("\"../")).filter_map(|(at, _)| {
        let before = source.get(..at)?.trim_end();
        let is_import = before.ends_with("from") || before.ends_with("import");
        let rest = source.get(at + 1..)?;
        is_import.then(|| rest.split('"').next()).flatten()
    })
}

/// The path of a module that another one imports: `../b.js` from `dist/console/a.js` is `dist/b.js`. `None` above the root.
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
    fn each_page_finds_its_whole_graph() {
        let files = Files::load();
        for (assets, entry) in
            [(files.assets(), EMBED_ENTRY), (files.message_assets(), MESSAGE_ENTRY)]
        {
            assert_eq!(assets.modules.first().map(String::as_str), Some(entry));
            for module in &assets.modules {
                let source = String::from_utf8_lossy(&files.find(module).unwrap().bytes);
                for import in imports(&source) {
                    let target = resolve(module, import).unwrap();
                    assert!(assets.modules.contains(&target), "{module} imports {import}");
                }
            }
        }
        assert!(files.assets().modules.len() > 1);
    }

    #[test]
    fn sources_and_tests_are_not_served() {
        let files = Files::load();
        for path in ["embed/main.js", "vendor/vendor.mjs", "build.mjs", "test/format.test.js"] {
            assert!(files.find(path).is_none(), "{path}");
        }
        // What is in the bundle is there with its license.
        for package in ["preact", "htm", "fontsource-variable-inter"] {
            assert!(files.find(&format!("vendor/licenses/{package}.txt")).is_some(), "{package}");
        }
        assert!(files.files.values().all(|file| !file.bytes.is_empty()));
    }

    #[test]
    fn scripts_and_styles_have_a_smaller_copy_as_brotli() {
        let files = Files::load();
        for (path, file) in &files.files {
            let is_bundle = path.starts_with("dist/");
            assert_eq!(file.brotli.is_some(), is_bundle, "{path}");
            let copy = file.brotli.as_ref().zip(file.gzip.as_ref());
            assert!(copy.is_none_or(|(brotli, gzip)| brotli.len() < gzip.len()), "{path}");
        }
        assert!(files.find("dist/embed.js.br").is_none());
    }

    #[test]
    fn what_stands_beside_the_sources_was_made_of_them() {
        let files = Files::load();
        let made =
            |path: &str| String::from_utf8_lossy(&files.find(path).unwrap().bytes).into_owned();
        assert!(made("dist/helper.js").contains("inlay-dashboard"));
        assert!(made("dist/embed.css").contains("../fonts/inter.woff2"));
    }
}
