//! From assignment to tasks to workers: threads, supervision, health, the order of shutdown.
