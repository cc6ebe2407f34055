//! Tables of text: columns as wide as their widest cell, numbers at the right.
//!
//! ```text
//! Table::new([words("name"), numbers("rows"), words("damage")])
//!   .row(["é", "1,000", ""])  .row(["a\x1b[2J", "2", ""])  .rule()  .row(["total", "1,002", ""])
//!
//! name         rows          no column "damage": all of its cells are empty
//! é           1,000          a character is one wide, whatever its bytes
//! a\u{1b}[2J      2          control characters are shown and not sent to the terminal
//! ----------  -----
//! total       1,002
//! ```

use std::io::{self, Write};

/// Where the cells of a column stand: words at the left, numbers at the right, so that digits are above each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A column: its title and its side. Made by [`words`] and [`numbers`].
pub struct Column(&'static str, Side);

/// A column of words, at the left under its title.
pub const fn words(title: &'static str) -> Column {
    Column(title, Side::Left)
}

/// A column of numbers, at the right under its title.
pub const fn numbers(title: &'static str) -> Column {
    Column(title, Side::Right)
}

/// Rows under titles. The number of columns is part of the type, so a row cannot lack a cell.
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<Row<N>>,
}

/// One line of the table below the titles.
enum Row<const N: usize> {
    Cells([String; N]),
    /// A line above totals.
    Rule,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(Row::Cells(cells.map(|cell| printable(&cell))));
    }

    /// Appends a line: what follows are totals.
    pub fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    /// Writes the table. A column without any content is left out, and no line ends with blanks. Errors: those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = [0; N];
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = width_of(cell).max(*width);
            }
        }
        let titles = self.columns.each_ref().map(|Column(title, _)| (*title).to_owned());
        for (width, title) in widths.iter_mut().zip(&titles).filter(|(width, _)| **width > 0) {
            *width = width_of(title).max(*width);
        }
        self.write_row(out, &titles, &widths)?;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.write_row(out, cells, &widths)?,
                Row::Rule => {
                    self.write_row(out, &widths.map(|width| "-".repeat(width)), &widths)?
                }
            }
        }
        Ok(())
    }

    /// One line: cells filled up to the widths, with two blanks between; columns of width 0 are skipped.
    fn write_row(
        &self,
        out: &mut dyn Write,
        cells: &[String; N],
        widths: &[usize; N],
    ) -> io::Result<()> {
        let mut line = String::new();
        let columns = self.columns.iter().zip(cells).zip(widths);
        for ((Column(_, side), cell), &width) in columns.filter(|(_, width)| **width > 0) {
            let space = " ".repeat(width.saturating_sub(width_of(cell)));
            match side {
                Side::Left => line.extend([&**cell, &space]),
                Side::Right => line.extend([&*space, cell]),
            }
            line.push_str("  ");
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// Writes facts with their names, one a line: `rows          50,149`. Names have at most 13 characters.
pub fn write_facts<'a>(
    out: &mut dyn Write,
    facts: impl IntoIterator<Item = (&'a str, String)>,
) -> io::Result<()> {
    for (name, fact) in facts {
        writeln!(out, "{name:<14}{}", printable(&fact))?;
    }
    Ok(())
}

/// Width of a cell on a terminal: its characters, which holds for most scripts.
fn width_of(cell: &str) -> usize {
    cell.chars().count()
}

/// Text without control characters. Names come from events and from damaged files: what they hold
/// must not move the cursor of somebody's terminal. A line feed becomes `\n`, an escape `\u{1b}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_and_empty_columns_left_out() {
        let mut table = Table::new([words("name"), numbers("rows"), words("damage")]);
        table.row(["é".to_owned(), "1,000".to_owned(), String::new()]);
        table.row(["a\x1b[2J".to_owned(), "2".to_owned(), String::new()]);
        table.rule();
        table.row(["total".to_owned(), "1,002".to_owned(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "\
name         rows
é           1,000
a\\u{1b}[2J      2
----------  -----
total       1,002
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
