//! What people write, as core terms.
//!
//! Entry point: [`doc`] reads YAML and JSON with the place of every node.
//!
//! Invariant: pure. Files are read by the caller and handed in as bytes; nothing here opens one.

pub mod doc;
