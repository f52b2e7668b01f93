//! Every documented key, written wrong in each way that users have: refused, with its path and what was meant.

use super::load;
use crate::config::page;
use crate::config::schema::{self, Kind, SETTINGS, Setting};

/// A whole file in which the setting stands on a line of its own.
fn sample(setting: &Setting) -> String {
    let text = page::sample();
    if setting.path == "log.dir" {
        return text
            .replace("kind = \"kafka\"", "kind = \"local\"")
            .replace("brokers = \"127.0.0.1:9092\"", "dir = \"log\"");
    }
    if setting.path.starts_with("processor.inputs.<input>.") {
        let table = "[processor.inputs.orders]\ntopic = \"orders\"\nstart = \"latest\"\n";
        return text.replace("inputs.orders = \"orders\"\n", "") + table;
    }
    text
}

/// The path as it stands in the samples.
fn concrete(pattern: &str) -> String {
    pattern.replace("<topic>", "orders").replace("<input>", "orders").replace("<output>", "counts")
}

struct Case {
    setting: &'static Setting,
    lines: Vec<String>,
    /// Where the setting stands.
    at: usize,
    key: String,
}

fn cases() -> Vec<Case> {
    SETTINGS.iter().map(case).collect()
}

fn case(setting: &'static Setting) -> Case {
    let lines: Vec<String> = sample(setting).lines().map(str::to_owned).collect();
    let (section, key) = schema::split(setting.path);
    let path = concrete(section);
    let (header, key) = match path.as_str() {
        "processor.inputs" | "processor.outputs" => {
            ("[[processor]]".to_owned(), concrete(&setting.path["processor.".len()..]))
        }
        "processor" => ("[[processor]]".to_owned(), key.to_owned()),
        _ => (format!("[{path}]"), key.to_owned()),
    };
    let start = lines.iter().position(|l| *l == header).unwrap_or_else(|| panic!("no {header}"));
    let line = lines[start..].iter().position(|l| l.starts_with(&format!("{key} = ")));
    let at = start + line.unwrap_or_else(|| panic!("no {key} below {header}"));
    Case { setting, lines, at, key }
}

impl Case {
    fn value(&self) -> &str {
        self.lines[self.at].split_once(" = ").unwrap().1
    }

    fn with_line(&self, line: &str) -> String {
        let mut lines = self.lines.clone();
        lines[self.at] = line.to_owned();
        lines.join("\n")
    }

    /// Asserts that the text is refused with this code, path and words in the hint, on line `line` (from 0) where given.
    #[track_caller]
    fn refused(&self, text: &str, code: &str, path: &str, hint: &str) {
        let errors = load(text).expect_err(&format!("{} was taken in\n{text}", self.setting.path));
        let found = errors.mistakes.iter().find(|m| m.code == code && m.path == path && m.hint.contains(hint));
        let found = found.unwrap_or_else(|| panic!("no {code} of {path} with {hint:?} in\n{errors}"));
        let line = text.lines().nth(found.line - 1).unwrap();
        assert!(line.contains(schema::split(path).1), "line {} is {line:?}: {found}", found.line);
    }

    fn section(&self) -> String {
        concrete(schema::split(self.setting.path).0)
    }

    /// Whether any name may stand here, so that a misspelt one cannot be told.
    fn is_free_name(&self) -> bool {
        self.setting.path.ends_with('>')
    }

    #[track_caller]
    fn misspelt(&self, key: &str) {
        let text = self.with_line(&format!("{key} = {}", self.value()));
        self.refused(&text, "unknown-key", &format!("{}.{key}", self.section()), &format!("`{}`", self.setting.path));
    }
}

#[test]
fn the_samples_are_right() {
    for case in cases() {
        load(&case.lines.join("\n")).unwrap_or_else(|e| panic!("{}: {e}", case.setting.path));
    }
}

#[test]
fn a_letter_dropped() {
    for case in cases().iter().filter(|c| !c.is_free_name()) {
        for i in 0..case.key.len() {
            let mut key = case.key.clone();
            key.remove(i);
            case.misspelt(&key);
        }
    }
}

