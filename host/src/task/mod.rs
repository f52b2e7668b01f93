//! One partition of a processor: its life cycle, its batch loop, its commit.
