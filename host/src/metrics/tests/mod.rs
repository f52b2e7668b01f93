//! The numbers, their names, and the page that shows them.

mod custom;
mod lint;
mod names;
mod page;
mod registry;
