//! From the setting to a client: a folder, or a bucket of a store that speaks S3.

use crate::config::Components;
use crate::model::Fault;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// How long one request is repeated: whoever waits for longer asks again, and says so.
const RETRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(10);

type Opened = (Arc<dyn ObjectStore>, Path);

/// The client, and what all names in it begin with.
pub(super) fn open(settings: &Components) -> Result<Opened, Fault> {
    match settings.store.split_once("://") {
        None => folder(&settings.store),
        Some(("s3", rest)) => bucket(rest, settings),
        Some((scheme, _)) => Err(unusable(&settings.store, &format!("there is no client for {scheme}://"))),
    }
}

fn folder(store: &str) -> Result<Opened, Fault> {
    let prefix = Path::from_absolute_path(store).map_err(|error| unusable(store, &error.to_string()))?;
    Ok((Arc::new(LocalFileSystem::new().with_fsync(true)), prefix))
}

/// Keys, region and endpoint come from the properties, or else from the environment as of other programs (`AWS_…`).
fn bucket(rest: &str, settings: &Components) -> Result<Opened, Fault> {
    let failed = |what: String| unusable(&settings.store, &what);
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(failed("it names no bucket".to_owned()));
    }
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: PATIENCE, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    for (name, value) in &settings.properties {
        let key: AmazonS3ConfigKey = name.parse().map_err(|error| failed(format!("property {name}: {error}")))?;
        builder = builder.with_config(key, value);
    }
    let client = builder.build().map_err(|error| failed(error.to_string()))?;
    let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| failed(error.to_string()))?;
    Ok((Arc::new(client), prefix))
}

fn unusable(store: &str, what: &str) -> Fault {
    Fault::fatal("components-unusable", format!("[components] store {store}: {what}"))
        .hint("name a folder, or a bucket as s3://BUCKET/PREFIX")
}
