//! `cargo tool tidy`: what the compiler does not see of the order of this workspace.
//!
//! | rule | refuses |
//! |---|---|
//! | [`floors`] | a module that uses one of its own floor or a higher one; a file of more than 700 lines, or without a story at its head |
//! | [`methods`] | a method of a shared type, such as `App`, that is called from a subject below its own |
//! | [`names`] | a type name that stands in three files or more |
//! | [`docs`] | a comment of one line and one or two words, which says no more than the name below it |
//! | [`readmes`] | a source file or constant that a README names and that is not there |
//! | [`links`] | a link of a document whose file or heading is not there |
//!
//! ```text
//! $ cargo tool tidy
//! server/src/store/keys.rs:9: store uses app, which is not on a lower floor
//! type Layout stands in 4 files: engine/src/column/image.rs, …
//! README.md:31: links to doc/old.md, which is not there
//! 3 lines break the rules
//! ```

mod source;

mod docs;
mod floors;
mod links;
mod methods;
mod names;
mod readmes;

use std::path::Path;

use anyhow::bail;

/// Checks all crates; the error lists every line that breaks a rule.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let crates = source::read_crates(root)?;
    let mut found = Vec::new();
    floors::check(&crates, &mut found);
    methods::check(&crates, &mut found);
    names::check(&crates, &mut found);
    docs::check(&crates, &mut found);
    readmes::check(root, &mut found)?;
    links::check(root, &mut found)?;
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}\n{} lines break the rules", found.join("\n"), found.len())
}
