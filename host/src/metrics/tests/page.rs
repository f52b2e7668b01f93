//! The reference page is fresh, and says everything.

use crate::metrics::{metrics_page, names};
use std::path::PathBuf;

#[test]
fn metrics_page_is_fresh() {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../docs/metrics.md");
    if std::env::var_os("PELTON_BLESS").is_some() {
        std::fs::write(&path, metrics_page()).unwrap();
    }
    let stale = std::fs::read_to_string(&path).unwrap_or_default() != metrics_page();
    assert!(!stale, "docs/metrics.md is stale; run: PELTON_BLESS=1 cargo test --release --lib metrics_page");
}

#[test]
fn every_metric_has_one_row() {
    let page = metrics_page();
    for metric in names::ALL {
        let row = format!("| `{}` | ", metric.name);
        let bounds = usize::from(!metric.bounds().is_empty());
        assert_eq!(page.matches(&row).count(), 1 + bounds, "{}", metric.name);
    }
}
