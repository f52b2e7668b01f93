//! How RocksDB is set up. Memory is bounded for the process, not per store: containers get killed when each has its own.

use super::recent::Tenant;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, FlushOptions, LogLevel, Options,
    WriteBufferManager, WriteOptions,
};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The most that one memtable may grow to, bytes.
const MEMTABLE_BYTES: u64 = 64 << 20;
/// Open files per task, so that many tasks stay below the usual limit of a process.
const OPEN_FILES: i32 = 128;

/// Memory that all stores of the process share: one block cache and one budget for memtables.
pub struct Shared {
    cache: Cache,
    buffers: WriteBufferManager,
    memtable_bytes: usize,
    recent_bytes: u64,
    limits: (u64, u64),
    open_stores: Arc<AtomicU64>,
}

impl Shared {
    /// `cache_bytes` holds data, index and filter blocks, and a quarter of it what commits have written lately; `write_buffer_bytes` is what memtables may take before they are
    /// flushed (a soft limit: writers are not stalled, since the store that fills it need not be the one that writes).
    pub fn new(cache_bytes: u64, write_buffer_bytes: u64) -> Shared {
        Shared {
            cache: Cache::new_lru_cache((cache_bytes - cache_bytes / 4) as usize),
            buffers: WriteBufferManager::new_write_buffer_manager(write_buffer_bytes as usize, false),
            memtable_bytes: (write_buffer_bytes / 2).clamp(1 << 20, MEMTABLE_BYTES) as usize,
            recent_bytes: cache_bytes / 4,
            limits: (cache_bytes - cache_bytes / 4, write_buffer_bytes),
            open_stores: Arc::default(),
        }
    }

    /// Bytes of memtables of all stores, now.
    pub fn write_buffer_usage(&self) -> u64 {
        self.buffers.get_usage() as u64
    }

    /// Bytes of the block cache in use, now.
    pub fn cache_usage(&self) -> u64 {
        self.cache.get_usage() as u64
    }

    /// What the block cache and the memtables may take, in bytes.
    pub fn limits(&self) -> (u64, u64) {
        self.limits
    }

    pub(super) fn tenant(&self, stores: usize) -> Tenant {
        Tenant::new(self.recent_bytes, &self.open_stores, stores)
    }

    pub(super) fn database(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        // Without a write-ahead log, this is what keeps the stores, their positions and the input offsets in step.
        options.set_atomic_flush(true);
        options.set_write_buffer_manager(&self.buffers);
        options.set_max_open_files(OPEN_FILES);
        options.set_max_background_jobs(2);
        // One thread writes: the memtable need not be ready for more.
        options.set_allow_concurrent_memtable_write(false);
        options.set_keep_log_file_num(2);
        options.set_log_level(LogLevel::Warn);
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        options.set_skip_stats_update_on_db_open(true);
        options
    }

    pub(super) fn column_family(&self) -> Options {
        let mut options = Options::default();
        options.set_block_based_table_factory(&self.table());
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_write_buffer_size(self.memtable_bytes);
        // Many small stores must not start with a megabyte each.
        options.set_arena_block_size(self.memtable_bytes.min(256 << 10));
        // A key that is not in the memtable (most, in a large store) is told by a filter instead of a walk.
        options.set_memtable_prefix_bloom_ratio(0.05);
        options.set_memtable_whole_key_filtering(true);
        options
    }

    fn table(&self) -> BlockBasedOptions {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&self.cache);
        table.set_block_size(8 << 10);
        table.set_bloom_filter(10.0, false);
        table.set_optimize_filters_for_memory(true);
        // Index and filters live in the shared cache, in pieces, so that a large store does not break the budget.
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
        table.set_cache_index_and_filter_blocks(true);
        table.set_cache_index_and_filter_blocks_with_high_priority(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        table
    }
}

pub(super) fn write_options() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

pub(super) fn flush_options(wait: bool) -> FlushOptions {
    let mut options = FlushOptions::default();
    options.set_wait(wait);
    options
}
