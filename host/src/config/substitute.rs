//! `${NAME}` in text values stands for an environment variable; `$${` is a plain `${`. Keys are left as they are, and what a
//! variable holds is never shown.

use super::Environment;
use super::errors::{Collector, Wrong};
use super::tree::{Entry, Node, Value};
use super::unknown::nearest;

/// Replaces in every text of the document.
pub(super) fn apply(document: &mut Node, environment: &Environment, mistakes: &mut Collector) {
    Substitution { environment, mistakes }.node(document, "");
}

struct Substitution<'a> {
    environment: &'a Environment,
    mistakes: &'a mut Collector,
}

impl Substitution<'_> {
    fn node(&mut self, node: &mut Node, path: &str) {
        let at = node.at;
        match &mut node.value {
            Value::Text { text, secret } if text.contains("${") => match replace(text, self.environment) {
                Ok(replaced) => {
                    *secret = replaced.1;
                    *text = replaced.0;
                }
                Err(wrong) => {
                    node.value = Value::Unresolved;
                    self.mistakes.add(at, path, wrong);
                }
            },
            Value::List(nodes) => nodes.iter_mut().for_each(|n| self.node(n, path)),
            Value::Table(entries) => entries.iter_mut().for_each(|e| self.entry(e, path)),
            _ => {}
        }
    }

    fn entry(&mut self, entry: &mut Entry, path: &str) {
        let path = super::walk::join(path, &entry.key);
        self.node(&mut entry.node, &path);
    }
}

/// The text with its variables replaced, and whether there was any.
fn replace(text: &str, environment: &Environment) -> Result<(String, bool), Wrong> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut any) = (text, false);
    while let Some(i) = rest.find("${") {
        if rest[..i].ends_with('$') {
            out.push_str(&rest[..i - 1]);
            out.push_str("${");
            rest = &rest[i + 2..];
            continue;
        }
        out.push_str(&rest[..i]);
        let (name, after) = variable(&rest[i + 2..])?;
        out.push_str(environment.get(name).ok_or_else(|| unset(name, environment))?);
        (rest, any) = (after, true);
    }
    out.push_str(rest);
    Ok((out, any))
}

fn variable(rest: &str) -> Result<(&str, &str), Wrong> {
    let valid = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    rest.split_once('}').filter(|(name, _)| valid(name)).ok_or_else(|| {
        let hint = "write ${NAME} with letters, digits and _, or $${ for a plain ${";
        Wrong::new("unknown-variable", "holds ${ that begins no variable", hint)
    })
}

fn unset(name: &str, environment: &Environment) -> Wrong {
    let near = nearest(name, environment.keys().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean `${{{near}}}`? set {name} otherwise"),
        None => format!("set {name} before the start"),
    };
    Wrong::new("unknown-variable", format!("the environment variable `{name}` is not set"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::from([("KAFKA_PASSWORD".to_owned(), "hush".to_owned()), ("EMPTY".to_owned(), String::new())])
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match replace(text, &environment()) {
            Ok((text, any)) => format!("{text} {any}"),
            Err(wrong) => format!("{}; {}", wrong.message, wrong.hint),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn variables_escapes_and_plain_dollars() {
        check("a ${KAFKA_PASSWORD}b", "a hushb true");
        check("$${KAFKA_PASSWORD}", "${KAFKA_PASSWORD} false");
        check("$5 and ${EMPTY}.", "$5 and . true");
        check("${KAFKA_PASSWORD}${KAFKA_PASSWORD}", "hushhush true");
    }

    #[test]
    fn a_misspelt_variable_is_named_and_no_value_is_shown() {
        check(
            "${KAFKA_PASSWRD}",
            "the environment variable `KAFKA_PASSWRD` is not set; did you mean `${KAFKA_PASSWORD}`? set KAFKA_PASSWRD otherwise",
        );
        let hint = "holds ${ that begins no variable; write ${NAME} with letters, digits and _, or $${ for a plain ${";
        check("${KAFKA", hint);
        check("${}", hint);
        check("${1A}", hint);
    }
}
