//! Native tests of the SDK's logic, against a table in memory in the host's place.

mod host;

mod batch;
mod calls;
mod codecs;
mod columns;
mod entropy;
mod ids;
mod scans;
mod tallies;