#[test]
fn wrong_case_and_hyphens() {
    for case in cases().iter().filter(|c| !c.is_free_name()) {
        case.misspelt(&case.key.to_uppercase());
        let mut capital = case.key.clone();
        capital[..1].make_ascii_uppercase();
        case.misspelt(&capital);
        if case.key.contains('_') {
            case.misspelt(&case.key.replace('_', "-"));
        }
    }
}

#[test]
fn at_the_wrong_level() {
    for case in cases().iter().filter(|c| !c.is_free_name()) {
        for target in ["", "application", "log", "kafka", "processor.limits"] {
            if schema::children(target).any(|known| known == case.key) {
                continue;
            }
            let mut lines = case.lines.clone();
            let line = lines.remove(case.at);
            let header = format!("[{target}]");
            let at = if target.is_empty() { 0 } else { lines.iter().position(|l| *l == header).unwrap() + 1 };
            lines.insert(at, line);
            let path = schema::below(target, &case.key);
            case.refused(&lines.join("\n"), "unknown-key", &path, &format!("`{}`, under ", case.setting.path));
        }
    }
}

#[test]
fn set_twice() {
    for case in cases() {
        let text = case.with_line(&format!("{0}\n{0}", case.lines[case.at]));
        let line = format!("line {}", case.at + 1);
        case.refused(&text, "duplicate-key", &concrete(case.setting.path), &line);
    }
}

#[test]
fn of_the_wrong_type() {
    for case in cases() {
        let wrong = match case.setting.kind {
            Kind::Integer { .. } | Kind::Factor { .. } => format!("\"{}\"", case.value()),
            Kind::Switch => "\"true\"".to_owned(),
            Kind::Duration { .. } | Kind::Size { .. } | Kind::LetterLimit => "10".to_owned(),
            Kind::Text | Kind::Name | Kind::Topic | Kind::TopicOrTable | Kind::Path | Kind::Choice(_) => "5".to_owned(),
            Kind::ClientProperties | Kind::StoreProperties | Kind::TopicProperties | Kind::Codes | Kind::Free => {
                "\"x\"".to_owned()
            }
        };
        let path = concrete(case.setting.path);
        let text = case.with_line(&format!("{} = {wrong}", case.key));
        case.refused(&text, "wrong-type", &path, "write it as");
        if let Kind::Duration { .. } | Kind::Size { .. } | Kind::LetterLimit = case.setting.kind {
            case.refused(&case.with_line(&format!("{} = \"10\"", case.key)), "wrong-type", &path, "write it as");
        }
        if let Kind::Choice(words) = case.setting.kind {
            let near = words[0].replacen(&words[0][1..2], "", 1);
            let hint = format!("did you mean {:?}", words[0]);
            case.refused(&case.with_line(&format!("{} = \"{near}\"", case.key)), "out-of-range", &path, &hint);
        }
    }
}

#[test]
fn out_of_range() {
    for case in cases() {
        let beyond = match case.setting.kind {
            Kind::Integer { min, max } => vec![(min - 1).to_string(), (max + 1).to_string(), "9".repeat(30)],
            Kind::Factor { min, max } => {
                let near = [min as f64 - 0.01, max as f64 + 0.01].map(|n| n.to_string());
                near.into_iter().chain(["nan", "inf", "-1", &"9".repeat(30)].map(str::to_owned)).collect()
            }
            Kind::LetterLimit => ["0%", "100%", "99.95%"].map(|limit| format!("{limit:?}")).into(),
            Kind::Duration { .. } => vec!["\"0ms\"".to_owned(), "\"1000h\"".to_owned()],
            Kind::Size { .. } => vec!["\"0B\"".to_owned(), "\"100000GiB\"".to_owned()],
            _ => vec![],
        };
        for value in beyond {
            let text = case.with_line(&format!("{} = {value}", case.key));
            case.refused(&text, "out-of-range", &concrete(case.setting.path), "at least");
        }
    }
}

#[test]
fn a_variable_with_a_typo() {
    for case in cases() {
        let text = case.with_line(&format!("{} = \"${{KAFKA_PASSWRD}}\"", case.key));
        case.refused(&text, "unknown-variable", &concrete(case.setting.path), "did you mean `${KAFKA_PASSWORD}`");
    }
}
