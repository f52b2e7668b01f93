//! Where the surface listens, and with which certificate.

use crate::config;
use crate::config::settings::Admin;
use crate::model::Fault;
use axum_server::tls_openssl::OpenSSLConfig;
use openssl::ssl::{SslAcceptor, SslAcceptorBuilder, SslFiletype, SslMethod};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// A socket that is bound.
pub(super) struct Listening {
    pub socket: TcpListener,
    pub tls: Option<OpenSSLConfig>,
    /// How this machine reaches it.
    pub url: String,
    /// How others reach it, as far as that is known.
    pub told: Option<String>,
}

pub(super) fn listen(admin: &Admin) -> Result<Listening, Fault> {
    let tls = tls(admin)?;
    let address = config::address(&admin.listen).ok_or_else(|| refused(admin, "is no address with a port"))?;
    let bound = |error: std::io::Error| refused(admin, &error.to_string());
    let socket = TcpListener::bind(address).map_err(bound)?;
    let address = socket.local_addr().map_err(bound)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", from_here(address));
    let own = (!address.ip().is_unspecified()).then(|| url.clone());
    Ok(Listening { socket, tls, url, told: admin.advertise.clone().or(own) })
}

/// The certificate and its key, where the settings name them.
pub(super) fn tls(admin: &Admin) -> Result<Option<OpenSSLConfig>, Fault> {
    let Some((certificate, key)) = &admin.tls else { return Ok(None) };
    let acceptor = acceptor(certificate, key)?;
    Ok(Some(OpenSSLConfig::from_acceptor(Arc::new(acceptor))))
}

fn acceptor(certificate: &Path, key: &Path) -> Result<SslAcceptor, Fault> {
    readable("admin.tls_certificate", certificate)?;
    readable("admin.tls_key", key)?;
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())
        .map_err(|e| unusable("admin.tls_certificate", certificate, &e))?;
    builder.set_certificate_chain_file(certificate).map_err(|e| unusable("admin.tls_certificate", certificate, &e))?;
    let keyed = |builder: &mut SslAcceptorBuilder| {
        builder.set_private_key_file(key, SslFiletype::PEM)?;
        builder.check_private_key()
    };
    keyed(&mut builder).map_err(|e| unusable("admin.tls_key", key, &e))?;
    Ok(builder.build())
}

/// Files that are missing are told in the system's words, which OpenSSL hides.
fn readable(setting: &str, file: &Path) -> Result<(), Fault> {
    std::fs::File::open(file).map(drop).map_err(|error| unusable(setting, file, &error))
}

fn unusable(setting: &str, file: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::fatal("admin-tls-unusable", format!("{setting}: {} cannot be used: {error}", file.display()))
        .hint("name a PEM file with the certificate and its chain, and one with the key that belongs to it")
}

fn refused(admin: &Admin, why: &str) -> Fault {
    Fault::fatal("admin-not-listening", format!("admin.listen: cannot listen on {}: {why}", admin.listen))
        .hint("set admin.listen to an address of this machine and a free port; port 0 takes any")
}

/// An address that stands for all of the machine's is reached here by loopback.
fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin(listen: &str) -> Admin {
        Admin { listen: listen.to_owned(), ..Admin::default() }
    }

    #[test]
    fn a_taken_port_is_refused_with_the_setting() {
        let first = listen(&admin("127.0.0.1:0")).unwrap();
        let taken = first.socket.local_addr().unwrap();
        let Err(fault) = listen(&admin(&taken.to_string())) else { panic!("bound twice") };
        assert_eq!(fault.code, "admin-not-listening");
        assert!(fault.message.starts_with(&format!("admin.listen: cannot listen on {taken}: ")), "{fault}");
    }

    #[test]
    fn the_machine_itself_comes_by_loopback_and_others_by_what_is_advertised() {
        let all = listen(&admin("0.0.0.0:0")).unwrap();
        assert!(all.url.starts_with("http://127.0.0.1:"), "{}", all.url);
        assert_eq!(all.told, None);
        let told = Admin { advertise: Some("https://a.example".into()), ..admin("localhost:0") };
        assert_eq!(listen(&told).unwrap().told.as_deref(), Some("https://a.example"));
        let own = listen(&admin("[::1]:0"));
        assert!(own.is_err() || own.is_ok_and(|own| own.told.as_ref() == Some(&own.url)), "no IPv6, or its address");
    }

    #[test]
    fn certificates_that_cannot_be_used_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (missing, empty) = (dir.path().join("missing.pem"), dir.path().join("empty.pem"));
        std::fs::write(&empty, "").unwrap();
        for (certificate, key, named) in
            [(&missing, &empty, "admin.tls_certificate"), (&empty, &missing, "admin.tls_key")]
        {
            let admin = Admin { tls: Some((certificate.clone(), key.clone())), ..admin("127.0.0.1:0") };
            let fault = tls(&admin).map(drop).unwrap_err();
            assert!(fault.code == "admin-tls-unusable" && fault.message.starts_with(named), "{fault}");
        }
    }
}
