//! Verbs, printing, exit codes.
