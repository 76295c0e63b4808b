//! A Postgres server of a test's own, on a private socket.
//!
//! `scripts/test` installs the programs and says in `ENTAIL_POSTGRES_BIN` in which folder they are; without
//! the variable those on the path, or of Debian, are taken. Where there are none, tests that need them say so
//! and pass: `scripts/test` never gets there.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The port in the name of the socket of a server that listens to no other.
const PORT: u16 = 54_329;

pub struct PostgresServer {
    child: Child,
    bin: PathBuf,
    port: u16,
    dir: PathBuf,
    options: Vec<String>,
    databases: AtomicUsize,
    // Last, so that the server has ended before its directory goes.
    _owner: tempfile::TempDir,
}

impl PostgresServer {
    /// A server with these settings besides, such as `max_connections=20`; `None` where there is no program.
    pub fn start(options: &[&str]) -> Option<PostgresServer> {
        PostgresServer::start_at(PORT, options)
    }

    /// A server with this port.
    pub fn start_at(port: u16, options: &[&str]) -> Option<PostgresServer> {
        let bin = programs()?;
        let owner = tempfile::tempdir().unwrap();
        let dir = owner.path().to_path_buf();
        if let Some((user, group)) = server_user(&dir) {
            chown(&dir, Some(user), Some(group)).unwrap();
        }
        let mut init = command(&bin, "initdb", &dir);
        let options: Vec<String> = options.iter().map(|o| (*o).to_string()).collect();
        init.args(["-D", "data", "-U", "entail", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        let made = init.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let child = serve(&bin, &dir, port, &options);
        Some(PostgresServer { child, bin, port, dir, options, databases: AtomicUsize::new(0), _owner: owner })
    }

    /// A server that tests share which run at the same time, each with a database of its own.
    pub fn shared() -> Option<Arc<PostgresServer>> {
        static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(PostgresServer::start(&["max_connections=300"])?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// The address of a database of it.
    pub fn address(&self, database: &str) -> String {
        self.address_of("entail", database)
    }

    /// The address of a database for a user.
    pub fn address_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@/{database}?host={}&port={}", self.dir.display(), self.port)
    }

    /// The address of a fresh database.
    pub fn fresh(&self) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// Output of `psql` for these statements.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let said = self.psql(database, sql);
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().trim_end().to_string()
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let mut command = command(&self.bin, "psql", &self.dir);
        let place = [self.dir.display().to_string(), self.port.to_string()];
        command.args(["-h", &place[0], "-p", &place[1], "-U", "entail", "-d", database]);
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]).output().unwrap()
    }

    /// Kills it as it is, as a failure of its machine would.
    pub fn kill(&mut self) {
        let children = Command::new("pkill").args(["-KILL", "-P", &self.child.id().to_string()]).status();
        assert!(children.is_ok());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again.
    pub fn start_again(&mut self) {
        let _ = std::fs::remove_file(self.dir.join("data/postmaster.pid"));
        self.child = serve(&self.bin, &self.dir, self.port, &self.options);
    }

    /// From now on connections to its port need a password.
    pub fn demand_passwords(&self) {
        let rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(self.dir.join("data/pg_hba.conf"), rules).unwrap();
        self.sql("postgres", "SELECT pg_reload_conf()");
        std::thread::sleep(Duration::from_millis(200));
    }

    /// Ends all connections of clients.
    pub fn cut_connections(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name = 'entail' AND pid <> pg_backend_pid()";
        self.sql("postgres", cut);
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // The fast way to end, which leaves no process.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn serve(bin: &Path, dir: &Path, port: u16, options: &[String]) -> Child {
    let mut server = command(bin, "postgres", dir);
    server.args(["-D", "data", "-k"]).arg(dir).args(["-p", &port.to_string()]);
    if !options.iter().any(|option| option.starts_with("listen_addresses")) {
        server.args(["-c", "listen_addresses="]);
    }
    for option in options {
        server.args(["-c", option]);
    }
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    let mut child = server.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    for _ in 0..1500 {
        let mut asks = command(bin, "psql", dir);
        asks.args(["-h"]).arg(dir).args(["-p", &port.to_string(), "-U", "entail", "-d", "postgres", "-X"]);
        if asks.args(["-c", "SELECT 1"]).output().is_ok_and(|said| said.status.success()) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("the Postgres server has not begun to listen");
}

/// A program that does not run as root, which the server refuses to.
fn command(bin: &Path, name: &str, dir: &Path) -> Command {
    let mut command = Command::new(bin.join(name));
    command.current_dir(dir).env("LC_ALL", "C").env_remove("PGPASSWORD").stdin(Stdio::null());
    if let Some((user, group)) = server_user(dir) {
        command.uid(user).gid(group);
    }
    command
}

/// The user and the group of the server, if the tests run as root: that of Debian's package, or nobody.
fn server_user(dir: &Path) -> Option<(u32, u32)> {
    let is_root = std::fs::metadata("/proc/self").map_or_else(|_| std::fs::metadata(dir), Ok);
    if is_root.ok()?.uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let entry = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    entry("postgres").or_else(|| entry("nobody"))
}

/// The folder of the programs.
#[allow(clippy::print_stderr, reason = "whoever runs the tests should know that one was not run")]
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ENTAIL_POSTGRES_BIN") {
        let named = PathBuf::from(named);
        for program in ["initdb", "postgres", "psql"] {
            assert!(named.join(program).is_file(), "no `{program}` in {}", named.display());
        }
        return Some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let places = std::env::split_paths(&path).chain(debian.map(|version| version.path().join("bin")));
    let has_all = |place: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|p| place.join(p).is_file());
    let found = places.into_iter().find(has_all);
    if found.is_none() {
        eprintln!("not run: there is no Postgres server here (install it, as `scripts/test` does)");
    }
    found
}
