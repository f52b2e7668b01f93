//! Settings: data only, validated in one place, described in one table from which the reference page is made.

pub mod errors;
pub mod librdkafka;
pub mod names;
pub mod page;
pub mod schema;
pub mod settings;
pub mod units;

mod admin;
mod build;
mod checks;
mod codes;
mod properties;
mod section;
mod substitute;
mod tree;
mod unknown;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub use admin::address;
pub use errors::{ConfigErrors, Mistake};
pub use settings::{
    Action, Admin, Application, Components, DeadLetters, Input, Kafka, LetterLimit, Limits, LogKind, Ordering,
    Oversize, Parking, Processor, Retry, Start, Topic,
};

use std::collections::BTreeMap;
use std::path::Path;

/// What `${NAME}` may stand for. Captured once, so that the file means one thing.
pub type Environment = BTreeMap<String, String>;

/// Reads an application file; every mistake in it is collected. Relative paths in it start at its folder.
pub fn load(path: &Path) -> Result<Application, ConfigErrors> {
    let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let text = std::fs::read_to_string(path).map_err(|e| ConfigErrors::unreadable(path, &e))?;
    parse(&text, path, &environment.collect())
}

/// As [`load`], of a text that stands in the file `path` (which is not read).
pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Application, ConfigErrors> {
    let mut mistakes = errors::Collector::new(text);
    let Some(mut document) = tree::read(text, &mut mistakes) else {
        return Err(mistakes.finish(path));
    };
    substitute::apply(&mut document, environment, &mut mistakes);
    walk::check(&document, &mut mistakes);
    let application = build::application(&document, path);
    checks::check(&application, &document, &mut mistakes);
    if mistakes.is_empty() { Ok(application) } else { Err(mistakes.finish(path)) }
}
