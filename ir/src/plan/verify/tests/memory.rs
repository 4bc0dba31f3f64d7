//! Rules P1 to P6: pools, ids, waves, storage, sizes.

use super::refused;
use crate::NodeId;
use crate::module::ParamKind;
use crate::plan::verify::Rule;
use crate::plan::{Field, FieldId, KernelId, Slab, SlabId, SlabKind, StepOperand, Store, StoreId, StoreKind};
use crate::types::{DType, Shape, Type, f32};

shows! {
    ranges_of_steps_tile_their_pools: refused(Rule::Ranges, |plan| plan.steps[2].operands.start = 3) => @r#"
    the plan breaks its rules in 1 place
       1. P1 step f2 (k2 @node): its operands must begin at 2, where those of the step before end, and lie inside 0..5, found 3..5
    "#;
    every_pool_entry_belongs_to_a_step: refused(Rule::Ranges, |plan| plan.lanes.push(NodeId::new(9))) => @r#"
    the plan breaks its rules in 1 place
       1. P1 the plan: every one of the 6 lanes must belong to a step, 5 do
    "#;
    fields_of_slabs_tile_the_fields: refused(Rule::Ranges, |plan| plan.slabs[1].fields = 1..2) => @r#"
    the plan breaks its rules in 1 place
       1. P1 the plan: every one of the 3 fields must belong to a slab, 2 do
    "#;
    what_is_named_exists: refused(Rule::Ids, |plan| {
        plan.operands[2] = StepOperand::rows(FieldId(3), 0, 1)
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P2 step f2 (k2 @node): there is no field3, only 3 of them
    "#;
    kernels_that_are_named_exist: refused(Rule::Ids, |plan| plan.steps[0].kernel = KernelId(3)) => @r#"
    the plan breaks its rules in 1 place
       1. P2 step f0: there is no kernel k3, only 3 of them
    "#;
    waves_ascend_and_cover_the_steps: refused(Rule::Waves, |plan| plan.waves = vec![2, 2]) => @r#"
    the plan breaks its rules in 2 places
       1. P3 wave 1: it must end after step 2, found 2
       2. P3 the plan: the waves must end with the last of 3 steps, found 2
    "#;
    fields_hold_words:
        refused(Rule::Storage, |plan| plan.fields[0].ty = Type::new(DType::F16, Shape::new(&[2]).unwrap())) => @r#"
    the plan breaks its rules in 1 place
       1. P4 field 0: a field holds f32, i32, u32 or bool values, found f16[2]
    "#;
    stores_have_different_names: refused(Rule::Storage, |plan| {
        let name = plan.stores[0].name.clone();
        plan.stores[1].name = name;
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P4 store 1: its name must be its own, store 0 is @embed too
    "#;
    stores_have_names_that_text_can_spell:
        refused(Rule::Storage, |plan| plan.stores[0].name = "t.{grad".to_owned()) => @r#"
    the plan breaks its rules in 1 place
       1. P4 store 0: its name must be letters, digits, dots, dashes and underscores, found "t.{grad"
    "#;
    fields_of_a_slab_have_different_names:
        refused(Rule::Storage, |plan| plan.fields[2].name = "a".to_owned()) => @r#"
    the plan breaks its rules in 1 place
       1. P4 field 2: its name must be its own, field 1 is a too
    "#;
    states_belong_to_parameters: refused(Rule::Storage, |plan| {
        plan.stores.push(Store { name: "m".to_owned(), ty: f32(4), kind: StoreKind::State(StoreId(2)) })
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P4 store 3: it must have the shape of a parameter, found f32[4] for store2: f32[3]
    "#;
    tables_have_two_dimensions: refused(Rule::Storage, |plan| {
        plan.stores.push(Store { name: "t".to_owned(), ty: f32(4), kind: StoreKind::Param(ParamKind::Table) })
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P4 store 3: a table has the shape [rows, width], found f32[4]
    "#;
    slab_bytes_fit_in_64_bits: refused(Rule::Sizes, |plan| {
        let field = |number| Field { slab: SlabId(2), name: format!("z{number}"), ty: f32(1 << 29) };
        plan.fields.extend((0..4).map(field));
        plan.slabs.push(Slab { kind: SlabKind::Value, rows: u32::MAX, fields: 3..7 });
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P5 the plan: its slabs take more than 2^64 bytes
    "#;
    no_slab_has_rows_that_no_step_writes: refused(Rule::Rows, |plan| plan.slabs[0].rows = 4) => @r#"
    the plan breaks its rules in 1 place
       1. P6 slab s0: it declares 4 rows, steps write 3 of them
    "#;
}
