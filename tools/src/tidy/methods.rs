//! Methods of a type whose `impl` stands in many files: they are called from their own subject or one above.
//!
//! `use` lines do not show such a call: `self.seed_sample()` in `identity` reaches `demo`, which is above it, although
//! neither names the other.
//!
//! ```text
//! server/src/app/identity/accounts.rs:148: calls seed_sample of demo, which is not on a lower floor
//! ```

use std::collections::BTreeMap;

use super::source::{Crate, ModulePath, SourceFile};

/// The type, the module that it belongs to, and how variables of it are called there.
const TYPE: (&str, &str, [&str; 2]) = ("App", "app", ["self", "app"]);

/// Adds calls of methods on a higher floor.
pub fn check(crates: &[Crate], found: &mut Vec<String>) {
    let (name, room, receivers) = TYPE;
    let opening = format!("impl {name} {{");
    for modules in crates {
        let files: Vec<(&ModulePath, &SourceFile)> = modules
            .files
            .iter()
            .filter(|(path, _)| path.first().is_some_and(|first| first == room))
            .collect();
        let mut methods: BTreeMap<&str, &ModulePath> = BTreeMap::new();
        for (path, file) in &files {
            methods.extend(
                methods_of(file.code(), &opening).into_iter().map(|method| (method, *path)),
            );
        }
        for (path, file) in &files {
            for (number, called) in calls(file.code(), &receivers) {
                let Some(theirs) = methods.get(called) else { continue };
                if let Some((_, theirs)) = modules.breaks_floors(path, theirs) {
                    found.push(format!(
                        "{}:{number}: calls {called} of {}, which is not on a lower floor",
                        file.shown,
                        theirs.join("::")
                    ));
                }
            }
        }
    }
}

/// Names of the methods in the blocks that begin with this line, such as `impl App {`.
fn methods_of<'a>(code: &'a str, opening: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut is_inside = false;
    for line in code.lines() {
        if line.starts_with(opening) {
            is_inside = true;
        } else if line.starts_with('}') {
            is_inside = false;
        }
        // Methods of a block are indented once.
        let Some(rest) =
            line.strip_prefix("    ").filter(|rest| is_inside && !rest.starts_with(' '))
        else {
            continue;
        };
        let rest = ["pub ", "pub(crate) ", "pub(super) ", "async ", "const "]
            .iter()
            .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        if let Some(rest) = rest.strip_prefix("fn ") {
            names.extend(rest.split(['(', '<']).next());
        }
    }
    names
}

/// Calls of methods on variables with these names, with their line numbers.
fn calls<'a>(code: &'a str, receivers: &[&str]) -> Vec<(usize, &'a str)> {
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let mut out = Vec::new();
    for (index, line) in code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for receiver in receivers {
            let dotted = format!("{receiver}.");
            for (at, _) in line.match_indices(&dotted) {
                let is_whole = !line[..at].ends_with(|char| is_name(char) || char == '.');
                let rest = &line[at + dotted.len()..];
                let end = rest.find(|char| !is_name(char)).unwrap_or(rest.len());
                if is_whole && rest[end..].starts_with('(') {
                    out.push((index + 1, &rest[..end]));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "impl App {\n    pub fn low(&self) {\n        self.high();\n        other.self.no(1);\n    }\n}\nimpl Other {\n    fn none() {}\n}\n";

    #[test]
    fn methods_and_calls_are_found() {
        assert_eq!(methods_of(CODE, "impl App {"), ["low"]);
        assert_eq!(calls(CODE, &["self", "app"]), [(3, "high")]);
        assert_eq!(
            calls("// self.high()\nlet x = my_app.f(app.g(1), app.field);\n", &["app"]),
            [(2, "g")]
        );
    }
}
