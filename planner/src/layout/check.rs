//! The proof of a layout, kept in release builds.
//!
//! It shares no code with the planners and trusts nothing they say: places must be a permutation inside every slab, lanes a
//! permutation inside every batch, and every access other than a table must name exactly the rows that the lanes ask for.
//! O(rows + slot entries).

use super::{Access, Layout, LayoutError, Problem, SlabId};

/// Whether the layout is valid for the problem, and if not, which promise it breaks.
pub fn check(problem: &Problem, layout: &Layout) -> Result<(), LayoutError> {
    ensure(layout.places.len() == problem.rows() as usize, "one place for every row")?;
    ensure(layout.lanes.len() == problem.all_lanes() as usize, "one entry for every lane of every batch")?;
    ensure(layout.access.len() == problem.slot_count() as usize, "one access for every slot")?;
    let mut taken = vec![false; layout.places.len()];
    for slab in (0..problem.slabs()).map(SlabId) {
        let span = problem.span(slab);
        let taken = &mut taken[span.clone()];
        for &place in &layout.places[span] {
            let fresh = taken.get_mut(place as usize).is_some_and(|t| !std::mem::replace(t, true));
            ensure(fresh, "places that are used once and lie inside the slab")?;
        }
    }
    for batch in problem.all_batches() {
        let begin = batch.first_lane as usize;
        let order = &layout.lanes[begin..begin + batch.lanes as usize];
        let mut used = vec![false; order.len()];
        for &lane in order {
            let fresh = used.get_mut(lane as usize).is_some_and(|u| !std::mem::replace(u, true));
            ensure(fresh, "every lane of a batch once")?;
        }
        for index in batch.first_slot as usize..batch.end_slot as usize {
            let slot = problem.slot(index);
            let rows = problem.slot_rows(slot, batch.lanes);
            for (i, &lane) in (0i64..).zip(order) {
                let Some(promised) = promised(layout.access[index], i) else {
                    break;
                };
                let place = i64::from(layout.places[rows[lane as usize] as usize]);
                ensure(place == promised, "a slot that is not gathered to name the rows of its lanes")?;
            }
        }
    }
    Ok(())
}

/// The place that the access promises for the lane that runs `i`-th; `None` where a table says it.
fn promised(access: Access, i: i64) -> Option<i64> {
    match access {
        Access::Range { start } => Some(i64::from(start) + i),
        Access::Strided { start, step } => Some(i64::from(start) + i * step),
        Access::Shared { place } => Some(i64::from(place)),
        Access::Gathered => None,
    }
}

fn ensure(holds: bool, promise: &'static str) -> Result<(), LayoutError> {
    if holds { Ok(()) } else { Err(LayoutError::Broken(promise)) }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    fn chain() -> (Problem, Layout) {
        let mut problem = Problem::new();
        let slab = problem.add_slab(4).unwrap();
        let slot = |role, rows| SlotSpec { role, slab, bytes: 4, rows };
        problem.add_batch(2, &[slot(Role::Result, &[0, 1])]).unwrap();
        problem.add_batch(2, &[slot(Role::Result, &[2, 3]), slot(Role::Operand, &[1, 0])]).unwrap();
        let layout = batch_order(&problem);
        (problem, layout)
    }

    fn broken(change: impl Fn(&mut Layout)) -> String {
        let (problem, mut layout) = chain();
        assert_eq!(check(&problem, &layout), Ok(()));
        change(&mut layout);
        check(&problem, &layout).unwrap_err().to_string()
    }

    #[test]
    fn a_row_order_that_uses_a_place_twice_is_refused() {
        assert!(broken(|l| l.places[0] = 1).contains("places that are used once"));
        assert!(broken(|l| l.places[0] = 9).contains("places that are used once"));
    }

    #[test]
    fn a_lane_order_that_runs_a_lane_twice_is_refused() {
        assert!(broken(|l| l.lanes[0] = 1).contains("every lane of a batch once"));
    }

    #[test]
    fn a_range_that_names_other_rows_than_the_lanes_is_refused() {
        let wrong = broken(|l| l.access[2] = Access::Range { start: 0 });
        assert!(wrong.contains("not gathered"), "{wrong}");
        assert!(broken(|l| l.places.swap(0, 1)).contains("not gathered"));
    }

    #[test]
    fn missing_entries_are_refused() {
        assert!(broken(|l| l.access.truncate(1)).contains("one access"));
        assert!(broken(|l| l.places.truncate(1)).contains("one place"));
        assert!(broken(|l| l.lanes.truncate(1)).contains("every lane"));
    }
}
