use crate::releases::compare;
use crate::table::SOURCES;
use std::cmp::Ordering;

#[test]
fn versions_are_ordered_as_installers_do() {
    for (a, b) in [("1.9", "1.10"), ("1.0rc1", "1.0"), ("1.0", "1.0.post1"), ("0.9.9", "1")] {
        assert_eq!(compare(a, b), Ordering::Less, "{a} {b}");
    }
    assert_eq!(compare("1.0", "1.0.0"), Ordering::Equal);
}

#[test]
fn every_table_can_be_read_and_lists_its_releases_in_order() {
    for source in &SOURCES {
        let package = source.package;
        let table = source.table().unwrap_or_else(|| panic!("{package}"));
        assert!(!table.releases.is_empty(), "{package}");
        assert!(!table.recent().is_empty(), "{package}");
        for pair in table.releases.windows(2) {
            assert_eq!(compare(pair[0].0, pair[1].0), Ordering::Less, "{package} {pair:?}");
        }
    }
}
