//! What becomes of a failed record: pure functions from failure to verdict and to dead letter.
