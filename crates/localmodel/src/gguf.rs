//! Reads a model file: metadata by key, tensors as rows of floats.
//!
//! A file comes from outside, so no length in it is trusted: nothing larger
//! than the rest of the file is ever allocated for it.
//!
//! Invariant: the only module that knows how a model file is laid out.
//!
//! Source: the GGUF specification, versions 2 and 3.

use crate::Error;
use crate::blocks::Encoding;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;

/// Elements of a metadata list; vocabularies stay far below.
const MAX_LIST: u64 = 1 << 24;

/// Bytes that are decoded at a time.
const STEP: usize = 1 << 20;

/// A metadata value, as far as we read them.
enum Value {
    /// A non-negative integer.
    Integer(u64),
    Float(f32),
    Flag(bool),
    Text(String),
    Integers(Vec<u64>),
    Texts(Vec<String>),
    /// Anything else.
    Other,
}

struct Tensor {
    /// Rows first.
    shape: Vec<usize>,
    /// The number of its encoding.
    encoding: u32,
    offset: u64,
}

/// An open model file.
pub(crate) struct Gguf {
    path: PathBuf,
    file: BufReader<File>,
    len: u64,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, Tensor>,
    /// Base of the tensors' offsets.
    data: u64,
}

impl Gguf {
    /// Opens `path` and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Gguf, Error> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let about = file.metadata().map_err(|e| Error::io(path, e))?;
        let mut gguf = Gguf {
            path: path.into(),
            file: BufReader::new(file),
            len: about.len(),
            metadata: HashMap::new(),
            tensors: HashMap::new(),
            data: 0,
        };
        if !about.is_file() {
            return Err(gguf.invalid("not a regular file"));
        }
        let mut header = Header { rest: about.len(), file: &mut gguf.file };
        let read = header.read();
        let used = about.len() - header.rest;
        let (metadata, tensors) = read.map_err(|detail| gguf.invalid(detail))?;
        (gguf.metadata, gguf.tensors) = (metadata, tensors);
        let alignment = gguf.usize("general.alignment").unwrap_or(32) as u64;
        gguf.data = match used.checked_next_multiple_of(alignment) {
            Some(data) => data,
            None => return Err(gguf.invalid(format!("its alignment is {alignment}"))),
        };
        Ok(gguf)
    }

    fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::NotGguf { path: self.path.clone(), detail: detail.into() }
    }

    /// The string at `key`.
    pub(crate) fn str(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The non-negative integer at `key`.
    pub(crate) fn usize(&self, key: &str) -> Option<usize> {
        match self.metadata.get(key)? {
            Value::Integer(n) => usize::try_from(*n).ok(),
            _ => None,
        }
    }

    /// [`Gguf::usize`], required.
    pub(crate) fn need(&self, key: &str) -> Result<usize, Error> {
        self.usize(key).ok_or_else(|| self.invalid(format!("no `{key}` in its metadata")))
    }

    /// The number at `key`.
    pub(crate) fn f32(&self, key: &str) -> Option<f32> {
        match self.metadata.get(key)? {
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// The flag at `key`.
    pub(crate) fn bool(&self, key: &str) -> Option<bool> {
        match self.metadata.get(key)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The list of strings at `key`.
    pub(crate) fn strings(&self, key: &str) -> Option<&[String]> {
        match self.metadata.get(key)? {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The list of non-negative integers at `key`.
    pub(crate) fn integers(&self, key: &str) -> Option<&[u64]> {
        match self.metadata.get(key)? {
            Value::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Returns true if the file has a tensor of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The vector `name` of length `len`.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, Error> {
        let mut out = Vec::new();
        self.tensor(name, &[len], |values| out.extend_from_slice(values))?;
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
        self.tensor(name, &[rows, cols], sink)
    }

    fn tensor(&mut self, name: &str, shape: &[usize], mut sink: impl FnMut(&[f32])) -> Result<(), Error> {
        let Some(tensor) = self.tensors.get(name) else {
            return Err(self.invalid(format!("no tensor `{name}`")));
        };
        if tensor.shape != shape {
            return Err(
                self.invalid(format!("tensor `{name}` has shape {:?} instead of {shape:?}", tensor.shape))
            );
        }
        let Some(encoding) = Encoding::new(tensor.encoding) else {
            return Err(Error::unsupported(format!(
                "tensor `{name}` has the encoding of number {}",
                tensor.encoding
            )));
        };
        let (weights, bytes) = encoding.block();
        // The caller's shape is sane, so these can't overflow.
        let (rows, cols) = match *shape {
            [rows, cols] => (rows, cols),
            _ => (1, shape.iter().product()),
        };
        if !cols.is_multiple_of(weights) {
            return Err(self.invalid(format!("tensor `{name}` has rows of a broken block")));
        }
        let row = cols / weights * bytes;
        let start = self.data.saturating_add(tensor.offset);
        if (row as u64).saturating_mul(rows as u64) > self.len.saturating_sub(start) {
            return Err(self.invalid(format!("it ends before its tensor `{name}` does")));
        }
        let path = &self.path;
        self.file.seek(SeekFrom::Start(start)).map_err(|e| Error::io(path, e))?;
        let step = (STEP / row.max(1)).max(1);
        let (mut encoded, mut values) = (Vec::new(), Vec::new());
        for first in (0..rows).step_by(step) {
            encoded.resize(row * step.min(rows - first), 0);
            self.file.read_exact(&mut encoded).map_err(|e| Error::io(path, e))?;
            values.clear();
            encoding.decode(&encoded, &mut values);
            sink(&values);
        }
        Ok(())
    }
}

/// A part of a header, or a description of its error.
type Parsed<T> = Result<T, String>;

/// The part of a file before its tensors' data.
struct Header<'a> {
    file: &'a mut BufReader<File>,
    /// Bytes of the file that are not read yet.
    rest: u64,
}

impl Header<'_> {
    #[allow(clippy::type_complexity)]
    fn read(&mut self) -> Parsed<(HashMap<String, Value>, HashMap<String, Tensor>)> {
        if &self.bytes::<4>()? != b"GGUF" {
            return Err("it does not begin with `GGUF`".into());
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(format!("its version is {version}, known are 2 and 3"));
        }
        let (tensors, entries) = (self.u64()?, self.u64()?);
        let mut metadata = HashMap::new();
        for _ in 0..entries {
            let key = self.text()?;
            let kind = self.u32()?;
            metadata.insert(key, self.value(kind)?);
        }
        let mut infos = HashMap::new();
        for _ in 0..tensors {
            let name = self.text()?;
            let dimensions = self.u32()?;
            if dimensions > MAX_DIMENSIONS {
                return Err(format!("tensor `{name}` has {dimensions} dimensions"));
            }
            let mut shape = (0..dimensions)
                .map(|_| usize::try_from(self.u64()?).map_err(|_| format!("tensor `{name}` is too large")))
                .collect::<Parsed<Vec<usize>>>()?;
            shape.reverse();
            let (encoding, offset) = (self.u32()?, self.u64()?);
            infos.insert(name, Tensor { shape, encoding, offset });
        }
        Ok((metadata, infos))
    }

    fn take(&mut self, bytes: u64) -> Parsed<()> {
        self.rest = self.rest.checked_sub(bytes).ok_or("its header is cut off")?;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        self.take(N as u64)?;
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Parsed<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Parsed<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn text(&mut self) -> Parsed<String> {
        let len = self.u64()?;
        self.take(len)?;
        // At most the rest of the file, but the length may still lie about a
        // sparse one: grow as it is read.
        let mut bytes = Vec::new();
        self.file.by_ref().take(len).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, kind: u32) -> Parsed<Value> {
        let signed = |n: i64| u64::try_from(n).map_or(Value::Other, Value::Integer);
        Ok(match kind {
            0 => Value::Integer(self.bytes::<1>()?[0].into()),
            1 => signed(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.bytes()?).into()),
            3 => signed(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Integer(self.u32()?.into()),
            5 => signed(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?)),
            7 => Value::Flag(self.bytes::<1>()?[0] != 0),
            8 => Value::Text(self.text()?),
            9 => self.list()?,
            10 => Value::Integer(self.u64()?),
            11 => signed(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?) as f32),
            _ => return Err(format!("a value has the unknown type {kind}")),
        })
    }

    fn list(&mut self) -> Parsed<Value> {
        let (kind, len) = (self.u32()?, self.u64()?);
        if kind == 9 {
            return Err("it has a list of lists".into());
        }
        if len > MAX_LIST {
            return Err(format!("it has a list of {len} elements"));
        }
        let mut list = match kind {
            0..=5 | 10 | 11 => Value::Integers(Vec::new()),
            8 => Value::Texts(Vec::new()),
            _ => Value::Other,
        };
        for _ in 0..len {
            match (self.value(kind)?, &mut list) {
                (Value::Integer(n), Value::Integers(all)) => all.push(n),
                (Value::Text(text), Value::Texts(all)) => all.push(text),
                // A negative number: no list that we read has one.
                _ => list = Value::Other,
            }
        }
        Ok(list)
    }
}
