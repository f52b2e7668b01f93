//! What is in a state folder, straight from its RocksDB files: tests compare stores byte for byte.

use rocksdb::{DB, IteratorMode, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Column family by its database's folder, with all entries in key order.
pub type Dump = BTreeMap<(PathBuf, String), Vec<(Box<[u8]>, Box<[u8]>)>>;

/// Every store below `state_dir`, of a host that is not running. The family `default` keeps offsets and identities, which may
/// differ between equal stores, and is left out.
pub fn dump(state_dir: &Path) -> Dump {
    let mut found = Dump::new();
    for dir in databases(state_dir) {
        let names = DB::list_cf(&Options::default(), &dir).expect("a RocksDB folder lists its families");
        let db = DB::open_cf_for_read_only(&Options::default(), &dir, &names, false).expect("a RocksDB folder opens");
        for name in names.into_iter().filter(|n| n != "default") {
            let family = db.cf_handle(&name).expect("a listed family");
            let entries = db.iterator_cf(family, IteratorMode::Start).map(|e| e.expect("a readable entry")).collect();
            found.insert((dir.strip_prefix(state_dir).unwrap().to_owned(), name), entries);
        }
    }
    found
}

/// How many entries there are in all.
pub fn entries(dump: &Dump) -> usize {
    dump.values().map(Vec::len).sum()
}

/// Copies a folder as it is, also while a host writes in it: what a power cut would leave.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match source.is_dir() {
            true => copy(&source, &target),
            // A file may be deleted by a compaction between listing and copying.
            false => drop(std::fs::copy(&source, &target)),
        }
    }
}

fn databases(dir: &Path) -> Vec<PathBuf> {
    if dir.join("CURRENT").exists() {
        return vec![dir.to_owned()];
    }
    let mut below: Vec<PathBuf> = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    below.sort();
    below.iter().filter(|p| p.is_dir()).flat_map(|p| databases(p)).collect()
}
