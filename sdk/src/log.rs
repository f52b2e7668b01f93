//! Log lines to the host: `info!("text {x}")`, or with fields: `warn!(customer = id, "no address")`.

pub use pelton_bindings_transform::pelton::plugin::log::Level;

/// Writes a line. In native tests of a plugin, where there is no host, it goes nowhere.
///
/// The host adds the processor, the partition and the offset of the record being handled.
pub fn write(level: Level, message: &str, fields: &[(String, String)]) {
    #[cfg(target_arch = "wasm32")]
    pelton_bindings_transform::pelton::plugin::log::write(level, message, fields, crate::entropy::offset());
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (level, message, fields);
}

/// Writes a line at the level given first: what the macros named after levels use.
#[macro_export]
macro_rules! log_at {
    ($level:ident, $($name:ident = $value:expr,)* $format:literal $($arguments:tt)*) => {
        $crate::log::write(
            $crate::log::Level::$level,
            &::std::format!($format $($arguments)*),
            &[$((::std::string::String::from(stringify!($name)), ::std::string::ToString::to_string(&$value))),*],
        )
    };
}

/// Writes a line at level trace.
#[macro_export]
macro_rules! trace { ($($line:tt)*) => { $crate::log_at!(Trace, $($line)*) }; }
/// Writes a line at level debug.
#[macro_export]
macro_rules! debug { ($($line:tt)*) => { $crate::log_at!(Debug, $($line)*) }; }
/// Writes a line at level info.
#[macro_export]
macro_rules! info { ($($line:tt)*) => { $crate::log_at!(Info, $($line)*) }; }
/// Writes a line at level warn.
#[macro_export]
macro_rules! warn { ($($line:tt)*) => { $crate::log_at!(Warn, $($line)*) }; }
/// Writes a line at level error.
#[macro_export]
macro_rules! error { ($($line:tt)*) => { $crate::log_at!(Error, $($line)*) }; }
