//! A Redis server of a test's own, on a private socket.
//!
//! `scripts/test` installs the program and says in `ENTAIL_REDIS_SERVER` where it is; without the variable
//! the one on the path is taken. Where there is none, tests that need it say so and pass: `scripts/test`
//! never gets there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct RedisServer {
    child: Child,
    dir: PathBuf,
    options: Vec<String>,
    // Last, so that the server has ended before its directory goes.
    _owner: tempfile::TempDir,
}

impl RedisServer {
    /// A server with these options besides; `None` where there is no program.
    pub fn start(options: &[&str]) -> Option<RedisServer> {
        let owner = tempfile::tempdir().unwrap();
        let dir = owner.path().to_path_buf();
        let options: Vec<String> = options.iter().map(|o| (*o).to_string()).collect();
        let child = start(&dir, &options)?;
        Some(RedisServer { child, dir, options, _owner: owner })
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("unix://{}", socket(&self.dir).display())
    }

    /// Returns the answer of `redis-cli` to a command.
    pub fn cli(&self, command: &[&str]) -> String {
        let out = Command::new("redis-cli").arg("-s").arg(socket(&self.dir)).args(command).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    /// Ends it, and starts another one in its place if `again`. It keeps nothing.
    pub fn end(&mut self, again: bool) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(socket(&self.dir));
        if again {
            self.child = start(&self.dir, &self.options).unwrap();
        }
    }

    /// Stops it as it is, or lets it go on.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("redis.sock")
}

#[allow(clippy::print_stderr, reason = "whoever runs the tests should know that one was not run")]
fn start(dir: &Path, options: &[String]) -> Option<Child> {
    let named = std::env::var_os("ENTAIL_REDIS_SERVER");
    let program = named.clone().unwrap_or_else(|| "redis-server".into());
    let child = Command::new(&program)
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(socket(dir))
        .args(options)
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            eprintln!("not run: there is no `redis-server` here (install it, as `scripts/test` does)");
            return None;
        }
        Err(e) => panic!("cannot start {}: {e}", program.display()),
    };
    for _ in 0..500 {
        if std::os::unix::net::UnixStream::connect(socket(dir)).is_ok() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the Redis server has not begun to listen");
}
