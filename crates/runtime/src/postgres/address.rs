//! Addresses of Postgres servers.

use super::{CONNECT, PgError, PgErrorKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::form_urlencoded;

/// Time for which a process holds a run without renewing it, unless the address says otherwise.
const LEASE: Duration = Duration::from_secs(15);

/// The shortest and the longest time that an address may ask for, in seconds.
const LEASES: std::ops::RangeInclusive<u64> = 1..=3600;

/// The remedy for an address that is none.
const FORM: &str = "(help: write it as `postgres://USER@HOST/DATABASE`, or as \
                    `postgres://USER@/DATABASE?host=/var/run/postgresql` for a socket)";

/// A connection whose messages somebody must read.
pub(super) type RawConnection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A Postgres server and a database of it, with what it takes to log in.
#[derive(Clone)]
pub struct PostgresServer(Arc<Inner>);

struct Inner {
    config: Config,
    /// Certificates of authorities, instead of those of the system.
    authorities: Option<String>,
    lease: Duration,
    /// The address without a password.
    shown: String,
    /// All that tells two servers apart.
    key: String,
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresServer").field(&self.0.shown).finish()
    }
}

impl fmt::Display for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown)
    }
}

impl PostgresServer {
    /// The server at `postgres://USER@HOST[:PORT]/DATABASE[?OPTION=VALUE&…]`, with this password if the
    /// address has none. Does not connect.
    ///
    /// # Errors
    /// It is no such address.
    pub fn at(address: &str, password: Option<&str>) -> Result<PostgresServer, String> {
        // No error may quote the address, which may hold a password.
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| base.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| format!("what is given is no address of a Postgres server {FORM}"))?;
        let (mut lease, mut authorities, mut options) = (LEASE, None, Vec::new());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=').unwrap_or((option, "")) {
                ("lease", value) => {
                    let seconds = value.parse().ok().filter(|seconds| LEASES.contains(seconds));
                    let seconds = seconds.ok_or("`lease` of an address is a number of seconds from 1 to 3600 (help: leave it out for 15)")?;
                    lease = Duration::from_secs(seconds);
                }
                ("sslrootcert", value) => authorities = Some(decoded(value)),
                // Whatever is encrypted is verified.
                ("sslmode", "verify-ca" | "verify-full") => options.push("sslmode=require"),
                ("password", _) => {
                    return Err(format!("the password of an address is not among its options {FORM}"));
                }
                _ => options.push(option),
            }
        }
        let config = Config::from_str(&format!("postgres://{rest}?{}", options.join("&")));
        let mut config = config.map_err(|_| {
            format!("the address has an option that is unknown, or a value that is wrong {FORM}")
        })?;
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        if config.get_user().is_none() {
            return Err(format!("the address names no user {FORM}"));
        }
        if config.get_dbname().is_none() {
            return Err(format!("the address names no database {FORM}"));
        }
        if config.get_hosts().is_empty() {
            return Err(format!("the address names no host {FORM}"));
        }
        config.connect_timeout(CONNECT);
        config.keepalives_idle(Duration::from_secs(10));
        config.tcp_user_timeout(Duration::from_secs(20));
        if config.get_application_name().is_none() {
            config.application_name("entail");
        }
        let key = format!("{address}\n{}", password.unwrap_or_default());
        let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let user = login.split(':').next().unwrap_or_default();
        let mut shown = format!("postgres://{user}@{place}");
        if let Some(Host::Unix(socket)) = config.get_hosts().first() {
            shown = format!("{shown}?host={}", socket.display());
        }
        Ok(PostgresServer(Arc::new(Inner { config, authorities, lease, shown, key })))
    }

    /// Returns true if an address contains a password.
    pub fn shows_password(address: &str) -> bool {
        let authority = address.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    }

    pub(crate) fn key(&self) -> &str {
        &self.0.key
    }

    /// Time for which a process holds a run without renewing it.
    pub(crate) fn lease(&self) -> Duration {
        self.0.lease
    }

    /// The user, for messages.
    pub(crate) fn user(&self) -> &str {
        self.0.config.get_user().unwrap_or_default()
    }

    /// The database, for messages.
    pub(crate) fn database(&self) -> &str {
        self.0.config.get_dbname().unwrap_or_default()
    }

    pub(super) async fn connect(&self) -> Result<(Client, RawConnection), PgError> {
        let tls = self.tls().map_err(|why| PgError::new(PgErrorKind::Invalid, why))?;
        // The limit of the library is for each step of it.
        match tokio::time::timeout(2 * CONNECT, self.0.config.connect(tls)).await {
            Ok(connected) => connected.map_err(|e| PgError::of(&e, true)),
            Err(_) => {
                let why = format!("no answer within {} s", 2 * CONNECT.as_secs());
                Err(PgError::new(PgErrorKind::Unreachable, why))
            }
        }
    }

    /// The settings of TLS: the authorities of the system, unless the address names others.
    fn tls(&self) -> Result<MakeRustlsConnect, String> {
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let config = &self.0.config;
        let mut roots = RootCertStore::empty();
        match &self.0.authorities {
            _ if config.get_ssl_mode() == SslMode::Disable || config.get_hosts().iter().all(is_socket) => {}
            None => {
                let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            Some(file) => {
                let cannot = |e: &dyn fmt::Display| format!("cannot read the certificates of `{file}`: {e}");
                let certificates = CertificateDer::pem_file_iter(file).map_err(|e| cannot(&e))?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|e| cannot(&e))?;
                    roots.add(certificate).map_err(|e| cannot(&e))?;
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

/// A value of an option without its percent signs.
fn decoded(value: &str) -> String {
    let pair = format!("v={}", value.replace('+', "%2B"));
    form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}
