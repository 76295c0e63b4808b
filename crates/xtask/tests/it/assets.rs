//! The pages that are parts of the command are made from the sources that are there.

use xtask::root;

/// The hash that `web/assets.mjs` writes: FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn committed_pages_are_made_from_the_current_sources() {
    let list = std::fs::read_to_string(root().join("web/assets.txt")).expect("the list is committed");
    let is_stale = |line: &&str| {
        let (hash, path) = line.split_once(' ').unwrap_or(("", line));
        let bytes = std::fs::read(root().join(path)).unwrap_or_default();
        format!("{:016x}", fnv(&bytes)) != hash
    };
    let stale: Vec<&str> = list.lines().filter(is_stale).collect();
    assert!(list.lines().count() > 10);
    assert!(stale.is_empty(), "run `npm ci && node assets.mjs` in web/: changed since then: {stale:?}");
}
