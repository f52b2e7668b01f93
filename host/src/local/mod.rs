//! The embedded log: the same seam as Kafka, kept in RocksDB, for one process.
