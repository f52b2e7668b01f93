//! Two hosts: one that has every partition, and one that says so to whoever asks it.

use super::rig::{App, until};
use crate::model::state::ScanRange;
use crate::runtime::control::state::{Answer, Get, Scan, Value};

fn get(key: &[u8]) -> Get {
    Get { processor: "proc".into(), store: "store".into(), key: key.to_vec(), partition: None }
}

#[test]
fn who_has_a_key_is_told_with_its_address() {
    let app = App::counting(3);
    let holder = app.host(1);
    app.feed(&[(b"a", "x")]);
    holder.idle();
    let asked = app.host(2);
    // nobody has said where it is, and this host may get partitions yet
    assert_eq!(asked.control.get(&get(b"a")).unwrap_err().code, "state-not-here-yet");
    let (ready, reasons) = (asked.status().ready, asked.status().reasons);
    assert!(!ready && reasons[0].contains("waiting for its consumer group"), "{reasons:?}");
    holder.control.listens_at("http://127.0.0.1:1".into());
    let instance = Some(holder.control.identity().instance.clone());
    let found = |address: &str| {
        let answer = asked.control.get(&get(b"a")).ok()?;
        let there = matches!(&answer, Answer::Elsewhere { instance: i, address: Some(a), .. } if *i == instance && a == address);
        there.then_some(())
    };
    until("the other host knows", || found("http://127.0.0.1:1"));
    // another address is told for what is open already
    holder.control.listens_at("http://127.0.0.1:2".into());
    until("the other host knows the new one", || found("http://127.0.0.1:2"));
    let one = Scan {
        processor: "proc".into(),
        store: "store".into(),
        partition: Some(2),
        range: ScanRange::default(),
        from: None,
    };
    assert!(matches!(asked.control.scan(&one).unwrap(), Answer::Elsewhere { partition: 2, address: Some(_), .. }));
    // lag is that of the group, whoever asks
    assert_eq!(asked.status().processors[0].lag, Some(0));
    holder.stop().unwrap();
    // the group gives everything to the other one, which finds what was there
    let here =
        until("the key has moved", || asked.control.get(&get(b"a")).ok().filter(|a| matches!(a, Answer::Here(_))));
    assert!(matches!(here, Answer::Here(Value { value: Some(value), .. }) if value == [1]));
}

#[test]
fn without_a_topic_for_it_hosts_work_as_ever() {
    let app = App::counting(1);
    let host = app.host(1);
    host.idle();
    app.log.delete_topic("app-hosts").unwrap();
    host.control.listens_at("http://127.0.0.1:1".into());
    app.feed(&[(b"a", "x")]);
    until("it is counted", || {
        let answer = host.control.get(&get(b"a")).unwrap();
        matches!(answer, Answer::Here(Value { value: Some(_), .. })).then_some(())
    });
    assert!(host.status().ready, "{:?}", host.status().reasons);
    host.stop().unwrap();
}
