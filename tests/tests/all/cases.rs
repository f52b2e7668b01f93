//! Each folder of `tests/cases` on both logs. A new case adds no Rust.

use pelton_tests::cases;
use std::panic::catch_unwind;

#[test]
fn every_case_gives_the_same_on_both_logs() {
    let all = cases::all();
    assert!(!all.is_empty(), "no cases");
    let failed: Vec<String> =
        all.iter().filter(|c| catch_unwind(|| c.check()).is_err()).map(|c| c.name.clone()).collect();
    assert!(failed.is_empty(), "cases that failed: {failed:?}");
}
