//! What each task of a processor says of itself, where the page shows them together: how many, the most, the first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A value by partition. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Levels {
    values: Arc<Mutex<BTreeMap<i32, f64>>>,
}

impl Levels {
    /// Sets the value of a partition, or takes it away, and where that changes anything shows what there is then: under the lock, so
    /// that what was changed last is what is shown.
    pub(super) fn change(&self, partition: i32, value: Option<f64>, show: impl FnOnce(&BTreeMap<i32, f64>)) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match value {
            Some(value) => values.insert(partition, value),
            None => values.remove(&partition),
        };
        if before != value {
            show(&values);
        }
    }
}
