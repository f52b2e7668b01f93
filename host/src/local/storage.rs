//! The log's database: how it is opened, read and written.

use super::chunk;
use super::keys;
use super::topic::{Partition, PartitionRecord, Topic, TopicRecord};
use crate::model::log::{Committed, OffsetCommit};
use crate::model::{Batch, Fault};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRawIteratorWithThreadMode,
    Direction, IteratorMode, LogLevel, Options, ReadOptions, WriteBatch, WriteOptions,
};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;

const CHUNKS: &str = "chunks";
const CACHE_BYTES: usize = 32 << 20;
const MEMTABLE_BYTES: usize = 32 << 20;

pub(super) struct Storage {
    db: DB,
}

/// Chunks of one partition from some offset on, as they were when the walk began.
pub(super) struct Chunks<'d> {
    iterator: DBRawIteratorWithThreadMode<'d, DB>,
    from: i64,
}

impl Storage {
    pub(super) fn open(dir: &Path) -> Result<Storage, Fault> {
        let families = [("default", options()), (CHUNKS, chunk_options())];
        let families = families.map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
        let db = DB::open_cf_descriptors(&options(), dir, families).map_err(|error| failed("opening", error))?;
        Ok(Storage { db })
    }

    pub(super) fn topics(&self) -> Result<Vec<Topic>, Fault> {
        let entries = self.db.iterator(IteratorMode::From(keys::TOPICS, Direction::Forward));
        let mut topics = Vec::new();
        for entry in entries {
            let (key, value) = entry.map_err(|error| failed("reading", error))?;
            let Some(name) = key.strip_prefix(keys::TOPICS) else { break };
            let record: TopicRecord = parse(&value)?;
            let partitions =
                (0..record.partitions).map(|p| self.partition(record.number, p)).collect::<Result<_, _>>()?;
            topics.push(Topic::new(&String::from_utf8_lossy(name), record, partitions)?);
        }
        Ok(topics)
    }

    pub(super) fn next_number(&self) -> Result<u32, Fault> {
        Ok(self.read(keys::NEXT_NUMBER)?.unwrap_or(0))
    }

    fn partition(&self, number: u32, partition: i32) -> Result<Partition, Fault> {
        let record: Option<PartitionRecord> = self.read(&keys::partition(number, partition))?;
        Ok(Partition::new(record.unwrap_or_default()))
    }

    pub(super) fn create(&self, name: &str, record: &TopicRecord) -> Result<(), Fault> {
        let mut batch = WriteBatch::default();
        batch.put(keys::NEXT_NUMBER, encode(&(record.number + 1))?);
        batch.put(keys::topic(name), encode(record)?);
        self.write(batch, true)
    }

    /// Removes a topic with its records and the offsets that groups have committed for it.
    pub(super) fn delete(&self, topic: &Topic) -> Result<(), Fault> {
        let number = topic.record.number;
        let mut batch = WriteBatch::default();
        batch.delete(keys::topic(&topic.name));
        for (from, to) in keys::topic_ranges(number) {
            batch.delete_range(from, to);
        }
        let [from, to] = [number, number.wrapping_add(1)].map(|number| keys::chunk(number, 0, 0));
        batch.delete_range_cf(self.chunk_family()?, from, to);
        self.write(batch, true)
    }

    pub(super) fn committed(&self, number: u32, partition: i32, group: &str) -> Result<Committed, Fault> {
        let found: Option<(i64, String)> = self.read(&keys::offset(number, partition, group))?;
        Ok(found.map_or_else(Committed::default, |(offset, metadata)| Committed { offset: Some(offset), metadata }))
    }

    pub(super) fn put_offset(
        &self,
        batch: &mut WriteBatch,
        number: u32,
        group: &str,
        commit: &OffsetCommit,
    ) -> Result<(), Fault> {
        let value = encode(&(commit.offset, &commit.metadata))?;
        batch.put(keys::offset(number, commit.partition.partition, group), value);
        Ok(())
    }

    pub(super) fn put_partition(
        &self,
        batch: &mut WriteBatch,
        number: u32,
        partition: i32,
        record: &PartitionRecord,
    ) -> Result<(), Fault> {
        batch.put(keys::partition(number, partition), encode(record)?);
        Ok(())
    }

    pub(super) fn put_chunk(&self, batch: &mut WriteBatch, key: [u8; 16], value: &[u8]) -> Result<(), Fault> {
        batch.put_cf(self.chunk_family()?, key, value);
        Ok(())
    }

    pub(super) fn delete_chunk(&self, batch: &mut WriteBatch, key: [u8; 16]) -> Result<(), Fault> {
        batch.delete_cf(self.chunk_family()?, key);
        Ok(())
    }

    /// Writes atomically; with `sync` it is on disk before this returns.
    pub(super) fn write(&self, batch: WriteBatch, sync: bool) -> Result<(), Fault> {
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.db.write_opt(batch, &options).map_err(|error| failed("writing", error))
    }

    /// The chunks that hold `from` and what follows.
    pub(super) fn chunks(&self, number: u32, partition: i32, from: i64) -> Result<Chunks<'_>, Fault> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(keys::chunk(number, partition, 0));
        options.set_iterate_upper_bound(keys::chunk(number, partition, i64::MAX));
        let mut iterator = self.db.raw_iterator_cf_opt(self.chunk_family()?, options);
        iterator.seek_for_prev(keys::chunk(number, partition, from));
        if !iterator.valid() {
            iterator.seek_to_first();
        }
        Ok(Chunks { iterator, from })
    }

    fn chunk_family(&self) -> Result<&ColumnFamily, Fault> {
        self.db.cf_handle(CHUNKS).ok_or_else(|| damaged("its records are missing"))
    }

    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, Fault> {
        let value = self.db.get_pinned(key).map_err(|error| failed("reading", error))?;
        value.map(|value| parse(&value)).transpose()
    }
}

impl Chunks<'_> {
    /// Fills `batch` with the next chunk and returns its horizon; `None` when there is none.
    pub(super) fn next(&mut self, batch: &mut Batch) -> Result<Option<i64>, Fault> {
        while let Some((key, value)) = self.iterator.item() {
            let base = keys::chunk_base(key);
            let horizon =
                chunk::decode(value, base, batch).ok_or_else(|| damaged("a chunk of records cannot be read"))?;
            self.iterator.next();
            if batch.offsets.last().is_some_and(|&last| last >= self.from) {
                return Ok(Some(horizon));
            }
        }
        batch.clear();
        self.iterator.status().map_err(|error| failed("reading", error))?;
        Ok(None)
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_write_buffer_size(4 << 20);
    options.set_max_open_files(256);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(2);
    options.set_log_level(LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

fn chunk_options() -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    table.set_block_size(64 << 10);
    let mut options = options();
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    postcard::to_extend(value, Vec::new()).map_err(|error| damaged(&error.to_string()))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    postcard::from_bytes(bytes).map_err(|error| damaged(&error.to_string()))
}

/// After a failed write nobody knows what a restart will find, so nothing may go on: the process ends and looks.
fn failed(attempt: &str, error: rocksdb::Error) -> Fault {
    Fault::fatal("log-io", format!("{attempt} the embedded log: {error}"))
        .hint("look for a full or failing disk, then restart")
}

fn damaged(what: &str) -> Fault {
    Fault::fatal("log-corrupt", format!("the embedded log is damaged: {what}"))
        .hint("restore its folder from a backup, or move it away and start over")
}
