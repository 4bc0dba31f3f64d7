//! Rules P15 to P23: what steps give their kernels.

use super::{refused, refused_kernel};
use crate::plan::verify::Rule;
use crate::plan::{Address, FieldId, Group, GroupRange, GroupRule, Origin, Plan, StepOperand};

const FLOATS: StepOperand =
    StepOperand { origin: Origin::Floats, address: Address::Steps { start: 0, stride: 0 } };

/// Makes both lists of the last step one group of two lanes, or of other numbers.
fn grouped(plan: &mut Plan, end: u32, len: u32, start: u32, rule: GroupRule) {
    plan.groups = vec![Group { end, len, range: GroupRange::Run { start }, rule }];
    for operand in &mut plan.operands[3..5] {
        operand.address = Address::Groups { first: 0, count: 1 };
    }
}

#[test]
fn lists_may_be_groups() {
    let mut plan = super::good();
    grouped(&mut plan, 2, 3, 0, GroupRule::All);
    plan.certificate.gathered = 0;
    plan.certificate.direct += 6;
    plan.verify().expect("the plan keeps the rules");
}

shows! {
    groups_end_with_the_last_lane: refused(Rule::Segments, |plan| grouped(plan, 1, 2, 0, GroupRule::All)) => @r#"
    the plan breaks its rules in 2 places
       1. P21 step f2 (k2 @node): the groups of operand 1 must end with lane 2, found 1
       2. P21 step f2 (k2 @node): the groups of operand 2 must end with lane 2, found 1
    "#;
    prefixes_have_a_list_for_each_lane:
        refused(Rule::Segments, |plan| grouped(plan, 2, 0, 0, GroupRule::Prefix)) => @r#"
    the plan breaks its rules in 2 places
       1. P21 step f2 (k2 @node): a group of operand 1 must have lanes, and a prefix or suffix at most one more than numbers, found 2 lanes from 0 on with 0 numbers
       2. P21 step f2 (k2 @node): a group of operand 2 must have lanes, and a prefix or suffix at most one more than numbers, found 2 lanes from 0 on with 0 numbers
    "#;
    rows_of_groups_lie_inside_slabs: refused(Rule::Bounds, |plan| grouped(plan, 2, 2, 2, GroupRule::All)) => @r#"
    the plan breaks its rules in 2 places
       1. P20 step f2 (k2 @node): operand 1 names row 3 of s0, which has 3 rows
       2. P20 step f2 (k2 @node): operand 2 names row 3 of s0, which has 3 rows
    "#;
    groups_lie_inside_their_pool: refused(Rule::Bounds, |plan| {
        plan.operands[3].address = Address::Groups { first: 1, count: 2 };
        plan.operands[4].address = plan.operands[3].address;
    }) => @r#"
    the plan breaks its rules in 2 places
       1. P20 step f2 (k2 @node): operand 1 reads the groups 1..3 of 0
       2. P20 step f2 (k2 @node): operand 2 reads the groups 1..3 of 0
    "#;
    lists_folded_with_groups_are_as_long: refused(Rule::Lengths, |plan| {
        let lists = plan.operands[4];
        grouped(plan, 2, 2, 0, GroupRule::All);
        plan.operands[4] = lists;
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P22 step f2 (k2 @node): lists that are folded together must be equally long in every lane
    "#;
    sources_have_no_stages: refused_kernel(Rule::Sources, 0, |kernel| kernel.source = true) => @r#"
    the plan breaks its rules in 1 place
       1. P15 kernel k0 (lookup): a source has no stages, found 1
    "#;
    a_step_has_an_operand_for_each_port: refused(Rule::Arity, |plan| {
        plan.steps[2].operands.end = 4;
        plan.operands.pop();
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P16 step f2 (k2 @node): it must have 3 operands, found 2
    "#;
    a_step_has_a_lane_for_each_row: refused(Rule::Arity, |plan| plan.steps[1].rows = 2) => @r#"
    the plan breaks its rules in 1 place
       1. P16 step f1 (k1 input): it must have 2 lanes, found 1
    "#;
    lists_are_segments: refused(Rule::OperandTypes, |plan| {
        plan.operands[3] = StepOperand::rows(FieldId(0), 0, 1)
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P17 step f2 (k2 @node): operand 1 must be list f32[2], found rows of field0: f32[2]
    "#;
    words_are_not_bound_as_floats:
        refused(Rule::OperandTypes, |plan| plan.operands[0] = FLOATS) => @r#"
    the plan breaks its rules in 1 place
       1. P17 step f0 (k0 lookup): operand 0 must be u32, found bound floats
    "#;
    places_have_the_types_of_results: refused(Rule::PlaceTypes, |plan| plan.places.swap(2, 3)) => @r#"
    the plan breaks its rules in 2 places
       1. P18 step f2 (k2 @node): result 0 has 3 elements of f32, its place field2 takes f32
       2. P18 step f2 (k2 @node): result 1 has 1 elements of f32, its place field1 takes f32[3]
    "#;
    stores_have_the_types_of_parameter_ports: refused(Rule::StoreTypes, |plan| plan.store_args.swap(1, 2)) => @r#"
    the plan breaks its rules in 2 places
       1. P19 step f2 (k2 @node): parameter port 0 takes f32[4,3], store2 is f32[3]
       2. P19 step f2 (k2 @node): parameter port 1 takes f32[3], store1 is f32[4,3]
    "#;
    rows_lie_inside_slabs: refused(Rule::Bounds, |plan| {
        plan.operands[2] = StepOperand::rows(FieldId(0), 1, 2)
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P20 step f2 (k2 @node): operand 0 names row 3 of s0, which has 3 rows
    "#;
    table_ranges_lie_inside_the_tables:
        refused(Rule::Bounds, |plan| plan.operands[2].address = Address::Table { at: u32::MAX }) => @r#"
    the plan breaks its rules in 1 place
       1. P20 step f2 (k2 @node): operand 0 reads the table entries 4294967295..4294967297 of 9
    "#;
    outputs_lie_inside_slabs: refused(Rule::Bounds, |plan| plan.outputs[0].row = 2) => @r#"
    the plan breaks its rules in 1 place
       1. P20 output 0: row 2 must be below 2, the rows of field1
    "#;
    segment_offsets_ascend_from_0: refused(Rule::Segments, |plan| plan.tables[1] = 4) => @r#"
    the plan breaks its rules in 2 places
       1. P21 step f2 (k2 @node): the offsets of operand 1 must ascend from 0
       2. P21 step f2 (k2 @node): the offsets of operand 2 must ascend from 0
    "#;
    lists_folded_together_are_equally_long: refused(Rule::Lengths, |plan| {
        plan.tables.extend([0, 2, 3]);
        plan.operands[4].address = Address::Lists { offsets: 9, items: 6 };
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P22 step f2 (k2 @node): lists that are folded together must be equally long in every lane
    "#;
    bindings_lie_inside_their_pools:
        refused(Rule::Bindings, |plan| plan.operands[1].address = Address::Steps { start: 1, stride: 1 }) => @r#"
    the plan breaks its rules in 1 place
       1. P23 step f1 (k1 input): operand 0 reads up to floats 3 of 2 that are bound
    "#;
}
