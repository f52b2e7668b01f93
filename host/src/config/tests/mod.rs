//! Tests of the whole way from text to settings: mistakes, mutations of every documented key, pages and examples.

mod admin;
mod mistakes;
mod mutations;
mod pages;
mod values;

use super::{Application, ConfigErrors, Environment, parse};
use std::path::Path;

/// The smallest file.
pub(super) const MINIMAL: &str = r#"
[application]
id = "app"
[log]
kind = "local"
dir = "log"
[[processor]]
name = "p"
plugin = "p.wasm"
inputs.in = "a"
"#;

pub(super) fn load(text: &str) -> Result<Application, ConfigErrors> {
    let environment = Environment::from([("KAFKA_PASSWORD".to_owned(), "hush-hush".to_owned())]);
    parse(text, Path::new("/apps/app.toml"), &environment)
}

/// The mistakes of a text, one a line.
pub(super) fn mistakes(text: &str) -> String {
    match load(text) {
        Ok(_) => String::new(),
        Err(errors) => errors.mistakes.iter().map(|m| format!("{m}\n")).collect(),
    }
}
