//! The one broker of a test run: the one that `PELTON_TEST_BROKERS` names, else one that is started here on a free port and ends
//! with this process. Where neither works the tests fail; none is skipped.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock};

#[derive(Debug)]
pub struct Broker {
    /// `host:port` of the ordinary listener.
    pub address: String,
    /// The listener behind which clients are sent to a proxy: where it listens, and where the proxy must (`scripts/kafka`).
    pub proxied: Option<(u16, u16)>,
}

/// The shared broker, started at the first call.
pub fn broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| match std::env::var("PELTON_TEST_BROKERS") {
        Ok(address) if !address.is_empty() => named(address),
        _ => start(),
    })
}

/// One test at a time may hold the proxied listener.
pub fn proxied() -> (MutexGuard<'static, ()>, u16, u16) {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let (listen, advertised) = broker().proxied.expect("a broker started by scripts/kafka");
    (guard, listen, advertised)
}

/// The top of the clone.
pub fn root() -> PathBuf {
    manifest_dir().parent().expect("the workspace").to_owned()
}

/// A broker that `scripts/kafka` started has its proxied listener two ports on; of another one only the address is known.
fn named(address: String) -> Broker {
    let port = address.rsplit(':').next().and_then(|p| p.parse::<u16>().ok());
    let proxied = port.filter(|_| address.starts_with("127.0.0.1:")).map(|p| (p + 2, p + 3));
    Broker { address, proxied }
}

fn start() -> Broker {
    let dir = tempfile::Builder::new().prefix("pelton-kafka-").tempdir().expect("a folder for the broker").keep();
    let output = Command::new(root().join("scripts/kafka"))
        .arg("start")
        .arg(&dir)
        .env("PELTON_KAFKA_OWNER", std::process::id().to_string())
        .output()
        .expect("scripts/kafka runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "no broker, so no tests: {said}");
    let address = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    eprintln!("broker: {address} in {}", dir.display());
    named(address)
}

/// The crate's folder as cargo says it when it runs this: what was compiled may come from another clone that shares the target folder.
pub fn manifest_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo"))
}
