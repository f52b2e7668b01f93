//! The stores of one task: opening, staging, applying, restoring, flushing.

use super::applied::{Applied, AppliedState, Position};
use super::faults;
use super::options::{Shared, flush_options, write_options};
use super::overlay::{Change, Overlay};
use super::recent::{Recent, Tenant};
use crate::model::folder::FolderLock;
use crate::model::log::Origin;
use crate::model::manifest::StoreSpec;
use crate::model::{Batch, Clock, Fault, Writes};
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DEFAULT_COLUMN_FAMILY_NAME, IteratorMode, Options, WriteBatch,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DATABASE: &str = "db";
/// Where the applied state lies in the default column family.
const APPLIED_KEY: &[u8] = b"applied";
/// What is applied reaches the disk within this time, so that a crash costs a bounded replay.
const FLUSH_EVERY: Duration = Duration::from_secs(30);
/// An idle store says within this time that it is still up to date, so that tombstones do not seem missed (KIP-58 keeps
/// them for a day by default).
const REFRESH_EVERY: Duration = Duration::from_secs(15 * 60);

/// A key and its value.
type Entry = (Box<[u8]>, Box<[u8]>);

/// The stores of one task: one database, a column family for each store, and the overlay of what is not committed.
///
/// Stores are numbered as in the plugin's manifest.
pub struct Stores {
    // Before the lock, so that the database is closed when the folder is given free.
    pub(super) db: DB,
    _lock: FolderLock,
    pub(super) families: Vec<String>,
    pub(super) overlays: Vec<Overlay>,
    /// Equal to what the stores have, for the keys that are in it.
    pub(super) recent: Vec<Recent>,
    tenant: Tenant,
    pub(super) state: AppliedState,
    pub(super) column_options: Options,
    /// Stores known to hold all that their changelog has: only these may be called up to date when nothing happens.
    pub(super) current: Vec<bool>,
    specs: Vec<StoreSpec>,
    clock: Arc<dyn Clock>,
    flush: FlushState,
}

#[derive(Clone, Copy, Debug)]
struct FlushState {
    dirty: bool,
    /// Monotonic time of the last flush.
    at: Duration,
}

impl Stores {
    /// Opens the stores in `dir`, making what is missing. Column families of stores that the plugin no longer has are kept.
    ///
    /// `Fatal`: `state-locked`, `state-not-writable`, `store-incompatible` (the plugin does not read what is there).
    /// `Corrupt` `store-corrupt`: [`Stores::wipe`], open and restore. `Transient` `store-io`: the disk is full or failing.
    pub fn open(dir: &Path, specs: &[StoreSpec], shared: &Shared, clock: Arc<dyn Clock>) -> Result<Stores, Fault> {
        let lock = FolderLock::take(dir).map_err(|error| faults::folder(dir, error))?;
        let path = dir.join(DATABASE);
        let kept = existing_families(&path)?;
        let families: Vec<String> = specs.iter().map(|spec| family_name(&spec.name)).collect();
        let db = open_database(&path, &kept, &families, shared)?;
        let mut state = read_state(&db)?;
        state.stores.retain(|name, _| kept.contains(&family_name(name)));
        state.adopt(specs)?;
        state.opened_ms = clock.wall_ms();
        Ok(Stores {
            db,
            _lock: lock,
            overlays: families.iter().map(|_| Overlay::default()).collect(),
            recent: families.iter().map(|_| Recent::default()).collect(),
            tenant: shared.tenant(families.len()),
            current: vec![false; families.len()],
            families,
            state,
            column_options: shared.column_family(),
            specs: specs.to_vec(),
            flush: FlushState { dirty: false, at: clock.monotonic() },
            clock,
        })
    }

