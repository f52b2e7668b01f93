//! The command line's side, over a real connection.

use super::fake::Rig;
use crate::config::settings::{Admin, Application};
use crate::config::{Environment, parse};
use crate::http::{Client, Failure, Note, Reach};
use crate::model::Fault;
use serde_json::Value;
use std::path::Path;

const APPLICATION: &str = "application.id = \"app\"\n[log]\nkind = \"local\"\ndir = \"log\"\n[[processor]]\nname = \"p\"\n\
                           plugin = \"p.wasm\"\ninputs.in = \"t\"\n";

fn application(folder: &Path) -> Application {
    let mut application = parse(APPLICATION, Path::new("app.toml"), &Environment::new()).unwrap();
    application.state_dir = folder.to_owned();
    application
}

fn find(application: &Application) -> Result<Client, Failure> {
    Client::find(Reach { application, host: None })
}

#[test]
fn a_host_is_found_by_its_note() {
    let mut rig = Rig::plain();
    let application = application(rig.folder.path());
    let client = find(&application).unwrap();
    let status: Value = client.get(&["v1", "status"], &[]).unwrap();
    assert_eq!(status["application"], "app");
    let odd = client.get::<Value>(&["v1", "processors", "a/b?c"], &[]).unwrap_err();
    let Failure::Refused { status, code, message, .. } = odd else { panic!("{odd}") };
    assert_eq!((status, code.as_str(), message.as_str()), (404, "processor-unknown", "there is no processor a/b?c"));
    let value: Value = client.get(&["v1", "state", "p", "s"], &[("key", "a&b = c+%".into())]).unwrap();
    assert_eq!(value["key"], "a&b = c+%");
    drop(rig.surface.take());
    let gone = client.get::<Value>(&["v1", "status"], &[]).unwrap_err();
    assert!(matches!(gone, Failure::NotRunning(_)), "{gone}");
    let gone = find(&application).map(drop).unwrap_err();
    assert!(matches!(&gone, Failure::NotRunning(said) if said.lines().count() == 1), "{gone}");
}

#[test]
fn a_note_that_was_left_behind_is_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let note =
        |address: &str, pid| Note { address: address.into(), pid, instance: "i".into(), application: "app".into() };
    let application = application(folder.path());
    note("http://127.0.0.1:1", u32::MAX).put(folder.path()).unwrap();
    let dead = find(&application).map(drop).unwrap_err();
    assert!(matches!(&dead, Failure::NotRunning(said) if said.contains("process 4294967295 is gone")), "{dead}");
    // another process has the number
    note("http://127.0.0.1:1", std::process::id()).put(folder.path()).unwrap();
    let silent = find(&application).unwrap().get::<Value>(&["v1", "status"], &[]).unwrap_err();
    assert!(matches!(&silent, Failure::NotRunning(said) if said.contains("nothing listens")), "{silent}");
    std::fs::write(folder.path().join("admin.json"), "{").unwrap();
    assert!(matches!(find(&application), Err(Failure::Unreachable(_))));
}

#[test]
fn the_token_of_the_file_goes_along_and_a_named_host_needs_no_note() {
    let rig = Rig::new(&Admin { listen: "127.0.0.1:0".into(), token: Some("secret".into()), ..Admin::default() });
    let mut application = application(Path::new("/nowhere"));
    let ask = |application: &Application, host: Option<&str>| {
        Client::find(Reach { application, host })?.get::<Value>(&["v1", "status"], &[])
    };
    let refused = ask(&application, Some(&rig.address)).unwrap_err();
    assert!(matches!(&refused, Failure::Refused { status: 401, .. }), "{refused}");
    application.admin.token = Some("secret".into());
    assert_eq!(ask(&application, Some(&format!("http://{}/", rig.address))).unwrap()["application"], "app");
    for wrong in ["http://", "a b", "mailto:x://y"] {
        assert!(matches!(ask(&application, Some(wrong)), Err(Failure::Unreachable(_))), "{wrong}");
    }
}

#[test]
fn what_the_host_says_is_said() {
    let rig = Rig::plain();
    let client = find(&application(rig.folder.path())).unwrap();
    *rig.fake.fault.lock().unwrap() =
        Some(Fault::fatal("stores-differ", "the stores differ").hint("say --no-rollback"));
    let refused = client.post::<Value>(&["v1", "processors", "p", "deploy"], &[], Some(b"x".to_vec())).unwrap_err();
    assert_eq!(refused.to_string(), "the stores differ (say --no-rollback)");
}
