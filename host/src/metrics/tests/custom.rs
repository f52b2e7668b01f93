//! What plugins count themselves.

use super::lint::{Sample, lint};
use crate::metrics::{Custom, ProcessorMetrics, Registry, names};

fn own(page: &[Sample]) -> Vec<&Sample> {
    page.iter().filter(|sample| sample.name.starts_with("pelton_plugin_custom")).collect()
}

fn dropped(registry: &Registry) -> u64 {
    registry.total(names::PLUGIN_CUSTOM_DROPPED)
}

#[test]
fn counts_and_values_of_several_calls_come_together() {
    let registry = Registry::default();
    registry.during(|| {
        let metrics = ProcessorMetrics::new("p").custom;
        let mut tally = Custom::default();
        for _ in 0..2 {
            let mut call = Custom::default();
            call.count("orders", 3);
            call.count("orders", 1);
            call.observe("price", &[0.1, 0.1, 0.1, 7.0, 1e9]);
            tally.merge(call);
        }
        assert!(!metrics.committed(&tally), "nothing was left out");
        metrics.committed(&Custom::default());
    });
    let page = lint(&registry.render());
    let value = |name: &str, last: &str| {
        let found = page.iter().find(|s| s.name == name && s.labels.last().unwrap().1 == last);
        found.map(|sample| sample.value)
    };
    assert_eq!(value("pelton_plugin_custom_total", "orders"), Some(8.0));
    assert_eq!(value("pelton_plugin_custom_count", "price"), Some(10.0));
    assert_eq!(value("pelton_plugin_custom_bucket", "0.05"), Some(0.0));
    assert_eq!(value("pelton_plugin_custom_bucket", "0.1"), Some(6.0), "a mean of equal values stays in its bucket");
    assert_eq!(value("pelton_plugin_custom_bucket", "10"), Some(8.0));
    let sum = value("pelton_plugin_custom_sum", "price").unwrap();
    assert!((sum - 2_000_000_014.6).abs() < 1e-3, "{sum}");
    assert_eq!(dropped(&registry), 0);
}

#[test]
fn what_is_no_measure_or_no_name_is_dropped_counted_and_told_once() {
    let registry = Registry::default();
    let wrong = ["", "Upper", "a b", "a\"b", "a\nb", "ünder", "a-b", &"x".repeat(65)];
    registry.during(|| {
        let metrics = ProcessorMetrics::new("p").custom;
        let mut call = Custom::default();
        wrong.iter().for_each(|name| call.count(name, 1));
        wrong.iter().for_each(|name| call.observe(name, &[1.0]));
        call.observe("v", &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.1, 1e300, 2e15]);
        call.count("c", u64::MAX);
        assert!(metrics.committed(&call), "told the first time");
        assert!(!metrics.committed(&call), "and only then");
    });
    assert_eq!(dropped(&registry), 2 * (2 * wrong.len() as u64 + 8));
    let page = lint(&registry.render());
    assert_eq!(own(&page).len(), 1, "the count of what was dropped: {page:?}");
}

#[test]
fn a_plugin_that_makes_names_up_gets_fifty_and_its_own_alone() {
    let registry = Registry::default();
    registry.during(|| {
        let (wild, tame) = (ProcessorMetrics::new("wild"), ProcessorMetrics::new("tame"));
        for call in 0..100 {
            let mut custom = Custom::default();
            for n in 0..100 {
                custom.count(&format!("c{call}_{n}"), 1);
                custom.observe(&format!("v{call}_{n}"), &[1.0]);
            }
            wild.custom.committed(&custom);
        }
        let mut custom = Custom::default();
        custom.count("orders", 1);
        assert!(!tame.custom.committed(&custom));
    });
    let page = lint(&registry.render());
    let of = |processor: &str| own(&page).into_iter().filter(|s| s.labels[0].1 == processor).count();
    assert!(of("wild") <= 1 + 50 * 25, "{}", of("wild"));
    assert_eq!(of("tame"), 2);
    assert_eq!(dropped(&registry), 100 * 200 - 50);
}

#[test]
fn counts_stay_where_they_are_rather_than_begin_again() {
    let mut tally = Custom::default();
    for _ in 0..3 {
        let mut call = Custom::default();
        (0..20_000).for_each(|_| call.count("c", 1_000_000_000_000_000));
        tally.merge(call);
    }
    let registry = Registry::default();
    registry.during(|| ProcessorMetrics::new("p").custom.committed(&tally));
    assert_eq!(registry.total(names::PLUGIN_CUSTOM), u64::MAX);
}
