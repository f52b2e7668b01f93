//! `pelton check`: everything that `run` refuses, without running.

use super::args::CheckArgs;
use super::host::{Refusals, Report};
use super::{Out, host, load};
use crate::config::ConfigErrors;
use crate::model::Fault;
use serde_json::{Value, json};

pub(super) fn check(args: &CheckArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    match look(args) {
        Ok((_, report)) if args.json => found(&report, out),
        Ok((id, report)) => text(&id, &report, out),
        Err(error) => {
            if args.json {
                refused(&error, out)?;
            }
            Err(error)
        }
    }
}

fn look(args: &CheckArgs) -> anyhow::Result<(String, Report)> {
    let mut application = load(&args.file)?;
    if let Some(folder) = &args.state_dir {
        application.state_dir = std::path::absolute(folder)?;
    }
    application.new_stores.clone_from(&args.new_store);
    let report = host::check(&application)?;
    Ok((application.id, report))
}

fn text(id: &str, report: &Report, out: &mut Out<'_>) -> anyhow::Result<()> {
    for (name, plugin, version) in &report.processors {
        writeln!(out.to, "processor {name}: plugin {plugin} {version}")?;
    }
    for topic in &report.creates {
        writeln!(out.to, "run would create topic {topic}")?;
    }
    Ok(writeln!(out.to, "application {id} can run")?)
}

fn found(report: &Report, out: &mut Out<'_>) -> anyhow::Result<()> {
    let processors = report
        .processors
        .iter()
        .map(|(name, plugin, version)| json!({"name": name, "plugin": plugin, "version": version}));
    let all: Vec<_> = processors.collect();
    Ok(writeln!(out.to, "{}", json!({"processors": all, "creates": report.creates}))?)
}

fn refused(error: &anyhow::Error, out: &mut Out<'_>) -> anyhow::Result<()> {
    let refusals = if let Some(refusals) = error.downcast_ref::<Refusals>() {
        refusals.faults().iter().map(refusal).collect()
    } else if let Some(errors) = error.downcast_ref::<ConfigErrors>() {
        mistakes(errors)
    } else {
        vec![json!({"code": null, "message": format!("{error:#}"), "hint": null})]
    };
    Ok(writeln!(out.to, "{}", json!({"refusals": refusals}))?)
}

fn refusal(fault: &Fault) -> Value {
    json!({"code": fault.code, "message": fault.message, "hint": fault.hint})
}

/// Mistakes in the file have a place too.
fn mistakes(errors: &ConfigErrors) -> Vec<Value> {
    let file = errors.file.display().to_string();
    let mistake = errors.mistakes.iter().map(|m| {
        json!({
            "code": m.code, "message": m.message, "hint": m.hint,
            "key": m.path, "file": file, "line": m.line, "column": m.column,
        })
    });
    mistake.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit;
    use crate::plugin::tests::puppet::starter;
    use std::path::Path;

    /// What `check --json` says of an application in `dir`, and its exit code. A processor is its plugin and more lines.
    fn say(dir: &Path, processors: &[(&Path, &str)], more: &str) -> (Value, u8) {
        let processor = |(n, (plugin, lines)): (usize, &(&Path, &str))| {
            let names = "inputs.input = \"in\"\noutputs.output = \"out\"\n";
            format!("[[processor]]\nname = \"p{n}\"\nplugin = \"{}\"\n{names}{lines}\n", plugin.display())
        };
        let processors: String = processors.iter().enumerate().map(processor).collect();
        let log = "[log]\nkind = \"local\"\ndir = \"log\"\ncreate_topics = true\n";
        let file = dir.join("app.toml");
        std::fs::write(&file, format!("application.id = \"app\"\n{more}{log}{processors}")).unwrap();
        let mut printed = Vec::new();
        let result = check(
            &CheckArgs { file, state_dir: None, new_store: Vec::new(), json: true },
            &mut Out { to: &mut printed, terminal: false },
        );
        let code = result.map_or_else(|error| exit::code(&error), |()| exit::OK);
        (serde_json::from_slice(&printed).unwrap(), code)
    }

    fn codes(said: &Value) -> Vec<&str> {
        said["refusals"].as_array().unwrap().iter().map(|refusal| refusal["code"].as_str().unwrap()).collect()
    }

    fn files(dir: &Path) -> Vec<String> {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn every_bad_plugin_is_told_at_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("core.wasm"), b"\0asm\x01\0\0\0").unwrap();
        let plugins = ["missing.wasm", "core.wasm"].map(|plugin| (Path::new(plugin), ""));
        let (said, code) = say(dir.path(), &plugins, "");
        assert_eq!((codes(&said), code), (vec!["plugin-missing", "plugin-core-module"], exit::REFUSED));
        let second = &said["refusals"][1];
        assert!(second["message"].as_str().unwrap().starts_with("processor p1: "), "{second}");
        assert!(second["hint"].as_str().unwrap().contains("pelton build"), "{second}");
        assert_eq!(files(dir.path()), ["app.toml", "core.wasm"]);
    }

    #[test]
    fn mistakes_in_the_file_have_their_places() {
        let dir = tempfile::tempdir().unwrap();
        let (said, code) = say(dir.path(), &[(Path::new("missing.wasm"), "")], "application.wokers = 1\n");
        assert_eq!((codes(&said), code), (vec!["unknown-key"], exit::REFUSED));
        let only = &said["refusals"][0];
        assert_eq!((&only["key"], &only["line"]), (&json!("application.wokers"), &json!(2)));
        assert!(only["hint"].as_str().unwrap().contains("workers"), "{only}");
    }

    #[test]
    fn an_application_that_can_run_leaves_nothing_behind() {
        let (dir, (_kept, plugin)) = (tempfile::tempdir().unwrap(), starter());
        let (said, code) = say(dir.path(), &[(&plugin, "")], "");
        assert_eq!(code, exit::OK, "{said}");
        assert_eq!(said["processors"][0]["plugin"], "puppet");
        assert_eq!(said["creates"][0], "in");
        assert_eq!(files(dir.path()), ["app.toml"]);
    }

    #[test]
    fn plugins_that_do_not_start_are_told_with_the_setting() {
        let (dir, (_kept, plugin)) = (tempfile::tempdir().unwrap(), starter());
        let cases = [
            ("settings.v = \"f\"", "p0: settings: plugin puppet does not start: no thanks"),
            ("settings.v = \"t\"", "p1: settings: plugin puppet does not start: plugin trapped"),
            ("settings.v = \"l\"\nlimits.init_deadline = \"100ms\"", "p2: limits.init_deadline: plugin puppet"),
            ("settings.v = \"k\"\nlimits.memory = \"2MiB\"", "p3: limits.memory: plugin puppet"),
            ("settings.v = \"k\"\nlimits.memory = \"8MiB\"", ""),
        ];
        let (said, code) = say(dir.path(), &cases.map(|(lines, _)| (&*plugin, lines)), "");
        assert_eq!((codes(&said), code), (vec!["plugin-init-refused"; 4], exit::REFUSED), "{said}");
        for ((_, says), refusal) in cases.iter().zip(said["refusals"].as_array().unwrap()) {
            assert!(refusal["message"].as_str().unwrap().contains(says), "{says}: {refusal}");
        }
        assert_eq!(files(dir.path()), ["app.toml"]);
    }
}
