//! A server of the engine on this machine, for development.
//!
//! Entry point: [`LocalServer`].
//!
//! Invariant: only a program is started that the user has installed: the one that `ENTAIL_RESTATE_SERVER`
//! names, or `restate-server` on the `PATH`. Nothing is fetched.
//! Invariant: the server listens on this machine alone, with its telemetry switched off.
//! Invariant: only a process is stopped that was started for the same directory.

use crate::error::Error;
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::fs::{File, create_dir_all, read_to_string, remove_dir_all, write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names the program of the server.
const PROGRAM: &str = "ENTAIL_RESTATE_SERVER";

/// Times that a start is tried if the server ends at once.
const ATTEMPTS: u64 = 4;

/// Time that a server has to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of the engine on this machine, with what it keeps in a directory.
#[derive(Clone, Debug)]
pub struct LocalServer {
    dir: PathBuf,
}

/// A server that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its process.
    pub pid: u32,
    /// Address of its admin API, which is that of the engine.
    pub admin: String,
    /// Address at which runs are begun.
    pub ingress: String,
}

impl LocalServer {
    /// The server whose data and log are in this directory.
    pub fn new(dir: impl Into<PathBuf>) -> LocalServer {
        LocalServer { dir: dir.into() }
    }

    fn state_file(&self) -> PathBuf {
        self.dir.join("server.json")
    }

    /// Record of the server that was started last.
    fn last(&self) -> Option<Json> {
        serde_json::from_str(&read_to_string(self.state_file()).ok()?).ok()
    }

    /// The server, if one is running.
    pub fn status(&self) -> Option<ServerState> {
        let last = self.last()?;
        let text = |name: &str| last[name].as_str().map(String::from);
        let pid = u32::try_from(last["pid"].as_u64()?).ok()?;
        let state = ServerState { pid, admin: text("admin")?, ingress: text("ingress")? };
        self.is_ours(pid).then_some(state)
    }

    /// Returns whether a process is a server of this directory.
    fn is_ours(&self, pid: u32) -> bool {
        let shown = if cfg!(target_os = "linux") {
            std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
        } else {
            let ps = Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output();
            ps.map(|ps| ps.stdout).unwrap_or_default()
        };
        String::from_utf8_lossy(&shown).contains(&*self.data().to_string_lossy())
    }

