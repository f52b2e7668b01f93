//! What a guest asks of its state and says for the log and the metrics, whatever it hands over: an answer of the right shape, or a refusal.

use super::puppet::Map;
use crate::metrics::{Custom, ProcessorMetrics, Registry};
use crate::model;
use crate::plugin::bindings::pelton::plugin::log::{Host as _, Level};
use crate::plugin::bindings::pelton::plugin::metrics::Host as _;
use crate::plugin::bindings::pelton::plugin::state::{Column, Host};
use crate::plugin::host::{Data, Quota, Refusal};
use crate::plugin::log::{Gate, GuestLine, GuestLog};
use crate::plugin::pace::{Pace, Pulse, Ticks};
use proptest::collection::vec;
use proptest::prelude::*;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

fn data() -> Data {
    let quota = Quota { memory: 1 << 20, output_bytes: 1 << 20, stack_bytes: 1 << 16 };
    let pace = Pace::Polled(Arc::new(Pulse::new(Ticks::default())));
    Data::new(quota, pace).with_state(Some(Arc::new(Mutex::new(Map::default()))), 1)
}

fn ask(store: u32, bytes: Vec<u8>, lengths: Vec<i32>) -> wasmtime::Result<Column> {
    let mut data = data();
    let answer = pin!(data.get_many(store, Column { bytes, lengths }));
    now(answer)
}

/// The result of what nobody makes wait.
fn now<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("nobody ticked"),
    }
}

type Counts = Vec<(String, u64)>;
type Values = Vec<(String, Vec<f64>)>;

/// What is counted of these reports, or the refusal.
fn report(reports: Vec<(Counts, Values)>) -> Result<Custom, String> {
    let mut data = data();
    for (counts, values) in reports {
        let refused = |error: wasmtime::Error| error.downcast_ref::<Refusal>().unwrap().to_string();
        now(pin!(data.report(counts, values))).map_err(refused)?;
    }
    Ok(data.leave())
}

/// How many series a page has after these counts were committed.
fn series(custom: &Custom) -> usize {
    let registry = Registry::default();
    registry.during(|| ProcessorMetrics::new("p").custom.committed(custom));
    registry.render().lines().filter(|line| line.starts_with("pelton_plugin_custom")).count()
}

#[test]
fn a_report_has_an_end() {
    let counts = |n: usize| (0..n).map(|n| (format!("n{}", n % 7), 1)).collect::<Vec<_>>();
    let values = |n: usize| vec![("v".to_owned(), vec![1.0; n])];
    assert!(report(vec![(counts(999), values(65_536))]).is_ok());
    assert!(report(vec![(counts(1000), values(0))]).unwrap_err().contains("more than 1000"));
    assert!(report(vec![(counts(0), values(65_537))]).unwrap_err().contains("65536"));
}

#[test]
fn what_a_call_counted_is_gone_with_the_next_one() {
    let batch = Arc::new(model::Batch { offsets: vec![5], ..model::Batch::default() });
    let mut data = data();
    data.enter(&batch);
    now(pin!(data.report(vec![("a".to_owned(), 1)], Vec::new()))).unwrap();
    data.enter(&batch);
    assert!(data.leave().is_empty(), "a call that was given up counts nothing");
    assert_eq!(Arc::strong_count(&batch), 1, "and lets its batch go");
}

#[derive(Default)]
struct Places(Mutex<Vec<Option<i64>>>);

impl GuestLog for Places {
    fn line(&self, line: &GuestLine<'_>) {
        self.0.lock().unwrap().push(line.offset);
    }

    fn suppressed(&self, _: u64) {}
}

#[test]
fn a_line_is_about_a_record_of_its_batch_whatever_the_guest_says() {
    let places = Arc::new(Places::default());
    let mut data = data().with_log(Arc::new(Gate::new(places.clone(), 100)));
    let say = |data: &mut Data, offset| now(pin!(data.write(Level::Info, "x".to_owned(), Vec::new(), offset))).unwrap();
    say(&mut data, Some(6));
    data.enter(&Arc::new(model::Batch { offsets: vec![5, 6, 9], ..model::Batch::default() }));
    [None, Some(9), Some(7), Some(i64::MIN)].into_iter().for_each(|offset| say(&mut data, offset));
    data.leave();
    say(&mut data, Some(9));
    assert_eq!(*places.0.lock().unwrap(), [None, Some(5), Some(9), Some(5), Some(5), None]);
}

proptest! {
    #[test]
    fn numbers_of_any_shape_are_bounded(
        counts in vec(("[a-c_\"\n]{0,3}|.{0,80}", any::<u64>()), 0..200),
        values in vec((".{0,3}", vec(any::<f64>(), 0..5)), 0..200),
    ) {
        let custom = report(vec![(counts.clone(), values.clone()), (counts, values)]).unwrap();
        prop_assert!(series(&custom) <= 1 + 50 * 25);
    }

    #[test]
    fn keys_of_any_shape_are_answered_or_refused(
        store in prop_oneof![9 => Just(0u32), 1 => any::<u32>()],
        bytes in vec(any::<u8>(), 0..12),
        lengths in vec(prop_oneof![9 => 0..4i32, 1 => any::<i32>()], 0..5),
    ) {
        let column = model::Column { bytes: bytes.clone(), lengths: lengths.clone() };
        let good = store == 0 && column.check() && lengths.iter().all(|&length| length >= 0);
        match ask(store, bytes, lengths.clone()) {
            Ok(values) => prop_assert!(good && values.lengths == vec![-1; lengths.len()]),
            Err(error) => {
                let refusal = error.downcast_ref::<Refusal>();
                prop_assert!(!good && matches!(refusal, Some(Refusal::Malformed(_))), "{:?}", error);
            }
        }
    }
}
