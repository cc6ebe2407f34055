//! Takes the comments out of our own scripts before they are served.
//!
//! The sources are written for readers: a story on top, types in comments. The browser needs none of
//! it, and on a slow link a quarter of the bytes is comments. Every other character stays where it
//! is, line by line, so that a stack trace still points to the real line.
//!
//! This is not a parser. It knows just enough of the language to tell a comment from a string, a
//! template or a regular expression. Vendored files are already small and do not come here.

/// Where the reader of the source is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Between tokens; with the number of open braces since the template around it, if any.
    Code { braces: u32 },
    /// In a string that this character ends.
    Text(char),
    /// In a template literal.
    Template,
}

/// The source without comments. Line breaks inside comments stay.
pub fn strip_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut places = vec![Place::Code { braces: 0 }];

    while let Some(c) = chars.next() {
        let Some(place) = places.last_mut() else { break };
        match (place, c) {
            (Place::Code { .. }, '/') => match chars.peek() {
                Some('/') => {
                    while chars.next_if(|c| *c != '\n').is_some() {}
                    out.truncate(out.trim_end_matches([' ', '\t']).len());
                }
                Some('*') => block_comment(&mut chars, &mut out),
                _ if starts_regex(&out) => regex(&mut chars, &mut out),
                _ => out.push('/'),
            },
            (Place::Code { .. }, '"' | '\'') => {
                out.push(c);
                places.push(Place::Text(c));
            }
            (Place::Code { .. }, '`') => {
                out.push(c);
                places.push(Place::Template);
            }
            (Place::Code { braces }, '{') => {
                *braces += 1;
                out.push(c);
            }
            (Place::Code { braces }, '}') => {
                out.push(c);
                match braces.checked_sub(1) {
                    Some(fewer) => *braces = fewer,
                    // The brace belongs to the `${` of the template around this code.
                    None => {
                        places.pop();
                    }
                }
            }
            (Place::Text(_) | Place::Template, '\\') => {
                out.push(c);
                out.extend(chars.next());
            }
            (Place::Text(end), c) if c == *end => {
                out.push(c);
                places.pop();
            }
            (Place::Template, '`') => {
                out.push(c);
                places.pop();
            }
            (Place::Template, '$') if chars.peek() == Some(&'{') => {
                out.push(c);
                out.extend(chars.next());
                places.push(Place::Code { braces: 0 });
            }
            (_, c) => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the rest of a comment; a space takes its place so that the tokens around it stay apart.
fn block_comment(chars: &mut Chars, out: &mut String) {
    chars.next();
    if !out.ends_with(char::is_whitespace) {
        out.push(' ');
    }
    let mut before = ' ';
    for c in chars.by_ref() {
        if before == '*' && c == '/' {
            break;
        }
        if c == '\n' {
            out.truncate(out.trim_end_matches([' ', '\t']).len());
            out.push('\n');
        }
        before = c;
    }
    // `/** … */ (value)` leaves one space, not two.
    if out.ends_with(char::is_whitespace) {
        while chars.next_if(|c| *c == ' ').is_some() {}
    }
}

/// Whether a slash here begins a regular expression: after a value it divides.
fn starts_regex(before: &str) -> bool {
    before.trim_end().chars().next_back().is_none_or(|c| "(,=:[!&|?{};+-*>".contains(c))
        || before.trim_end().ends_with("return")
}

/// Copies a regular expression up to its closing slash. A slash inside a class does not close it.
fn regex(chars: &mut Chars, out: &mut String) {
    out.push('/');
    let mut in_class = false;
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return,
            '\n' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::strip_comments;

    #[test]
    fn comments_go_and_lines_stay() {
        let source = "// story\n// more\nlet a = 1; // why\n/** @param {string} b */\nf(/** @type {any} */ (a));\n/*\n x\n*/\nlet c;\n";
        assert_eq!(strip_comments(source), "\n\nlet a = 1;\n\nf( (a));\n\n\n\nlet c;\n");
        assert_eq!(strip_comments(source).lines().count(), source.lines().count());
    }

    #[test]
    fn strings_and_templates_are_left_alone() {
        for source in [
            "const a = \"// no\" + '/* no */' + \"\\\"//\";",
            "const b = `// ${c /2} /* ${`//${d}`} */ \\` //`;",
            "const e = `${{ f: 1 }} // ${g.map((h) => { return `//${h}`; })}`;",
        ] {
            assert_eq!(strip_comments(source), source);
        }
    }

    #[test]
    fn comments_inside_template_expressions_go() {
        assert_eq!(strip_comments("`${/* x */ a} // y`"), "`${ a} // y`");
    }

    #[test]
    fn regular_expressions_are_not_comments() {
        for source in [
            "s.replace(/[/*\"]+/g, x)",
            "const r = /\\/\\//;",
            "a / b / c; // d".split(" //").next().unwrap(),
        ] {
            assert_eq!(strip_comments(source), source);
        }
        assert_eq!(strip_comments("a / b // c"), "a / b");
    }
}
