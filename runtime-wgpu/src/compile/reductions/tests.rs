//! Tests of the division of reductions.

use super::*;
use autobatch_ir::plan::{Address, Origin};

#[test]
fn divided_rows_are_all_rows_in_order_in_equal_parts() {
    let dy = StepOperand { origin: Origin::Words, address: Address::Steps { start: 0, stride: 1 } };
    let part = |lanes, each| ReductionPart { lanes, each, x: None, dy, cuts: Vec::new() };
    let parts = [part(7, 1), part(0, 3), part(1, 40), part(50, 2), part(3, 9)];
    let all: Vec<Rows<'_>> = parts.iter().map(|part| Rows { part, lanes: 0..part.lanes }).collect();
    for count in [1, 2, 3, 10, 1000] {
        let divided = divided(&all, count);
        assert!(divided.len() as u64 <= count && divided.iter().all(|rows| !rows.is_empty()), "{count}");
        let share = all.iter().map(Rows::count).sum::<u64>().div_ceil(count);
        for rows in &divided {
            // The rows of the last lane stay together.
            let most = share + rows.last().map_or(0, |rows| u64::from(rows.part.each)) - 1;
            assert!(rows.iter().map(Rows::count).sum::<u64>() <= most, "{count}");
        }
        let lanes = |rows: &Rows<'_>| {
            let number = parts.iter().position(|part| std::ptr::eq(part, rows.part)).expect("one of them");
            rows.lanes.clone().map(move |lane| (number, lane)).collect::<Vec<_>>()
        };
        let found: Vec<(usize, u32)> = divided.iter().flatten().flat_map(lanes).collect();
        assert_eq!(found, all.iter().flat_map(lanes).collect::<Vec<_>>(), "{count}");
    }
}
