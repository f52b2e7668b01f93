//! Tables in Markdown, on standard output and in the file that `BENCH_OUT` names.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

pub(crate) struct Table(String);

impl Table {
    /// `command` is what makes the table anew.
    pub(crate) fn new(title: &str, command: &str, columns: &[&str]) -> Table {
        let dashes = vec!["---"; columns.len()].join("|");
        Table(format!("\n### {title}\n\n`{command}`, {}\n\n| {} |\n|{dashes}|\n", today(), columns.join(" | ")))
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        writeln!(self.0, "| {} |", cells.join(" | ")).unwrap();
    }

    /// A line below the rows.
    pub(crate) fn note(&mut self, text: &str) {
        write!(self.0, "\n{text}\n").unwrap();
    }

    pub(crate) fn print(&self) {
        println!("{}", self.0);
        let Some(path) = std::env::var_os("BENCH_OUT").filter(|path| !path.is_empty()) else { return };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("BENCH_OUT");
        file.write_all(self.0.as_bytes()).expect("BENCH_OUT");
    }
}

/// The middle one, or the lower of the two in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// `1234567.8` as `1,234,568`.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn today() -> String {
    let output = Command::new("date").arg("+%F").output().expect("date runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
