//! Rules P7 to P14: registers, views and stages.

use super::{refused_kernel, view};
use crate::graph::{Op, Unary};
use crate::plan::verify::Rule;
use crate::plan::{Code, ParamPort, ProdInit, RegId, RegKind, Source, Stage};
use crate::types::{DType, f32};

shows! {
    ports_come_first: refused_kernel(Rule::Registers, 0, |kernel| kernel.regs[1].kind = RegKind::Port) => @r#"
    the plan breaks its rules in 1 place
       1. P7 kernel k0 (lookup): register 1 must be a port exactly if its number is below 1, found Port
    "#;
    whole_parameters_are_f32_of_their_shape:
        refused_kernel(Rule::Registers, 0, |kernel| kernel.regs[1].kind = RegKind::Param(ParamPort(0))) => @r#"
    the plan breaks its rules in 1 place
       1. P7 kernel k0 (lookup): register 1 must be the whole of f32[5,2] as f32, found f32[2]
    "#;
    views_lie_inside_registers:
        refused_stage!(Rule::Views, 2, 3, Stage::Row { dsts, .. } => dsts[0].start = 1) => @r#"
    the plan breaks its rules in 2 places
       1. P8 kernel k2 (@node), stage 3: the view 1..2 must be a part of register 6: f32
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#;
    views_are_of_no_list: refused_kernel(Rule::Views, 2, |kernel| kernel.results[0].reg = RegId(1)) => @r#"
    the plan breaks its rules in 1 place
       1. P8 kernel k2 (@node): register 1 is a list, which only folds may take
    "#;
    elements_are_written_before_they_are_read:
        refused_kernel(Rule::Once, 2, |kernel| kernel.stages.swap(0, 1)) => @r#"
    the plan breaks its rules in 1 place
       1. P9 kernel k2 (@node), stage 0: element 0 of register 3 is read before a stage wrote it
    "#;
    elements_are_written_once:
        refused_stage!(Rule::Once, 2, 3, Stage::Row { dsts, .. } => dsts[0] = view(5, 2, 1)) => @r#"
    the plan breaks its rules in 2 places
       1. P9 kernel k2 (@node), stage 3: element 2 of register 5 is written twice
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#;
    ports_are_not_written:
        refused_stage!(Rule::Once, 2, 3, Stage::Row { dsts, .. } => dsts[0] = view(0, 0, 1)) => @r#"
    the plan breaks its rules in 2 places
       1. P9 kernel k2 (@node), stage 3: register 0 is no temporary and must not be written
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#;
    parts_lie_inside_their_weights:
        refused_stage!(Rule::Products, 2, 1, Stage::Prod { parts, .. } => parts[1].row = 3) => @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: part 1 meets rows 3..5 and columns 0..3 of a weight of 4 rows and 3 columns
    "#;
    a_transposed_weight_has_its_sides_swapped:
        refused_stage!(Rule::Products, 2, 1, Stage::Prod { parts, .. } => parts[1].transposed = true) => @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: part 1 meets rows 2..4 and columns 0..3 of a weight of 3 rows and 4 columns
    "#;
    a_bias_begins_where_the_parts_begin:
        refused_stage!(Rule::Products, 2, 1, Stage::Prod { init, .. } => *init = ProdInit::Bias(ParamPort(0))) => @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: the bias must be a vector parameter with the elements 0..3, where every part begins
    "#;
    instructions_read_earlier_locals:
        refused_stage!(Rule::Maps, 2, 2,
            Stage::Map { code, .. } => code[1].sources[0] = Source::Local(1)) => @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 must read an earlier local, found 1
    "#;
    instructions_have_the_operands_of_their_code:
        refused_stage!(Rule::Maps, 2, 2, Stage::Map { code, .. } => code[1].code = Code::Select) => @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 takes bool as operand 0, found f32
    "#;
    instructions_read_elements_of_their_type:
        refused_stage!(Rule::Maps, 2, 2, Stage::Map { code, .. } => code[1].dtype = DType::U32) => @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 takes u32 as operand 0, found f32
    "#;
    row_stages_have_the_types_of_their_op:
        refused_stage!(Rule::RowOps, 2, 3, Stage::Row { sources, .. } => sources[0].1 = f32(2)) => @r#"
    the plan breaks its rules in 1 place
       1. P12 kernel k2 (@node), stage 3: the stage reads f32[2], found 3 elements of f32
    "#;
    row_stages_execute_no_op_of_another_template:
        refused_stage!(Rule::RowOps, 2, 3, Stage::Row { op, .. } => *op = Op::Unary(Unary::Exp)) => @r#"
    the plan breaks its rules in 2 places
       1. P12 kernel k2 (@node), stage 3: exp is not executed by a row stage
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#;
    folds_have_the_types_of_their_op:
        refused_stage!(Rule::Folds, 2, 0, Stage::Seg { elements, .. } => elements[0] = f32(3)) => @r#"
    the plan breaks its rules in 3 places
       1. P13 kernel k2 (@node), stage 0: register 1 must be a port of type list f32[3], found list f32[2]
       2. P13 kernel k2 (@node), stage 0: wsum: scores must be single numbers or like f32[2], found f32[3]
       3. P9 kernel k2 (@node), stage 1: element 0 of register 3 is read before a stage wrote it
    "#;
    only_attention_has_a_query:
        refused_stage!(Rule::Folds, 2, 0, Stage::Seg { query, .. } => *query = Some(view(0, 0, 2))) => @r#"
    the plan breaks its rules in 2 places
       1. P13 kernel k2 (@node), stage 0: a query belongs to attention, an index to a pick, and neither to anything else
       2. P9 kernel k2 (@node), stage 1: element 0 of register 3 is read before a stage wrote it
    "#;
    lookups_give_rows_of_a_matrix:
        refused_stage!(Rule::Lookups, 0, 0, Stage::Lookup { dst, .. } => dst.width = 1) => @r#"
    the plan breaks its rules in 2 places
       1. P14 kernel k0 (lookup), stage 0: parameter port 0 must be a matrix of rows of 1, found f32[5,2]
       2. P9 kernel k0 (lookup): element 0 of register 1 is read before a stage wrote it
    "#;
}
