//! Components by their digests, in a place that all hosts of an application reach: a folder, or a store that speaks S3. The only room
//! that names the object store's client. It never looks into a component.

mod open;

use crate::config::Components;
use crate::model::Fault;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The most that a component is taken for, bytes: what else lies under such a name is not read into memory.
pub const MOST_BYTES: u64 = 256 << 20;

/// Where components are kept.
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    prefix: Path,
    /// As the application file names it.
    place: String,
    runtime: Runtime,
}

impl Store {
    /// Opens the place. Nothing is asked of it yet, and a folder is made when the first component is put there.
    ///
    /// `Fatal` `components-unusable`: the setting cannot be meant.
    pub fn open(settings: &Components) -> Result<Store, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Fault::fatal("no-thread", format!("starting the object store: {error}")))?;
        let (inner, prefix) = open::open(settings)?;
        Ok(Store { inner, prefix, place: settings.store.clone(), runtime })
    }

    /// Keeps a component. One that is there already is left as it is.
    ///
    /// `Transient` `components-away`, `Fatal` `components-refused`.
    pub fn put(&self, digest: &str, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.path(digest);
        let doing = || format!("keeping component {digest} in {}", self.place);
        let put = async {
            if self.inner.head(&path).await.is_ok() {
                return Ok(());
            }
            self.inner.put(&path, bytes.to_vec().into()).await.map(drop)
        };
        self.runtime.block_on(put).map_err(|error| self.fault(&error, &doing()))
    }

    /// A component, whole. `None` where there is none of this digest.
    ///
    /// Faults as of [`Store::put`], and `Fatal` `component-damaged`: what lies there is not what its name says.
    pub fn get(&self, digest: &str) -> Result<Option<Vec<u8>>, Fault> {
        let path = self.path(digest);
        let doing = || format!("reading component {digest} from {}", self.place);
        let get = async {
            let found = self.inner.get(&path).await?;
            if found.meta.size > MOST_BYTES { Ok(None) } else { found.bytes().await.map(Some) }
        };
        match self.runtime.block_on(get) {
            Ok(Some(bytes)) if hex::encode(Sha256::digest(&bytes)) == digest => Ok(Some(bytes.to_vec())),
            Ok(_) => Err(damaged(digest, &self.place)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.fault(&error, &doing())),
        }
    }

    /// Where components are kept, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A folder that cannot be used stays so until a person mends it; a store on the network may come back.
    fn fault(&self, error: &Error, doing: &str) -> Fault {
        let is_folder = !self.place.contains("://");
        let refused = matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. });
        let message = format!("{doing}: {error}");
        let fault = match is_folder || refused {
            true => Fault::fatal("components-refused", message),
            false => Fault::transient("components-away", message),
        };
        fault.hint("all hosts must reach the place that [components] names, and be allowed to read and write there")
    }

    fn path(&self, digest: &str) -> Path {
        self.prefix.clone().join(format!("{digest}.wasm"))
    }
}

fn damaged(digest: &str, place: &str) -> Fault {
    Fault::fatal("component-damaged", format!("component {digest} in {place} is not what its digest says"))
        .hint("find out who changed it; delete the file and deploy the component again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(dir: &std::path::Path) -> Store {
        Store::open(&Components { store: dir.display().to_string(), ..Components::default() }).unwrap()
    }

    fn digest(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }

    #[test]
    fn what_is_put_is_got_by_any_host() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a/components");
        let (one, other) = (store(&place), store(&place));
        assert!(!place.exists(), "nothing is made before there is something to keep");
        assert_eq!(one.get(&digest(b"x")), Ok(None));
        one.put(&digest(b"x"), b"x").unwrap();
        one.put(&digest(b"x"), b"x").unwrap();
        assert_eq!(other.get(&digest(b"x")), Ok(Some(b"x".to_vec())));
    }

    #[test]
    fn what_is_not_what_its_name_says_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.put(&digest(b"x"), b"y").unwrap();
        assert_eq!(store.get(&digest(b"x")).unwrap_err().code, "component-damaged");
    }

    #[test]
    fn a_place_that_cannot_be_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let refused = store(&dir.path().join("file/below")).put(&digest(b"x"), b"x").unwrap_err();
        assert_eq!(refused.code, "components-refused");
        assert!(refused.message.contains("file/below") && refused.hint.unwrap().contains("[components]"));
        for url in ["ftp://a/b", "s3://"] {
            let settings = Components { store: url.into(), ..Components::default() };
            assert_eq!(Store::open(&settings).map(drop).unwrap_err().code, "components-unusable", "{url}");
        }
    }
}
