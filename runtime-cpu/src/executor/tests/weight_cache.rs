//! Tests of the cache of packed weights.

use crate::executor::program::Weight;
use crate::executor::weight_cache::{MAX_REPLACED, MAX_SETS, StoreValues, WeightCache};
use crate::kernels::Isa;
use autobatch_ir::plan::{ParamPort, Plan, StoreId};

/// A plan of a module with square weights.
fn plan(widths: &[usize]) -> Plan {
    let stores = widths.iter().enumerate();
    let stores: String =
        stores.map(|(number, width)| format!("store @w{number} param f32[{width},{width}]\n")).collect();
    let text = format!(
        "autobatch plan 5 module \"m\" structure 0x00000000000000000000000000000001 mode infer\n{stores}\
         bind words 0 floats 0\n\
         certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes\n"
    );
    Plan::from_text(&text).expect("parses")
}

/// Uses both forms of every weight of a module whose store versions start at `first`. Rerounds the number of packed and
/// of cached parts.
fn execute(packed: &mut WeightCache, widths: &[usize], first: u64) -> (usize, usize) {
    let plan = plan(widths);
    let before = packed.packs;
    packed.select(widths.len(), |store| first + store as u64);
    for (number, &width) in widths.iter().enumerate() {
        let values = vec![1.0; width * width];
        for transposed in [false, true] {
            let weight = Weight { param: ParamPort(0), transposed, col: 0, width: width as u32 };
            let (store, version) = (StoreId(number as u32), first + number as u64);
            packed
                .get(Isa::Scalar, &plan, store, weight, StoreValues { version, values: &values })
                .expect("memory suffices");
        }
    }
    let cached = packed.sets.iter().flat_map(|set| &set.stores).map(Vec::len).sum();
    (packed.packs - before, cached)
}

#[test]
fn packed_weights_of_replaced_modules_are_freed() {
    let mut packed = WeightCache::default();
    for first in [100, 200] {
        assert_eq!(execute(&mut packed, &[4, 5, 6], first), (6, 6));
        assert_eq!(execute(&mut packed, &[4, 5, 6], first), (0, 6), "nothing is packed twice");
        assert_eq!(execute(&mut packed, &[7, 5], first + 10), (4, 4));
        for width in 8..20 {
            assert_eq!(execute(&mut packed, &[width], first + 20 + width as u64), (2, 2));
        }
    }
}

#[test]
fn modules_that_run_in_turns_are_packed_at_most_twice() {
    let modules: [(&[usize], u64); 3] = [(&[4, 5, 6], 100), (&[4, 5, 6], 200), (&[7], 300)];
    let mut packed = WeightCache::default();
    let rounds: Vec<usize> = (0..6)
        .map(|_| modules.iter().map(|&(widths, first)| execute(&mut packed, widths, first).0).sum())
        .collect();
    assert!(rounds[0] == 14 && rounds[1] <= 14, "{rounds:?}");
    assert_eq!(rounds[2..], [0; 4], "{rounds:?}");
}

#[test]
fn modules_that_are_updated_in_turns_have_a_set_each() {
    let mut packed = WeightCache::default();
    for step in 0..20u64 {
        let (_, cached) = execute(&mut packed, &[4, 5], 1000 + 10 * step);
        assert_eq!(cached, 4, "one set as long as no version comes back");
    }
    for step in 0..20u64 {
        for module in [0, 1] {
            let first = 10_000 + 100_000 * module + 10 * step;
            execute(&mut packed, &[4, 5], first);
            let (packs, cached) = execute(&mut packed, &[4, 5], first);
            assert_eq!(packs, 0);
            assert!(cached <= 4 * MAX_SETS);
        }
    }
}

#[test]
fn the_numbers_of_sets_and_replaced_sets_are_bounded() {
    let mut packed = WeightCache::default();
    for round in 0..4 {
        for module in 0..20u64 {
            execute(&mut packed, &[4, 5], 100 * (module + 1));
        }
        assert!(packed.sets.len() <= MAX_SETS && packed.replaced.len() <= MAX_REPLACED, "round {round}");
    }
}

#[test]
fn modules_that_share_stores_have_a_set_each() {
    let mut packed = WeightCache::default();
    let plan = plan(&[4, 4]);
    let mut execute = |versions: [u64; 2]| {
        let before = packed.packs;
        packed.select(2, |store| versions[store]);
        for (number, &version) in versions.iter().enumerate() {
            let weight = Weight { param: ParamPort(0), transposed: false, col: 0, width: 4 };
            let store = StoreId(number as u32);
            packed
                .get(Isa::Scalar, &plan, store, weight, StoreValues { version, values: &[1.0; 16] })
                .expect("memory suffices");
        }
        packed.packs - before
    };
    let rounds: Vec<usize> = (0..10).map(|round| execute([7, 8 + round % 2])).collect();
    assert_eq!(rounds[4..], [0; 6], "{rounds:?}");
}