    /// Removes the stores in `dir`, which must not be open. Nothing there is fine.
    pub fn wipe(dir: &Path) -> Result<(), Fault> {
        let _lock = FolderLock::take(dir).map_err(|error| faults::folder(dir, error))?;
        match std::fs::remove_dir_all(dir.join(DATABASE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(faults::folder(dir, error.into())),
            _ => Ok(()),
        }
    }

    /// Hands the stores to another version of the plugin. `Fatal` `store-incompatible` leaves everything as it is.
    /// The new version must have the same stores in the same order.
    pub fn adopt(&mut self, specs: &[StoreSpec]) -> Result<(), Fault> {
        if !specs.iter().map(|spec| &spec.name).eq(self.specs.iter().map(|spec| &spec.name)) {
            return Err(Fault::fatal("store-incompatible", "the plugin has other stores than the running one")
                .hint("restart to change stores"));
        }
        self.state.adopt(specs)?;
        self.specs = specs.to_vec();
        Ok(())
    }

    /// Lays the writes of an accepted call over the stores. `origin` tells which input record an entry is.
    pub fn stage(&mut self, writes: &Writes, origin: impl Fn(u32) -> Origin) {
        for (write, &entry) in writes.iter().zip(&writes.entries) {
            if let Some(overlay) = self.overlays.get_mut(write.store as usize) {
                overlay.put(write.key, write.value, origin(entry));
            }
        }
    }

    /// Lays a write of the host's own over a store; `None` deletes.
    pub fn put(&mut self, store: usize, key: &[u8], value: Option<&[u8]>, origin: Origin) {
        if let Some(overlay) = self.overlays.get_mut(store) {
            overlay.put(key, value, origin);
        }
    }

    /// Memory that the overlays use, bytes.
    pub fn overlay_bytes(&self) -> u64 {
        self.overlays.iter().map(Overlay::bytes).sum()
    }

    /// The changed keys of a store, each once, with its last value.
    pub fn overlay(&self, store: usize) -> impl Iterator<Item = Change<'_>> {
        self.overlays.get(store).into_iter().flat_map(Overlay::iter)
    }

    /// Forgets the overlays: the commit was aborted.
    pub fn discard(&mut self) {
        self.overlays.iter_mut().for_each(Overlay::clear);
    }

    /// Writes the overlays' data and the positions in one batch; the overlays are empty afterwards.
    ///
    /// Call it after the log has committed. On a fault nothing has changed, the overlays included: it may be called again,
    /// or the stores be opened anew and restored.
    pub fn apply(&mut self, applied: &Applied<'_>) -> Result<(), Fault> {
        let mut batch = WriteBatch::with_capacity_bytes(self.overlay_bytes() as usize);
        // in key order, as the memtable takes a key that follows the last one without a search from its top
        self.overlays.iter_mut().for_each(Overlay::sort);
        for (store, overlay) in self.overlays.iter().enumerate() {
            let family = self.family(store)?;
            for &at in overlay.range(&[], None) {
                let change = overlay.change(at);
                put(&mut batch, family, change.key, change.value);
            }
        }
        let mut state = self.state.clone();
        state.advance(&self.specs, applied, self.clock.wall_ms());
        self.write(batch, state)?;
        let share = self.tenant.share();
        self.recent.iter_mut().zip(&self.overlays).for_each(|(recent, written)| recent.absorb(written, share));
        self.discard();
        Ok(())
    }

    /// Replays changelog records and moves the store's position to `changelog_offset`, the next to read, in one batch.
    /// The store must have been given its changelog by [`Stores::rebuild`] or an earlier run.
    pub fn restore(&mut self, store: usize, records: &Batch, changelog_offset: i64) -> Result<(), Fault> {
        let mut batch = WriteBatch::with_capacity_bytes(records.bytes() + 32 * records.len());
        let family = self.family(store)?;
        for (key, value) in records.keys.iter().zip(records.values.iter()) {
            put(&mut batch, family, key.unwrap_or_default(), value);
        }
        let mut state = self.state.clone();
        if let Some(position) = self.store_state(&mut state, store)?.changelog.as_mut() {
            position.offset = changelog_offset;
        }
        self.recent[store].clear();
        self.write(batch, state)
    }

    /// Says that the store held all of its changelog at `seen_ms`, up to `changelog_offset`: a restore has ended.
    pub fn caught_up(&mut self, store: usize, changelog_offset: i64, seen_ms: i64) -> Result<(), Fault> {
        let mut state = self.state.clone();
        let known = self.store_state(&mut state, store)?;
        known.seen_ms = seen_ms;
        if let Some(position) = known.changelog.as_mut() {
            position.offset = changelog_offset;
        }
        self.write(WriteBatch::default(), state)?;
        self.current[store] = true;
        Ok(())
    }

    /// What the stores remember of their positions.
    pub fn applied(&self) -> &AppliedState {
        &self.state
    }

    /// A store's changelog position and the like.
    pub fn position(&self, store: usize) -> Option<&Position> {
        self.state.stores.get(&self.specs.get(store)?.name)?.changelog.as_ref()
    }

    /// The number of a store.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }

    pub fn specs(&self) -> &[StoreSpec] {
        &self.specs
    }

    /// Whether the store has no committed data.
    pub fn is_empty(&self, store: usize) -> Result<bool, Fault> {
        Ok(self.dump(store)?.next().transpose()?.is_none())
    }

