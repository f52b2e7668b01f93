//! Rows of a CSV file as records: the key is a column's text, the value the row as a JSON object (or another column's text).

use super::Records;
use super::chunk::Chunk;
use crate::cli::args::ProduceArgs;
use crate::cli::exit::Usage;
use anyhow::{Context, bail};
use csv::{Reader, ReaderBuilder, StringRecord};
use std::io::{BufReader, Read};

/// What a column's cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Asked for: empty cells are empty text.
    Text,
    /// Not a filled cell yet.
    Open,
    Number,
    /// By its first filled cell.
    Word,
}

struct Column {
    name: String,
    kind: Kind,
}

pub(super) struct Rows {
    rows: Reader<BufReader<Box<dyn Read>>>,
    columns: Vec<Column>,
    key: Option<usize>,
    /// `None` for the whole row.
    value: Option<usize>,
    now: i64,
    row: StringRecord,
    json: Vec<u8>,
}

impl Rows {
    pub(super) fn new(args: &ProduceArgs, input: BufReader<Box<dyn Read>>, now: i64) -> anyhow::Result<Self> {
        let delimiter = u8::try_from(args.delimiter).map_err(|_| Usage("--delimiter is one byte".to_owned()))?;
        let mut rows = ReaderBuilder::new().delimiter(delimiter).from_reader(input);
        let names: Vec<String> =
            rows.headers().context("reading the line of column names")?.iter().map(str::to_owned).collect();
        let find = |name: &String| names.iter().position(|n| n == name).ok_or_else(|| no_column(name, &names));
        let key = args.key.as_ref().map(find).transpose()?;
        let value = Some(&args.value).filter(|v| *v != "json").map(find).transpose()?;
        let text = args.text.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let kind = |i| if key == Some(i) || text.contains(&i) { Kind::Text } else { Kind::Open };
        let columns = names.iter().enumerate().map(|(i, name)| Column { name: name.clone(), kind: kind(i) }).collect();
        Ok(Rows { rows, columns, key, value, now, row: StringRecord::new(), json: vec![] })
    }

    fn object(&mut self, line: u64) -> anyhow::Result<()> {
        self.json.clear();
        for (i, (column, cell)) in self.columns.iter_mut().zip(&self.row).enumerate() {
            self.json.push(if i == 0 { b'{' } else { b',' });
            serde_json::to_writer(&mut self.json, &column.name)?;
            self.json.push(b':');
            column.write(cell, line, &mut self.json)?;
        }
        self.json.push(b'}');
        Ok(())
    }
}

impl Records for Rows {
    fn next(&mut self, chunk: &mut Chunk) -> anyhow::Result<bool> {
        if !self.rows.read_record(&mut self.row).context("reading a row")? {
            return Ok(false);
        }
        let line = self.row.position().map_or(0, csv::Position::line);
        let value = match self.value {
            Some(column) => self.row.get(column).unwrap_or_default().as_bytes(),
            None => {
                self.object(line)?;
                &self.json
            }
        };
        let key = self.key.and_then(|column| self.row.get(column)).map(str::as_bytes);
        chunk.push_plain(line, key, Some(value), self.now);
        Ok(true)
    }
}

impl Column {
    fn write(&mut self, cell: &str, line: u64, json: &mut Vec<u8>) -> anyhow::Result<()> {
        if self.kind == Kind::Open && !cell.is_empty() {
            self.kind = if is_number(cell) { Kind::Number } else { Kind::Word };
        }
        match self.kind {
            Kind::Open | Kind::Number | Kind::Word if cell.is_empty() => json.extend_from_slice(b"null"),
            // Digit for digit: 12.00 stays 12.00, and long numbers lose nothing.
            Kind::Number if is_number(cell) => json.extend_from_slice(cell.as_bytes()),
            Kind::Number => {
                let name = &self.name;
                bail!(
                    "line {line}: column `{name}` began with a number and now holds {cell:?}; use --text {name} to keep it as text"
                );
            }
            _ => serde_json::to_writer(json, cell)?,
        }
        Ok(())
    }
}

/// Whether a cell is a number as JSON writes them, without an exponent. `007` is not: it would lose its zeros.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(all_digits)
}

fn no_column(name: &str, names: &[String]) -> Usage {
    Usage(format!("the input has no column `{name}`; it has {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_json_keeps() {
        for number in ["0", "-1", "10", "0.5", "-0.50", "12.00", "123456789012345678901234567890"] {
            assert!(is_number(number), "{number}");
        }
        for text in ["", "-", "007", "1.", ".5", "1e5", "+1", "1_0", "NaN", " 1", "1.2.3", "00.1"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
