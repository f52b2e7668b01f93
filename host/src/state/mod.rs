//! Stores: one RocksDB per task, the overlay of uncommitted writes over it, applied offsets. With `local`, the only rooms that name rocksdb.
