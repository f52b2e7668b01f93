//! What a guest asks of its state, whatever it hands over: an answer of the right shape, or a refusal.

use super::puppet::Map;
use crate::model;
use crate::plugin::bindings::pelton::plugin::state::{Column, Host};
use crate::plugin::host::{Data, Quota, Refusal};
use crate::plugin::pace::{Pace, Pulse, Ticks};
use proptest::collection::vec;
use proptest::prelude::*;
use std::pin::pin;
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
    match answer.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("nobody ticked"),
    }
}

proptest! {
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
