//! Tables for people: columns as wide as what is in them, colours where a person sees them.

use super::Out;

/// One cell, with a colour for a terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    colour: Option<Colour>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Good,
    Odd,
    Bad,
}

/// A head and rows of as many cells.
pub(super) struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

impl Cell {
    pub(super) fn coloured(text: impl Into<String>, colour: Colour) -> Cell {
        Cell { text: text.into(), colour: Some(colour) }
    }

    fn show(&self, width: usize, terminal: bool) -> String {
        let padded = format!("{:width$}", self.text);
        match self.colour.filter(|_| terminal) {
            Some(colour) => format!("\u{1b}[{}m{padded}\u{1b}[0m", colour.code()),
            None => padded,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), colour: None }
    }
}

impl Colour {
    fn code(self) -> u8 {
        match self {
            Colour::Good => 32,
            Colour::Odd => 33,
            Colour::Bad => 31,
        }
    }
}

impl Table {
    pub(super) fn new(head: &'static [&'static str]) -> Table {
        Table { head, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn print(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        let head: Vec<Cell> = self.head.iter().map(|&name| name.into()).collect();
        let rows = || std::iter::once(&head).chain(&self.rows);
        let wide = |column: usize| rows().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max();
        let widths: Vec<usize> = (0..self.head.len()).map(|column| wide(column).unwrap_or_default()).collect();
        for row in rows() {
            let last = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            // the last one needs no padding
            let width = |n: usize| if n + 1 == last { 0 } else { widths[n] };
            let cells: Vec<String> = row[..last]
                .iter()
                .enumerate()
                .map(|(n, cell)| cell.show(width(n), out.terminal && colours()))
                .collect();
            writeln!(out.to, "{}", cells.join("  "))?;
        }
        Ok(())
    }
}

/// Unless their owner wants none (<https://no-color.org>).
fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(table: &Table, terminal: bool) -> String {
        let mut text = Vec::new();
        table.print(&mut Out { to: &mut text, terminal }).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new(&["name", "n", "why"]);
        table.row(vec!["ä-long-one".into(), "1".into(), "".into()]);
        table.row(vec!["b".into(), Cell::coloured("22", Colour::Bad), "because".into()]);
        assert_eq!(print(&table, false), "name        n   why\nä-long-one  1\nb           22  because\n");
        let coloured = print(&table, true);
        assert!(
            coloured.contains("\u{1b}[31m22\u{1b}[0m  because") || std::env::var_os("NO_COLOR").is_some(),
            "{coloured}"
        );
    }
}
