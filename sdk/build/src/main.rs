//! `pelton-build [--install] [--lines] --out DIR CRATE...`: builds guest crates, for scripts that run before the host is built.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pelton_build::{BuildError, Options, build, find_toolchain};

const USAGE: &str = "usage: pelton-build [--install] [--lines] --out DIR CRATE...";

struct Arguments {
    options: Options,
    out: PathBuf,
    crates: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        say(USAGE);
        return ExitCode::from(2);
    };
    match build_all(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments { options: Options::default(), out: PathBuf::new(), crates: Vec::new() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--install" => arguments.options.install = true,
            "--lines" => arguments.options.lines = true,
            "--out" => arguments.out = words.next()?.into(),
            option if option.starts_with('-') => return None,
            _ => arguments.crates.push(word.into()),
        }
    }
    let complete = arguments.out != Path::new("") && !arguments.crates.is_empty();
    complete.then_some(arguments)
}

fn build_all(arguments: &Arguments) -> Result<(), BuildError> {
    let toolchain = find_toolchain(&arguments.options, &mut say)?;
    say(&format!("building plugins ({})", toolchain.description()));
    for dir in &arguments.crates {
        let built = build(&toolchain, dir, &arguments.out, &arguments.options)?;
        say(&format!("{} ({} KB)", built.path.display(), built.bytes.div_ceil(1000)));
    }
    Ok(())
}

/// A terminal that is gone is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
