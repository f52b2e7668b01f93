//! State changes as records of a compacted topic, and the restore loop.
