//! Versions of one plugin: the guest `versioned`, built once and written over, so that there are as many as a test wants.

use crate::app::plugin;
use crate::record::Rec;
use std::path::{Path, PathBuf};

/// What the guest's mark begins with, and how long its fields are.
const BEGIN: &[u8] = b"@versioned number=";

/// A version: its number and what it does wrong.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    pub number: u32,
    /// `none`, `trap`, `odd` (traps at records that begin so), `later` (wants these again), `loop`, `init` or `hungry`.
    pub deed: &'a str,
    pub schema: u32,
    pub reads_from: u32,
    pub store: &'a str,
}

impl Version<'_> {
    pub fn of(number: u32) -> Version<'static> {
        Version { number, deed: "none", schema: 1, reads_from: 1, store: "counts" }
    }

    /// The component.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = std::fs::read(plugin("versioned.wasm")).expect("the guest is built");
        let Version { number, deed, schema, reads_from, store } = self;
        let mark = format!(
            "@versioned number={number:04} deed={deed:.<8} schema={schema} reads={reads_from} store={store:.<8} "
        );
        let at = bytes.windows(BEGIN.len()).position(|part| part == BEGIN).expect("the guest has its mark");
        bytes[at..at + mark.len()].copy_from_slice(mark.as_bytes());
        bytes
    }

    /// The component as a file in `dir`.
    pub fn file(&self, dir: &Path) -> PathBuf {
        let path = dir.join(format!("v{}-{}.wasm", self.number, self.deed));
        std::fs::write(&path, self.bytes()).expect("the component is written");
        path
    }
}

/// The version that made an output.
pub fn maker(output: &Rec) -> u32 {
    let found = output.headers.iter().find(|(name, _)| name == "version").and_then(|(_, value)| value.clone());
    String::from_utf8_lossy(&found.expect("a header says the version")).parse().expect("a number")
}

/// The versions of one partition's outputs, each stretch once.
pub fn stretches(outputs: &[Rec], partition: i32) -> Vec<u32> {
    let mut all: Vec<u32> = outputs.iter().filter(|output| output.partition == partition).map(maker).collect();
    all.dedup();
    all
}