    fn data(&self) -> PathBuf {
        self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone()).join("data")
    }

    /// Starts the server with its admin API at a port of this machine; `None` is any free one, or that of the
    /// last time. Returns once the server can be used.
    ///
    /// # Errors
    /// No program of the server is installed, one runs already, or it does not start.
    pub fn start(&self, port: Option<u16>) -> Result<ServerState, Error> {
        let program = program(std::env::var_os(PROGRAM), std::env::var_os("PATH"))?;
        if let Some(running) = self.status() {
            return Err(Error::new(format!("the engine runs already, at `{}`", running.admin))
                .with_help("`entail engine stop` stops it"));
        }
        let unusable = |what: &str, e: std::io::Error| {
            Error::new(format!("cannot {what} `{}`: {e}", self.dir.display()))
        };
        create_dir_all(&self.dir).map_err(|e| unusable("make", e))?;
        // A server that is killed leaves files in its temporary folder, which is thus one of its own.
        let temporary = self.data().with_file_name("tmp");
        let _ = remove_dir_all(&temporary);
        create_dir_all(&temporary).map_err(|e| unusable("make", e))?;
        let log = File::create(self.dir.join("server.log")).map_err(|e| unusable("write to", e))?;
        let errors = log.try_clone().map_err(|e| unusable("write to", e))?;
        // Those who know the server by its addresses find it there again.
        let before = |name: &str| {
            let port = self.last()?["ports"][name].as_u64()?;
            u16::try_from(port).ok().filter(|port| free_port(Some(*port)).is_ok())
        };
        let admin = free_port(port.or_else(|| before("admin")))?;
        let (ingress, node) = (free_port(before("ingress"))?, free_port(before("node"))?);
        let mut server = Command::new(&program);
        server
            .args(["--no-logo", "--node-name", "local", "--cluster-name", "entail-local"])
            .args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--advertised-host", "127.0.0.1"])
            .args(["--bind-port", &node.to_string(), "--log-disable-ansi-codes", "true"])
            .arg("--base-dir")
            .arg(self.data())
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
            .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
            .env("TMPDIR", &temporary)
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "1")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            // Ctrl-C at this terminal is not for it.
            server.process_group(0);
        }
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        let begun = Instant::now();
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            // A process that was killed may hold its files for a moment longer.
            std::thread::sleep(Duration::from_millis(500 * attempt));
            let mut child = server.spawn().map_err(|e| {
                Error::new(format!("cannot start `{}`: {e}", program.display())).with_help(install())
            })?;
            let state = ServerState { pid: child.id(), admin: at(admin), ingress: at(ingress) };
            let json = json!({
                "pid": state.pid, "admin": state.admin, "ingress": state.ingress,
                "ports": {"admin": admin, "ingress": ingress, "node": node},
            });
            write(self.state_file(), json.to_string()).map_err(|e| unusable("write to", e))?;
            why = loop {
                if is_listening(admin) && is_listening(ingress) {
                    return Ok(state);
                }
                if let Some(status) = child.try_wait().ok().flatten() {
                    break format!("the server ended at once ({status})");
                }
                if begun.elapsed() > PATIENCE {
                    let _ = child.kill();
                    let _ = child.wait();
                    break "the server did not start in time".into();
                }
                std::thread::sleep(Duration::from_millis(100));
            };
            if begun.elapsed() > PATIENCE {
                break;
            }
        }
        let log = self.dir.join("server.log");
        Err(Error::new(why).with_help(format!("`{}` says more", log.display())))
    }

    /// Stops the server; returns false if none runs.
    ///
    /// # Errors
    /// It does not stop.
    pub fn stop(&self) -> Result<bool, Error> {
        let Some(state) = self.status() else { return Ok(false) };
        let begun = Instant::now();
        let mut kill = Command::new("kill");
        let asked = kill.arg(state.pid.to_string()).stderr(Stdio::null()).status();
        asked.map_err(|e| Error::new(format!("cannot stop the process {}: {e}", state.pid)))?;
        while self.is_ours(state.pid) {
            if begun.elapsed() > PATIENCE {
                return Err(Error::new(format!("the process {} does not end", state.pid)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(true)
    }
}

fn install() -> String {
    format!(
        "install Restate's server (`npm install -g @restatedev/restate-server`, or see its site), so that `restate-server` is on the PATH, or name it in `{PROGRAM}`"
    )
}

/// The program of the server.
fn program(named: Option<OsString>, path: Option<OsString>) -> Result<PathBuf, Error> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(Error::new(format!("`{PROGRAM}` names `{}`, which is no file", named.display()))
                .with_help(install())),
        };
    }
    let name = if cfg!(windows) { "restate-server.exe" } else { "restate-server" };
    let found = path.as_ref().and_then(|path| {
        let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
        dirs.map(|dir| dir.join(name)).find(|file| Path::is_file(file))
    });
    found.ok_or_else(|| Error::new("Restate's server is not installed").with_help(install()))
}

/// A port of this machine that nothing listens on.
fn free_port(wanted: Option<u16>) -> Result<u16, Error> {
    let bound = TcpListener::bind(("127.0.0.1", wanted.unwrap_or(0)));
    let port = bound.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|e| {
        Error::new(format!("cannot listen on port {} of 127.0.0.1: {e}", wanted.unwrap_or(0)))
            .with_help("choose another one with `--port`")
    })
}

fn is_listening(port: u16) -> bool {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_installed_server_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let none = program(None, Some(dir.path().into())).unwrap_err();
        assert!(none.message.contains("not installed") && none.help.unwrap().contains(PROGRAM));
        let wrong = program(Some("/no/such/file".into()), Some(dir.path().into())).unwrap_err();
        assert!(wrong.message.contains("/no/such/file"));
        let file = dir.path().join(if cfg!(windows) { "restate-server.exe" } else { "restate-server" });
        std::fs::write(&file, "").unwrap();
        assert_eq!(program(None, Some(dir.path().into())).unwrap(), file);
        // A directory of the path that depends on where the command is started is no place to look.
        assert!(program(None, Some(".".into())).is_err());
    }

    #[test]
    fn a_process_of_another_directory_is_not_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let server = LocalServer::new(dir.path());
        assert_eq!(server.status(), None);
        let json = json!({"pid": std::process::id(), "admin": "http://127.0.0.1:1", "ingress": ""});
        write(server.state_file(), json.to_string()).unwrap();
        assert_eq!(server.status(), None);
        assert_eq!(server.stop(), Ok(false));
    }
}
