//! Another version of the plugin in the place of the one that runs, and what becomes of it when it fails.

use super::rig::{Rig, actor};
use crate::plugin::tests::puppet::{WIT, component, file};
use crate::plugin::{Component, Engine};
use crate::task::{Failed, Step, Version};
use std::sync::Arc;
use std::time::Duration;

const ACTOR: &str = include_str!("actor.wat");
/// Where a count becomes a digit, and where a record that begins with `T` traps.
const DIGIT: &str = "(i32.add (i32.const 48) (local.get $count))";
const TRAP: &str = "(if (i32.eq (local.get $verb) (i32.const 0x54)) (then (unreachable)))";
const INIT: &str = "(param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 51200))";

/// The actor with letters for digits, so that outputs say which version made them, and more changes.
fn lettered(engine: &Engine, changes: &[(&str, &str)]) -> Arc<Component> {
    let letters = (DIGIT, "(i32.add (i32.const 64) (local.get $count))");
    let all =
        if changes.iter().any(|(from, _)| *from == DIGIT) { changes.to_vec() } else { [changes, &[letters]].concat() };
    let changed = all.iter().fold(ACTOR.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let (_dir, path) = file(&component(&changed, WIT, "aggregate-plugin"));
    engine.load(&path).unwrap()
}

/// Says how many calls its instance has had, in place of a count.
fn remembering(engine: &Engine) -> Arc<Component> {
    lettered(engine, &[(DIGIT, "(i32.add (i32.const 48) (global.get $calls))")])
}

/// Traps at `p` too, which the version before can do.
fn trapping(engine: &Engine) -> Arc<Component> {
    let more = format!("{TRAP} {}", TRAP.replace("0x54", "0x70"));
    lettered(engine, &[(TRAP, &more)])
}

fn rig(records: &[(&str, &str)]) -> (Rig, Engine, Arc<Component>) {
    let (engine, first) = actor();
    (Rig::with(records, (engine.clone(), first.clone()), |_| ()), engine, first)
}

/// Makes a version the wanted one; on probation for a minute where there is one to go back to.
fn want(rig: &mut Rig, sequence: i64, component: &Arc<Component>, former: Option<&Arc<Component>>) {
    let until = rig.now() + Duration::from_secs(60);
    let version = Version {
        sequence,
        component: component.clone(),
        former: former.cloned(),
        probation_until_ms: until.as_millis() as i64,
    };
    rig.task().spec.versions.set(version);
}

fn failed(rig: &mut Rig) -> Option<Failed> {
    rig.task().spec.versions.failed()
}

#[test]
fn another_version_goes_on_with_the_state_of_the_one_before() {
    let (mut rig, engine, first) = rig(&[("k", "a"), ("k", "b")]);
    rig.settle(0);
    let second = lettered(&engine, &[]);
    want(&mut rig, 2, &second, Some(&first));
    rig.feed("in", &[("k", "c")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2", "cC"], "the third of its key, by the second version");
    assert_eq!((rig.task().version().sequence, failed(&mut rig)), (2, None));
    assert!(rig.task().spec.versions.is_everywhere(2) && !rig.task().spec.versions.is_everywhere(3));
    want(&mut rig, 3, &first, None);
    rig.feed("in", &[("k", "d")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2", "cC", "d4"]);
}

#[test]
fn what_was_not_committed_is_made_again_by_the_version_that_is_there_then() {
    let (mut rig, engine, first) = rig(&[("k", "a")]);
    rig.work();
    let second = lettered(&engine, &[]);
    want(&mut rig, 2, &second, Some(&first));
    rig.feed("in", &[("k", "b")]);
    rig.work();
    rig.abort();
    rig.settle(0);
    assert_eq!(rig.values("out"), ["aA", "bB"]);
}

#[test]
fn a_version_on_probation_is_blamed_for_what_the_one_before_can_do() {
    let (mut rig, engine, first) = rig(&[("k", "a")]);
    rig.settle(0);
    let second = trapping(&engine);
    want(&mut rig, 2, &second, Some(&first));
    rig.feed("in", &[("k", "b"), ("k", "p"), ("k", "c")]);
    assert!(matches!(rig.work(), Step::Until(_)), "it waits for another version");
    let blamed = failed(&mut rig).unwrap();
    assert!(blamed.sequence == 2 && blamed.reason.contains("trap") && blamed.reason.contains("in/0:2"), "{blamed:?}");
    rig.commit().unwrap();
    assert_eq!(rig.values("out"), ["a1", "bB"], "what it could do stays");
    want(&mut rig, 3, &first, None);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "bB", "p3", "c4"], "nothing is lost, and nothing done twice");
    assert!(rig.letters().is_empty() && failed(&mut rig).is_none());
}

/// An instance that was kept would know of records that the stores have moved past, and of one whose effects were dropped.
#[test]
fn a_version_that_comes_back_begins_with_a_fresh_instance() {
    let (engine, _) = actor();
    let first = remembering(&engine);
    let mut rig = Rig::with(&[("k", "a")], (engine.clone(), first.clone()), |_| ());
    rig.settle(0);
    rig.feed("in", &[("k", "b")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2"], "two calls of one instance");
    want(&mut rig, 2, &trapping(&engine), Some(&first));
    rig.feed("in", &[("k", "p")]);
    rig.work();
    assert!(failed(&mut rig).is_some());
    want(&mut rig, 3, &first, None);
    rig.settle(0);
    assert_eq!(rig.values("out").last().map(String::as_str), Some("p1"));
}

#[test]
fn a_record_that_breaks_both_is_to_blame_itself() {
    let (mut rig, engine, first) = rig(&[("k", "a")]);
    rig.settle(0);
    let second = trapping(&engine);
    want(&mut rig, 2, &second, Some(&first));
    rig.feed("in", &[("k", "b"), ("k", "T"), ("k", "c")]);
    rig.settle(0);
    assert_eq!((failed(&mut rig), rig.letters().len()), (None, 1));
    assert_eq!(rig.values("out"), ["a1", "bB", "cC"]);
    let letter = rig.letters().remove(0);
    assert_eq!(letter["pelton-plugin-digest"], second.digest, "by the version that met it");
}

#[test]
fn after_its_probation_a_version_stays() {
    let (mut rig, engine, first) = rig(&[("k", "a")]);
    let second = trapping(&engine);
    want(&mut rig, 2, &second, Some(&first));
    rig.settle(0);
    rig.clock.pass(Duration::from_secs(61));
    rig.feed("in", &[("k", "p"), ("k", "c")]);
    rig.settle(0);
    assert_eq!((failed(&mut rig), rig.letters().len()), (None, 1));
    assert_eq!(rig.values("out").last().map(String::as_str), Some("cB"));
}

#[test]
fn a_version_that_does_not_start_never_takes_over() {
    let (mut rig, engine, first) = rig(&[("k", "a")]);
    let second = lettered(&engine, &[(INIT, &INIT.replace("(i32.const 51200))", "(unreachable))"))]);
    want(&mut rig, 2, &second, Some(&first));
    rig.settle(0);
    assert_eq!((failed(&mut rig).map(|failed| failed.sequence), rig.task().version().sequence), (Some(2), 0));
    assert_eq!(rig.values("out"), ["a1"], "the one before goes on");
    let third = lettered(&engine, &[]);
    want(&mut rig, 3, &third, Some(&first));
    rig.feed("in", &[("k", "b")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "bB"]);
}

#[test]
fn a_paused_processor_takes_nothing_until_it_is_resumed() {
    let (mut rig, ..) = rig(&[("k", "a")]);
    rig.task().spec.versions.pause(true);
    rig.settle(0);
    assert!(rig.values("out").is_empty() && !rig.task().is_idle());
    rig.task().spec.versions.pause(false);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1"]);
}
