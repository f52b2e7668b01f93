//! Where the admin surface may listen: elsewhere than on loopback only with a token, and where nobody reads what goes by.

use super::errors::Wrong;
use super::settings::Admin;
use super::tree::Node;
use std::net::SocketAddr;

/// What `listen` means: an address and a port, or a port of `localhost`.
pub fn address(listen: &str) -> Option<SocketAddr> {
    let local = listen.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(listen).parse().ok()
}

/// The first thing that is wrong in `[admin]`, with its key.
pub(super) fn problem(document: &Node, admin: &Admin) -> Option<(&'static str, Wrong)> {
    let section = document.get("admin")?;
    let has = |key: &str| section.node.get(key).is_some();
    if has("tls_certificate") != has("tls_key") {
        let (there, missing) =
            if has("tls_key") { ("tls_key", "tls_certificate") } else { ("tls_certificate", "tls_key") };
        return Some((there, Wrong::new("conflict", format!("has no meaning without {missing}"), "set both, or none")));
    }
    // it goes into a header as it is, where spaces at its ends are lost
    if admin.token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
        let message = "holds a space, or what is not ASCII";
        return Some(("token", Wrong::new("invalid-token", message, "use letters, digits and signs")));
    }
    if admin.listen.is_empty() {
        // what stands there was not understood, and is reported
        return None;
    }
    let Some(address) = address(&admin.listen) else {
        let message = format!("`{}` is no address with a port", admin.listen);
        let hint = "write it as \"127.0.0.1:9400\", \"[::1]:9400\" or \"localhost:9400\"";
        return Some(("listen", Wrong::new("invalid-address", message, hint)));
    };
    (!address.ip().is_loopback()).then(|| exposed(address, admin)).flatten()
}

fn exposed(address: SocketAddr, admin: &Admin) -> Option<(&'static str, Wrong)> {
    let (problem, hint) = if admin.token.is_none() {
        ("a token", "set admin.token, or listen on 127.0.0.1")
    } else if admin.tls.is_none() && !admin.behind_proxy {
        ("TLS", "set admin.tls_certificate and admin.tls_key; or admin.behind_proxy = true where a proxy does TLS")
    } else {
        return None;
    };
    let message = format!("{address} is not loopback, and there is to be {problem} for that");
    Some(("listen", Wrong::new("conflict", message, hint)))
}
