//! Where the admin surface may listen, and with what.

use super::{MINIMAL, mistakes};

/// What is said of `[admin]` with these lines.
fn said(lines: &str) -> String {
    mistakes(&format!("{MINIMAL}\n[admin]\n{lines}\n"))
}

#[test]
fn elsewhere_than_on_loopback_a_token_and_tls_are_wanted() {
    let safe = [
        "",
        "listen = \"127.9.9.9:0\"",
        "listen = \"[::1]:9400\"",
        "listen = \"localhost:9400\"",
        "listen = \"0.0.0.0:9400\"\ntoken = \"t\"\nbehind_proxy = true",
        "listen = \"[::]:9400\"\ntoken = \"t\"\ntls_certificate = \"c\"\ntls_key = \"k\"",
    ];
    safe.iter().for_each(|lines| assert_eq!(said(lines), "", "{lines}"));
    for open in ["0.0.0.0:9400", "10.0.0.1:9400", "[::]:9400", "[::ffff:127.0.0.1]:9400"] {
        let lines = format!("listen = \"{open}\"\nbehind_proxy = true");
        assert!(
            said(&lines).contains("admin.listen: ") && said(&lines).contains("a token"),
            "{open}: {}",
            said(&lines)
        );
        let lines = format!("listen = \"{open}\"\ntoken = \"t\"");
        assert!(said(&lines).contains("TLS"), "{open}: {}", said(&lines));
    }
}

#[test]
fn a_token_is_one_that_a_header_can_carry_and_is_not_shown() {
    for wrong in [" hush", "hush hush", "hüsh", "hush\\n"] {
        let said = said(&format!("token = \"{wrong}\""));
        assert!(said.contains("admin.token: ") && !said.contains("sh"), "{said}");
    }
    assert!(said("token = \"\"").contains("admin.token: is empty"));
}

#[test]
fn what_is_no_address_or_half_a_certificate_is_refused() {
    for wrong in ["9400", "127.0.0.1", "localhost", "host.example:9400", "127.0.0.1:99999"] {
        assert!(said(&format!("listen = \"{wrong}\"")).contains("no address with a port"), "{wrong}");
    }
    assert!(said("tls_key = \"k\"").contains("admin.tls_key: has no meaning without tls_certificate"));
}
