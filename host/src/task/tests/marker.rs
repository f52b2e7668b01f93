//! Records with which the host dies: run one by one, and given up after three deaths alone.

use super::rig::{Restart, Rig, fresh_actor};
use super::ticks::until_in_flight;
use crate::task::{State, Step};

/// The second record kills the host, as far as the marker can tell: it never comes back.
const RECORDS: [(&str, &str); 4] = [("k", "a"), ("k", "Loop"), ("l", "b"), ("k", "c")];

fn rig() -> Rig {
    Rig::with(&RECORDS, fresh_actor(), |_| ())
}

/// Dies with a call in flight.
fn die(rig: &mut Rig) {
    until_in_flight(rig);
    rig.die();
}

#[test]
fn three_deaths_alone_end_a_record_and_its_neighbours_are_done_once() {
    let mut rig = rig();
    die(&mut rig);
    for _ in 0..3 {
        assert_eq!(rig.step(), Step::Worked, "the first record goes alone, and comes back");
        die(&mut rig);
        assert!(rig.letters().is_empty());
    }
    rig.work();
    assert!(!rig.task().is_idle() && rig.task().has_progress());
    assert_eq!(rig.step(), Step::Idle, "nothing is called before that is committed");
    rig.settle(0);
    rig.settle(0);
    let letter = rig.letters().remove(0);
    let of = |name: &str| letter[name].as_str();
    assert_eq!((of("pelton-verdict"), of("pelton-code"), of("pelton-attempts")), ("host-crash", "host-crash", "3"));
    assert_eq!(of("pelton-source-offset"), "1");
    assert_eq!((rig.values("out"), rig.committed()), (vec!["a1".into(), "b1".into(), "c2".to_owned()], Some(4)));
}

#[test]
fn what_is_given_up_stays_so_through_an_abort() {
    let mut rig = rig();
    (0..4).for_each(|_| die(&mut rig));
    rig.work();
    rig.abort();
    rig.work();
    assert_eq!(rig.step(), Step::Idle);
    rig.settle(0);
    rig.settle(0);
    assert_eq!(rig.buried(), [("1".to_owned(), "host-crash".to_owned())]);
    assert_eq!(rig.values("out"), ["a1", "b1", "c2"]);
}

#[test]
fn a_stop_in_the_middle_is_no_death() {
    let mut rig = rig();
    for _ in 0..5 {
        until_in_flight(&mut rig);
        rig.restart(Restart::Closed);
    }
    assert_eq!(rig.task().state(), &State::Running);
    assert!(rig.task().marker.suspects().is_empty() && rig.letters().is_empty());
}
