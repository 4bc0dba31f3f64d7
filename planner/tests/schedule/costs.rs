//! Cost tables: their JSON form and their errors.

use autobatch_planner::schedule::CostTable;

#[test]
fn a_table_survives_json() {
    let table = CostTable { machine: "test".to_owned(), ..CostTable::default() };
    assert_eq!(CostTable::from_json(&table.to_json()), Ok(table));
}

#[test]
fn invalid_prices_are_rejected_by_name() {
    let rejected = |change: fn(&mut CostTable)| {
        let mut table = CostTable::default();
        change(&mut table);
        CostTable::from_json(&table.to_json()).expect_err("rejected").to_string()
    };
    assert!(rejected(|table| table.step_ns = -1.0).contains("step_ns is -1"));
    assert!(rejected(|table| table.classes.fold.row_ns = -2.0).contains("classes.fold.row_ns"));
    assert!(rejected(|table| table.version = 9).contains("expected version 1, found 9"));
    assert!(rejected(|table| table.planning.gains.reverse()).contains("ascending"));
    assert!(rejected(|table| table.planning.gains[0].share = 1.5).contains("at most 1"));
}

#[test]
fn every_number_reads_back_exactly() {
    // Readers that round twice read the neighbour of this number.
    for number in
        [5e-324, 0.1 + 0.2, 3.8181567e-6, 1.0 / 3.0, 2.225_073_858_507_201e-308, 1.7976931348623157e308]
    {
        for step in 0..2000u64 {
            let number = f64::from_bits(f64::to_bits(number) - step.min(f64::to_bits(number) - 1));
            let table = CostTable { step_ns: number, ..CostTable::default() };
            assert_eq!(CostTable::from_json(&table.to_json()).expect("a table").step_ns, number);
        }
    }
}

#[test]
fn unknown_and_missing_fields_are_rejected() {
    let text = CostTable::default().to_json();
    let more = text.replacen("\"version\"", "\"speed\": 1, \"version\"", 1);
    assert!(CostTable::from_json(&more).expect_err("rejected").to_string().contains("speed"));
    let less = text.replacen("\"step_ns\"", "\"steps\"", 1);
    assert!(CostTable::from_json(&less).expect_err("rejected").to_string().contains("`steps`"));
}

#[test]
fn the_error_for_a_missing_file_names_it() {
    let error = CostTable::load("no/such/costs.json").expect_err("no such file").to_string();
    assert!(error.contains("no/such/costs.json"), "{error}");
}

#[cfg(unix)]
#[test]
fn an_endless_file_is_rejected() {
    let error = CostTable::load("/dev/zero").expect_err("the file is endless").to_string();
    assert!(error.contains("only the first 1048576 bytes are read"), "{error}");
}
