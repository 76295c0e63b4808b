//! S002: a service that is talked to in the clear.

use crate::{Check, FileContext, Rule, replace};
use diagnostics::{Applicability, Diagnostic, Level, Span};

pub(super) static RULE: Rule = Rule {
    code: "S002",
    name: "plain-http",
    level: Level::Warn,
    meaning: "a request and its response cross networks unencrypted: their integrity and secrecy are those of every network on the way",
    docs: page!("../../../../docs/rules/S002-plain-http.md"),
    check: Check::File(check),
};

fn check(rule: &Rule, context: &FileContext<'_>, out: &mut Vec<Diagnostic>) {
    let mut plain = |text: &str, span: Span| {
        let Some(host) = text.strip_prefix("http://").map(host) else { return };
        if !is_near(host) {
            let message = format!(
                "`{}` is called over plain HTTP: requests and replies can be read and changed on the way",
                diagnostics::clip(host)
            );
            let mut d = rule.finding(message, span).about(host).help("use `https://`");
            d.fix = replace(text, span, 0..4, "https", Applicability::Unsafe);
            out.push(d);
        }
    };
    context.texts(&mut |key, text, span| {
        if is_service(key) {
            plain(text, span);
        }
    });
    for (address, at) in context.servers.iter().filter_map(|s| s.address) {
        plain(address, at);
    }
}

/// Returns true if a key names the address of a service that is called, not a page that is mentioned.
fn is_service(key: &str) -> bool {
    let key: String =
        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    ["baseurl", "apibase", "endpoint", "serverurl", "apiurl", "apihost", "mcpurl"]
        .iter()
        .any(|n| key.ends_with(n))
}

/// The host of an address, without user, port and path.
pub(super) fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let authority = authority.rsplit('@').next().unwrap_or("");
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    }
}

/// Returns true if a host is this machine or on a private network: a name without a dot, a private address,
/// or a name that resolves only internally. A placeholder may be any host, so it counts as near.
pub(super) fn is_near(host: &str) -> bool {
    let inside = [".local", ".internal", ".localhost", ".svc", ".cluster.local", ".lan", ".test", ".example"];
    let private = match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is shared by those behind one carrier or in one overlay network (RFC 6598).
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            shared || ip.is_private() || ip.is_loopback() || ip.is_unspecified() || ip.is_link_local()
        }
        Ok(std::net::IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.segments()[0] & 0xfe00 == 0xfc00
        }
        Err(_) => false,
    };
    // `url.to.my.model` is a placeholder for an address.
    let stands = host.split(['.', '-', '_']).any(|word| matches!(word, "my" | "your" | "placeholder"));
    private
        || stands
        || host.is_empty()
        || !host.contains(['.', ':'])
        || host.contains(['$', '{', '<'])
        || inside.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ones_own_are_near() {
        for near in [
            "localhost:8080/v1",
            "127.0.0.1",
            "192.168.1.4:11434",
            "[::1]:80/x",
            "ollama:11434",
            "a.svc.cluster.local",
            "${HOST}/v1",
            "10.0.0.1",
            "url.to.my.model/v1",
            "100.95.194.160:11434",
        ] {
            assert!(is_near(host(near)), "{near}");
        }
        for far in [
            "api.example.com/v1",
            "8.8.8.8:80",
            "100.128.0.1",
            "user:pw@models.example.org/x",
            "[2001:db8::1]/",
        ] {
            assert!(!is_near(host(far)), "{far}");
        }
    }
}
