//! A host in this process, asked through its handle: on the embedded log, with a guest that counts by key and obeys its records.

mod places;
mod rig;
mod state;
mod status;