    /// Bounds in time what a crash costs. Call it now and then, in idle times too. Returns at once: RocksDB flushes behind.
    pub fn flush_if_due(&mut self) -> Result<(), Fault> {
        let age = self.clock.monotonic().saturating_sub(self.flush.at);
        if self.is_dirty() && age >= FLUSH_EVERY {
            self.flush(false)
        } else if age >= REFRESH_EVERY && self.current.iter().all(|&current| current) {
            let mut state = self.state.clone();
            state.advance(&self.specs, &Applied::default(), self.clock.wall_ms());
            self.write(WriteBatch::default(), state)?;
            self.flush(false)
        } else {
            Ok(())
        }
    }

    /// Closes the stores with everything applied on disk.
    pub fn close(mut self) -> Result<(), Fault> {
        self.flush(true)
    }

    /// Committed data in key order, for tests and comparisons.
    pub fn dump(&self, store: usize) -> Result<impl Iterator<Item = Result<Entry, Fault>> + '_, Fault> {
        let entries = self.db.iterator_cf(self.family(store)?, IteratorMode::Start);
        Ok(entries.map(|entry| entry.map_err(|error| faults::rocks("reading a store", &error))))
    }

    pub(super) fn family(&self, store: usize) -> Result<&ColumnFamily, Fault> {
        let name = self.families.get(store).ok_or_else(|| faults::unknown_store(store))?;
        self.db.cf_handle(name).ok_or_else(|| faults::unknown_store(store))
    }

    pub(super) fn store_state<'s>(
        &self,
        state: &'s mut AppliedState,
        store: usize,
    ) -> Result<&'s mut super::StoreState, Fault> {
        let spec = self.specs.get(store).ok_or_else(|| faults::unknown_store(store))?;
        Ok(state.stores.entry(spec.name.clone()).or_default())
    }

    /// Whether something has been applied since the last flush.
    pub(super) fn is_dirty(&self) -> bool {
        self.flush.dirty
    }

    /// One batch: the data and the state that goes with it.
    pub(super) fn write(&mut self, mut batch: WriteBatch, state: AppliedState) -> Result<(), Fault> {
        batch.put(APPLIED_KEY, state.encode()?);
        self.db.write_opt(batch, &write_options()).map_err(|error| faults::rocks("writing the stores", &error))?;
        self.state = state;
        self.flush.dirty = true;
        Ok(())
    }

    pub(super) fn flush(&mut self, wait: bool) -> Result<(), Fault> {
        // Atomic flush covers only the families it is given.
        let names = self.families.iter().map(String::as_str).chain([DEFAULT_COLUMN_FAMILY_NAME]);
        let families: Vec<&ColumnFamily> = names.filter_map(|name| self.db.cf_handle(name)).collect();
        self.db
            .flush_cfs_opt(&families, &flush_options(wait))
            .map_err(|error| faults::rocks("flushing the stores", &error))?;
        self.flush = FlushState { dirty: false, at: self.clock.monotonic() };
        Ok(())
    }
}

fn family_name(store: &str) -> String {
    format!("store-{store}")
}

fn put(batch: &mut WriteBatch, family: &ColumnFamily, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => batch.put_cf(family, key, value),
        None => batch.delete_cf(family, key),
    }
}

/// RocksDB wants every column family opened that there is. A database whose manifest is gone counts as damaged.
fn existing_families(path: &Path) -> Result<Vec<String>, Fault> {
    let Ok(manifest) = std::fs::read_to_string(path.join("CURRENT")) else { return Ok(Vec::new()) };
    if !path.join(manifest.trim_end()).is_file() {
        return Err(faults::corrupt(&format!("opening {}: its manifest is missing", path.display())));
    }
    DB::list_cf(&Options::default(), path).map_err(|error| faults::rocks("opening the stores", &error))
}

fn open_database(path: &Path, kept: &[String], wanted: &[String], shared: &Shared) -> Result<DB, Fault> {
    let new = wanted.iter().filter(|name| !kept.contains(name));
    let old = kept.iter().filter(|name| *name != DEFAULT_COLUMN_FAMILY_NAME);
    let names = new.chain(old).map(String::as_str).chain([DEFAULT_COLUMN_FAMILY_NAME]);
    let families = names.map(|name| ColumnFamilyDescriptor::new(name, shared.column_family()));
    DB::open_cf_descriptors(&shared.database(), path, families)
        .map_err(|error| faults::rocks(&format!("opening the stores in {}", path.display()), &error))
}

fn read_state(db: &DB) -> Result<AppliedState, Fault> {
    let bytes = db.get_pinned(APPLIED_KEY).map_err(|error| faults::rocks("reading applied offsets", &error))?;
    bytes.map_or_else(|| Ok(AppliedState::default()), |bytes| AppliedState::decode(&bytes))
}
