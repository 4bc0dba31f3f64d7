//! Tests of the units of kernels.

use super::*;
use autobatch_ir::plan::Plan;

/// The units of the first kernel of a text.
fn of(kernel: &str) -> Vec<Unit> {
    let text = format!(
        "autobatch plan 5 module \"m\" structure 0x00000000000000000000000000000001 mode infer
         bind words 0 floats 0
         {kernel}
         certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes"
    );
    units(&Plan::from_text(&text).expect("parses").kernels[0])
}

fn columns(unit: &Unit) -> Vec<(Vec<u32>, bool)> {
    let Unit::Fused { products, .. } = unit else { return Vec::new() };
    let starts = |fused: &Fused| fused.groups.iter().map(|group| group.start).collect();
    products.iter().map(|fused| (starts(fused), fused.stored)).collect()
}

#[test]
fn gates_of_one_product_become_groups_of_its_epilogue() {
    let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,6]] {
        temp %1: f32[6], %2: f32[2]
        prod %1 = 0 + %0 . @0[0..2]
        map 2 {
          t0 = sigmoid %1[4..6]
          t1 = mul t0, %1[0..2] -> %2
        }
        return %2
    }");
    assert_eq!(units.len(), 1);
    assert_eq!(columns(&units[0]), [(vec![4, 0], false)]);
}

#[test]
fn a_product_with_other_readers_is_stored() {
    let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,2]] {
        temp %1: f32[2], %2: f32[2]
        prod %1 = 0 + %0 . @0[0..2]
        map 2 {
          t0 = tanh %1 -> %2
        }
        return %2, %1
    }");
    assert_eq!(units.len(), 1);
    assert_eq!(columns(&units[0]), [(vec![0], true)]);
}

#[test]
fn two_products_share_an_epilogue_and_unfit_stages_stay_single() {
    let units = of("kernel k0 @cell (%0: f32[2], %1: f32[2]) [@0: f32[2,2]] {
        temp %2: f32[2], %3: f32[2], %4: f32[2], %5: f32[2], %6: f32
        prod %2 = 0 + %0 . @0[0..2]
        prod %3 = 0 + %1 . @0[0..2]
        map 2 {
          t0 = add %2, %3 -> %4
        }
        prod %5 = 0 + %4 . @0[0..2]
        row %6 = reduce{fold=sum over=all} %5
        return %6
    }");
    assert_eq!(units.len(), 3, "{units:?}");
    assert_eq!(columns(&units[0]), [(vec![0], false), (vec![0], false)]);
    assert_eq!(units[1..], [Unit::Stage(3), Unit::Stage(4)]);
}

#[test]
fn columns_that_only_other_readers_read_prevent_fusion() {
    let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,4]] {
        temp %1: f32[4], %2: f32[2]
        prod %1 = 0 + %0 . @0[0..2]
        map 2 {
          t0 = tanh %1[0..2] -> %2
        }
        return %2, %1
    }");
    assert_eq!(units, [Unit::Stage(0), Unit::Stage(1)]);
}

#[test]
fn the_search_for_epilogues_is_linear_in_the_number_of_products() {
    // A search that is not linear takes hours.
    let many = 100_000;
    let temps = (1..=2 * many).map(|reg| format!("%{reg}: f32[2]"));
    let products = (1..=many).map(|reg| format!("prod %{reg} = 0 + %0 . @0[0..2]\n"));
    let lines = (1..=many).map(|reg| format!("map 2 {{\n t0 = tanh %{reg} -> %{}\n }}\n", many + reg));
    let units = of(&format!(
        "kernel k0 @cell (%0: f32[2]) [@0: f32[2,2]] {{
        temp {}
        {}{}return %{}
        }}",
        temps.collect::<Vec<_>>().join(", "),
        products.collect::<String>(),
        lines.collect::<String>(),
        2 * many
    ));
    assert!(units.len() == many && units.iter().all(|unit| !columns(unit).is_empty()));
}
