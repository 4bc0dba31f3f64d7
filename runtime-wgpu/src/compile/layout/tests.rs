//! Tests of addresses.

use super::*;

#[test]
fn parameters_start_and_end_at_vector_boundaries() {
    let text = "autobatch plan 5 module \"m\" structure 0x00000000000000000000000000000001 mode infer
         store @a param f32[5] store @b param f16[3,3] store @c param bf16[2] store @d param f32[4]
         bind words 0 floats 0
         certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes";
    let plan = Plan::from_text(text).expect("parses");
    let starts = |packing| {
        let layout = BufferLayout::new(&plan, packing, Capacity::Exact).expect("fits");
        let at: Vec<u32> = (0..4).map(|store| layout.store(StoreId(store)).at).collect();
        (at, layout.params())
    };
    // Addresses of 16-bit elements count elements, two per word.
    assert_eq!(starts(Packing::Halves), (vec![0, 16, 32, 20], 24));
    assert_eq!(starts(Packing::Words), (vec![0, 8, 20, 24], 28));
}
