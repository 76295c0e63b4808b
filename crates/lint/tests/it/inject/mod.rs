//! Fault injection: every fault is found, and nothing else.

mod experiment;

#[test]
fn sound_configurations_have_no_findings() {
    let result = experiment::experiment();
    assert_eq!(result.sound, 60);
    assert!(result.false_alarms.is_empty(), "{}", result.false_alarms.join("\n"));
}

#[test]
fn every_fault_is_found_and_nothing_else() {
    let result = experiment::experiment();
    assert!(result.rows.len() >= 40, "{}", result.rows.len());
    for (kind, row) in &result.rows {
        assert!(row.put > 0 && row.found == row.put, "{kind:?}: {} of {}", row.found, row.put);
        assert!(row.others.is_empty(), "{kind:?}:\n{}", row.others.join("\n"));
    }
}
