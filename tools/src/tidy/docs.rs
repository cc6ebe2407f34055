//! Comments of items: one of two words says no more than the name below it.
//!
//! ```text
//! /// Their bytes.                                 refused
//! pub bytes: u64,
//!
//! /// Size of all segment files on disk.           fine
//! pub bytes: u64,
//! ```

use super::source::Crate;

/// Words of a comment that is refused.
const WORDS_MAX: usize = 2;

/// Adds comments that say nothing.
pub fn check(crates: &[Crate], found: &mut Vec<String>) {
    for file in crates.iter().flat_map(|modules| modules.files.values()) {
        for (number, comment) in short_comments(file.code()) {
            found.push(format!("{}:{number}: says too little: {comment}", file.shown));
        }
    }
}

/// Comments of one line with too few words, with their line numbers. Code is no word: `` /// `a < b`. `` says something.
fn short_comments(code: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let is_comment = |index: usize| lines.get(index).is_some_and(|line| line.starts_with("///"));
    let mut out = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("/// ") else { continue };
        let has_neighbour = is_comment(index + 1) || index > 0 && is_comment(index - 1);
        if !has_neighbour
            && !comment.contains('`')
            && comment.split_whitespace().count() <= WORDS_MAX
        {
            out.push((index + 1, *line));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_repeat_the_name_are_found() {
        let code = "/// Their bytes.\npub bytes: u64,\n/// Reverses [`zigzag`].\nfn a() {}\n/// Two lines,\n/// short.\nfn b() {}\n";
        assert_eq!(short_comments(code), [(1, "/// Their bytes.")]);
    }
}
