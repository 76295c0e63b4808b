//! Reads a model file: metadata by key, tensors as `f32` rows.
//!
//! Invariant: the only module that knows how a model file is laid out.

use crate::Error;
use candle_core::CpuStorage;
use candle_core::quantized::gguf_file::{Content, Value};
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// An open model file.
pub(crate) struct Gguf {
    path: PathBuf,
    file: BufReader<File>,
    content: Content,
}

impl Gguf {
    /// Opens `path` and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Gguf, Error> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        if !file.metadata().map_err(|e| Error::io(path, e))?.is_file() {
            return Err(Error::NotGguf { path: path.into(), detail: "not a regular file".into() });
        }
        let mut file = BufReader::new(file);
        let content = guarded(path, || Content::read(&mut file))?;
        Ok(Gguf { path: path.into(), file, content })
    }

    fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::NotGguf { path: self.path.clone(), detail: detail.into() }
    }

    /// The string at `key`.
    pub(crate) fn str(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key)? {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The non-negative integer at `key`.
    pub(crate) fn usize(&self, key: &str) -> Option<usize> {
        as_usize(self.content.metadata.get(key)?)
    }

    /// [`Gguf::usize`], required.
    pub(crate) fn need(&self, key: &str) -> Result<usize, Error> {
        self.usize(key).ok_or_else(|| self.invalid(format!("no `{key}` in its metadata")))
    }

    /// The number at `key`.
    pub(crate) fn f32(&self, key: &str) -> Option<f32> {
        match self.content.metadata.get(key)? {
            Value::F32(x) => Some(*x),
            Value::F64(x) => Some(*x as f32),
            _ => None,
        }
    }

    /// The flag at `key`.
    pub(crate) fn bool(&self, key: &str) -> Option<bool> {
        match self.content.metadata.get(key)? {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The list of strings at `key`.
    pub(crate) fn strings(&self, key: &str) -> Option<Vec<&str>> {
        match self.content.metadata.get(key)? {
            Value::Array(items) => items
                .iter()
                .map(|item| match item {
                    Value::String(s) => Some(s.as_str()),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }

    /// The list of non-negative integers at `key`.
    pub(crate) fn usizes(&self, key: &str) -> Option<Vec<usize>> {
        match self.content.metadata.get(key)? {
            Value::Array(items) => items.iter().map(as_usize).collect(),
            _ => None,
        }
    }

    /// Whether the file has a tensor of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// The vector `name` of length `len`.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, Error> {
        let mut out = Vec::new();
        self.rows(name, &[len], |chunk| out.extend_from_slice(chunk))?;
        Ok(out)
    }

    /// Feeds the matrix `name` (`rows` × `cols`) to `sink`, some whole rows at
    /// a time, so that memory stays near the size of the file.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
        sink: impl FnMut(&[f32]),
    ) -> Result<(), Error> {
        self.rows(name, &[rows, cols], sink)
    }

    fn rows(&mut self, name: &str, shape: &[usize], mut sink: impl FnMut(&[f32])) -> Result<(), Error> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Err(self.invalid(format!("no tensor `{name}`")));
        };
        if info.shape.dims() != shape {
            let found = info.shape.dims().to_vec();
            return Err(self.invalid(format!("tensor `{name}` has shape {found:?} instead of {shape:?}")));
        }
        let (rows, cols) = match *shape {
            [rows, cols] => (rows, cols),
            _ => (1, shape.iter().product()),
        };
        let dtype = info.ggml_dtype;
        let offset = self.content.tensor_data_offset;
        let file = &mut self.file;
        let blocks = guarded(&self.path, || {
            let tensor = info.read(file, offset, &candle_core::Device::Cpu)?;
            Ok(dtype.from_data(tensor.data()?))
        })?;
        const STEP: usize = 1024;
        for first in (0..rows).step_by(STEP) {
            let ids: Vec<u32> = (first..rows.min(first + STEP)).map(|r| r as u32).collect();
            let chunk = guarded(&self.path, || blocks.embedding(&ids, rows, cols))?;
            match chunk {
                CpuStorage::F32(values) => sink(&values),
                _ => return Err(self.invalid(format!("tensor `{name}` does not decode to floats"))),
            }
        }
        Ok(())
    }
}

fn as_usize(value: &Value) -> Option<usize> {
    match *value {
        Value::U8(x) => Some(x.into()),
        Value::U16(x) => Some(x.into()),
        Value::U32(x) => usize::try_from(x).ok(),
        Value::U64(x) => usize::try_from(x).ok(),
        Value::I8(x) => usize::try_from(x).ok(),
        Value::I16(x) => usize::try_from(x).ok(),
        Value::I32(x) => usize::try_from(x).ok(),
        Value::I64(x) => usize::try_from(x).ok(),
        _ => None,
    }
}

/// Runs a reader of the library on data from outside: it asserts some facts
/// about a file (an alignment of zero divides by zero, a shape overflows), and
/// a broken file must not end the program.
fn guarded<T>(path: &Path, read: impl FnOnce() -> candle_core::Result<T>) -> Result<T, Error> {
    let detail = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its header is inconsistent".into(),
    };
    Err(Error::NotGguf { path: path.into(), detail: detail.lines().next().unwrap_or_default().to_owned() })
}
