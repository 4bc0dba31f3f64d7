//! One failing test per rule: a good plan, changed in one place, and the message.

use super::Rule;
use crate::AppId;
use crate::graph::{Binary, Fold, Op, Over, Unary};
use crate::module::ParamKind;
use crate::plan::{
    Certificate, Code, Field, FieldId, Instr, Kernel, KernelId, ListSource, Mode, Operand, Part, Place, Plan,
    PlanOutput, ProdInit, Reg, RegKind, Slab, SlabId, SlabKind, Source, Stage, Step, Store, StoreId,
    StoreKind, View,
};
use crate::types::{DType, INDEX, Shape, Type, f32, list};
use std::sync::Arc;

fn view(reg: u32, start: u32, width: u32) -> View {
    View { reg, start, width }
}

fn reg(kind: RegKind, ty: Type) -> Reg {
    Reg { kind, ty }
}

/// `k0`: a row of a table.
fn lookup() -> Kernel {
    Kernel {
        name: "lookup".to_owned(),
        ports: 1,
        params: vec![f32([5, 2])],
        regs: vec![reg(RegKind::Port, INDEX), reg(RegKind::Temp, f32(2))],
        stages: vec![Stage::Lookup { param: 0, index: view(0, 0, 1), dst: view(1, 0, 2) }],
        results: vec![view(1, 0, 2)],
        source: false,
    }
}

/// `k1`: two bound floats.
fn input() -> Kernel {
    Kernel {
        name: "input".to_owned(),
        ports: 1,
        params: vec![],
        regs: vec![reg(RegKind::Port, f32(2))],
        stages: vec![],
        results: vec![view(0, 0, 2)],
        source: true,
    }
}

/// `k2`: a fold, a product, a line and a row stage.
fn node() -> Kernel {
    let scalar = Type::scalar(DType::F32);
    let part = |source, row| Part { source, param: 0, row, col: 0, transposed: false };
    let instr = |code, sources, store| Instr { code, dtype: DType::F32, sources, store };
    let fold = Stage::Seg {
        op: Op::WeightedSum { softmax: false },
        query: None,
        lists: vec![ListSource::Port(1), ListSource::Port(2)],
        elements: vec![f32(2), f32(2)],
        dst: view(3, 0, 2),
    };
    let product = Stage::Prod {
        dst: view(4, 0, 3),
        rows: 1,
        init: ProdInit::Bias(1),
        parts: vec![part(view(0, 0, 2), 0), part(view(3, 0, 2), 2)],
    };
    let line = Stage::Map {
        width: 3,
        code: vec![
            instr(Code::Unary(Unary::Tanh), vec![Source::View(view(4, 0, 3))], None),
            instr(
                Code::Binary(Binary::Mul),
                vec![Source::Local(0), Source::Scalar(view(0, 1, 1))],
                Some(view(5, 0, 3)),
            ),
        ],
    };
    let sum = Stage::Row {
        op: Op::Reduce { fold: Fold::Sum, over: Over::All },
        sources: vec![(view(5, 0, 3), f32(3))],
        dsts: vec![view(6, 0, 1)],
    };
    Kernel {
        name: "@node".to_owned(),
        ports: 3,
        params: vec![f32([4, 3]), f32(3)],
        regs: vec![
            reg(RegKind::Port, f32(2)),
            reg(RegKind::Port, list(f32(2))),
            reg(RegKind::Port, list(f32(2))),
            reg(RegKind::Temp, f32(2)),
            reg(RegKind::Temp, f32(3)),
            reg(RegKind::Temp, f32(3)),
            reg(RegKind::Temp, scalar),
        ],
        stages: vec![fold, product, line, sum],
        results: vec![view(5, 0, 3), view(6, 0, 1)],
        source: false,
    }
}

/// Two lookups and an input; then two nodes over them.
fn good() -> Plan {
    let store = |name: &str, ty, kind| Store { name: name.to_owned(), ty, kind: StoreKind::Param(kind) };
    let slab = |rows, fields| Slab { kind: SlabKind::Value, rows, fields };
    let field = |slab, name: &str, ty| Field { slab: SlabId(slab), name: name.to_owned(), ty };
    let step = |kernel, rows, operands, places, stores, lanes| Step {
        kernel: KernelId(kernel),
        rows,
        operands,
        places,
        stores,
        lanes,
    };
    let place = |field, start| Place::Rows { field: FieldId(field), start };
    let segments = |items| Operand::Segments { field: FieldId(0), offsets: 0, items };
    let output = |name: &str, field, row| PlanOutput { name: name.to_owned(), field: FieldId(field), row };
    Plan {
        module: "test".to_owned(),
        structure: 7,
        mode: Mode::Infer,
        stores: vec![
            store("embed", f32([5, 2]), ParamKind::Table),
            store("w", f32([4, 3]), ParamKind::Param),
            store("b", f32(3), ParamKind::Param),
        ],
        words: 2,
        floats: 2,
        slabs: vec![slab(3, 0..1), slab(2, 1..3)],
        fields: vec![field(0, "a", f32(2)), field(1, "a", f32(3)), field(1, "b", Type::scalar(DType::F32))],
        kernels: vec![Arc::new(lookup()), Arc::new(input()), Arc::new(node())],
        steps: vec![
            step(0, 2, 0..1, 0..1, 0..1, 0..2),
            step(1, 1, 1..2, 1..2, 1..1, 2..3),
            step(2, 2, 2..5, 2..4, 1..3, 3..5),
        ],
        waves: vec![2, 3],
        operands: vec![
            Operand::Words { start: 0, stride: 1 },
            Operand::Floats { start: 0, stride: 1 },
            Operand::Rows { field: FieldId(0), start: 0, stride: 1 },
            segments(3),
            segments(6),
        ],
        places: vec![place(0, 0), place(0, 2), place(1, 0), place(2, 0)],
        store_args: vec![StoreId(0), StoreId(1), StoreId(2)],
        lanes: (0..5).map(AppId::new).collect(),
        tables: vec![0, 1, 3, 2, 0, 1, 1, 2, 2],
        outputs: vec![output("h", 1, 1), output("total", 2, 0)],
        certificate: Certificate { batches: 2, bound: 2, copied: 0, tabled: 6, direct: 2, slab_bytes: 56 },
    }
}

/// The message for a changed plan; the first finding is of the rule.
fn refused(rule: Rule, change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = good();
    change(&mut plan);
    let errors = plan.verify().expect_err("the plan was broken");
    assert_eq!(errors.findings()[0].rule, rule, "{errors}");
    errors.to_string()
}

/// The message for a plan whose kernel `number` was changed.
fn refused_kernel(rule: Rule, number: usize, change: impl FnOnce(&mut Kernel)) -> String {
    refused(rule, |plan| change(Arc::make_mut(&mut plan.kernels[number])))
}

/// The stage of a kernel.
macro_rules! stage {
    ($kernel:expr, $number:literal, $pattern:pat => $change:expr) => {
        match &mut $kernel.stages[$number] {
            $pattern => $change,
            other => panic!("the stage is {other:?}"),
        }
    };
}

#[test]
fn the_good_plan_is_verified_and_gives_itself_back() {
    let verified = good().verify().expect("the plan is sound");
    assert_eq!(verified.steps.len(), 3);
    assert_eq!(verified.into_inner(), good());
}

#[test]
fn a_plan_of_nothing_is_verified() {
    let mut plan = good();
    for list in [&mut plan.waves, &mut plan.tables] {
        list.clear();
    }
    (plan.slabs, plan.fields, plan.steps, plan.operands) = (vec![], vec![], vec![], vec![]);
    (plan.places, plan.store_args, plan.lanes, plan.outputs) = (vec![], vec![], vec![], vec![]);
    plan.certificate = Certificate::default();
    plan.verify().expect("nothing is sound");
}

#[test]
fn every_rule_has_a_number_and_a_statement() {
    for (number, rule) in Rule::ALL.iter().enumerate() {
        assert_eq!(rule.to_string(), format!("P{}", number + 1));
        assert!(!rule.statement().is_empty());
    }
}

#[test]
fn declared_sizes_cost_nothing() {
    let started = std::time::Instant::now();
    refused(Rule::Rows, |plan| plan.slabs[0].rows = u32::MAX);
    assert!(started.elapsed().as_secs() < 5, "the rows of a slab must not be visited");
}

#[test]
fn ranges_of_steps_tile_their_pools() {
    let message = refused(Rule::Ranges, |plan| plan.steps[2].operands.start = 3);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P1 step f2 (k2 @node): its operands must begin at 2, where those of the step before end, and lie inside 0..5, found 3..5
    "#);
}

#[test]
fn every_pool_entry_belongs_to_a_step() {
    let message = refused(Rule::Ranges, |plan| plan.lanes.push(AppId::new(9)));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P1 the plan: every one of the 6 lanes must belong to a step, 5 do
    "#);
}

#[test]
fn fields_of_slabs_tile_the_fields() {
    let message = refused(Rule::Ranges, |plan| plan.slabs[1].fields = 1..2);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P1 the plan: every one of the 3 fields must belong to a slab, 2 do
    "#);
}

#[test]
fn what_is_named_exists() {
    let message = refused(Rule::Ids, |plan| {
        plan.operands[2] = Operand::Rows { field: FieldId(3), start: 0, stride: 1 }
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P2 step f2 (k2 @node): there is no field3, only 3 of them
    "#);
}

#[test]
fn kernels_that_are_named_exist() {
    let message = refused(Rule::Ids, |plan| plan.steps[0].kernel = KernelId(3));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P2 step f0: there is no kernel k3, only 3 of them
    "#);
}

#[test]
fn waves_ascend_and_cover_the_steps() {
    let message = refused(Rule::Waves, |plan| plan.waves = vec![2, 2]);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P3 wave 1: it must end after step 2, found 2
       2. P3 the plan: the waves must end with the last of 3 steps, found 2
    "#);
}

#[test]
fn fields_hold_words() {
    let message =
        refused(Rule::Storage, |plan| plan.fields[0].ty = Type::new(DType::F16, Shape::new(&[2]).unwrap()));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P4 field 0: a field holds f32, i32, u32 or bool values, found f16[2]
    "#);
}

#[test]
fn states_belong_to_parameters() {
    let message = refused(Rule::Storage, |plan| {
        plan.stores.push(Store { name: "m".to_owned(), ty: f32(4), kind: StoreKind::State(StoreId(2)) })
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P4 store 3: it must have the shape of a parameter, found f32[4] for store2: f32[3]
    "#);
}

#[test]
fn slab_bytes_fit_in_64_bits() {
    let message = refused(Rule::Sizes, |plan| {
        plan.fields.extend((0..4).map(|_| Field { slab: SlabId(2), name: String::new(), ty: f32(1 << 29) }));
        plan.slabs.push(Slab { kind: SlabKind::Value, rows: u32::MAX, fields: 3..7 });
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P5 the plan: its slabs take more than 2^64 bytes
    "#);
}

#[test]
fn no_slab_has_rows_that_no_step_writes() {
    let message = refused(Rule::Rows, |plan| plan.slabs[0].rows = 4);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P6 slab s0: it declares 4 rows, steps write 3 of them
    "#);
}

#[test]
fn ports_come_first() {
    let message = refused_kernel(Rule::Registers, 0, |kernel| kernel.regs[1].kind = RegKind::Port);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P7 kernel k0 (lookup): register 1 must be a port exactly if its number is below 1, found Port
    "#);
}

#[test]
fn whole_parameters_are_f32_of_their_shape() {
    let message = refused_kernel(Rule::Registers, 0, |kernel| kernel.regs[1].kind = RegKind::Param(0));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P7 kernel k0 (lookup): register 1 must be the whole of f32[5,2] as f32, found f32[2]
    "#);
}

#[test]
fn views_lie_inside_registers() {
    let message = refused_kernel(
        Rule::Views,
        2,
        |kernel| stage!(kernel, 3, Stage::Row { dsts, .. } => dsts[0].start = 1),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P8 kernel k2 (@node), stage 3: the view 1..2 must be a part of register 6: f32
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#);
}

#[test]
fn views_are_of_no_list() {
    let message = refused_kernel(Rule::Views, 2, |kernel| kernel.results[0].reg = 1);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P8 kernel k2 (@node): register 1 is a list, which only folds may take
    "#);
}

#[test]
fn elements_are_written_before_they_are_read() {
    let message = refused_kernel(Rule::Once, 2, |kernel| kernel.stages.swap(0, 1));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P9 kernel k2 (@node), stage 0: element 0 of register 3 is read before a stage wrote it
    "#);
}

#[test]
fn elements_are_written_once() {
    let message = refused_kernel(
        Rule::Once,
        2,
        |kernel| stage!(kernel, 3, Stage::Row { dsts, .. } => dsts[0] = view(5, 2, 1)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P9 kernel k2 (@node), stage 3: element 2 of register 5 is written twice
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#);
}

#[test]
fn ports_are_not_written() {
    let message = refused_kernel(
        Rule::Once,
        2,
        |kernel| stage!(kernel, 3, Stage::Row { dsts, .. } => dsts[0] = view(0, 0, 1)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P9 kernel k2 (@node), stage 3: register 0 is no temporary and must not be written
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#);
}

#[test]
fn parts_lie_inside_their_weights() {
    let message = refused_kernel(
        Rule::Products,
        2,
        |kernel| stage!(kernel, 1, Stage::Prod { parts, .. } => parts[1].row = 3),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: part 1 meets rows 3..5 and columns 0..3 of a weight of 4 rows and 3 columns
    "#);
}

#[test]
fn a_transposed_weight_has_its_sides_swapped() {
    let message = refused_kernel(
        Rule::Products,
        2,
        |kernel| stage!(kernel, 1, Stage::Prod { parts, .. } => parts[1].transposed = true),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: part 1 meets rows 2..4 and columns 0..3 of a weight of 3 rows and 4 columns
    "#);
}

#[test]
fn a_bias_begins_where_the_parts_begin() {
    let message = refused_kernel(
        Rule::Products,
        2,
        |kernel| stage!(kernel, 1, Stage::Prod { init, .. } => *init = ProdInit::Bias(0)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P10 kernel k2 (@node), stage 1: the bias must be a vector parameter with the elements 0..3, where every part begins
    "#);
}

#[test]
fn instructions_read_earlier_locals() {
    let message = refused_kernel(
        Rule::Maps,
        2,
        |kernel| stage!(kernel, 2, Stage::Map { code, .. } => code[1].sources[0] = Source::Local(1)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 must read an earlier local, found 1
    "#);
}

#[test]
fn instructions_have_the_operands_of_their_code() {
    let message = refused_kernel(
        Rule::Maps,
        2,
        |kernel| stage!(kernel, 2, Stage::Map { code, .. } => code[1].code = Code::Select),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 takes bool as operand 0, found f32
    "#);
}

#[test]
fn instructions_read_elements_of_their_type() {
    let message = refused_kernel(
        Rule::Maps,
        2,
        |kernel| stage!(kernel, 2, Stage::Map { code, .. } => code[1].dtype = DType::U32),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P11 kernel k2 (@node), stage 2: instruction 1 takes u32 as operand 0, found f32
    "#);
}

#[test]
fn row_stages_have_the_types_of_their_op() {
    let message = refused_kernel(
        Rule::RowOps,
        2,
        |kernel| stage!(kernel, 3, Stage::Row { sources, .. } => sources[0].1 = f32([3, 1]).with_shape(Shape::new(&[2]).unwrap())),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P12 kernel k2 (@node), stage 3: the stage reads f32[2], found 3 elements of f32
    "#);
}

#[test]
fn row_stages_play_no_op_of_another_template() {
    let message = refused_kernel(
        Rule::RowOps,
        2,
        |kernel| stage!(kernel, 3, Stage::Row { op, .. } => *op = Op::Unary(Unary::Exp)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P12 kernel k2 (@node), stage 3: exp is not played by a row stage
       2. P9 kernel k2 (@node): element 0 of register 6 is read before a stage wrote it
    "#);
}

#[test]
fn folds_have_the_types_of_their_op() {
    let message = refused_kernel(
        Rule::Folds,
        2,
        |kernel| stage!(kernel, 0, Stage::Seg { elements, .. } => elements[0] = f32(3)),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 3 places
       1. P13 kernel k2 (@node), stage 0: register 1 must be a port of type list f32[3], found list f32[2]
       2. P13 kernel k2 (@node), stage 0: wsum: scores must be single numbers or like f32[2], found f32[3]
       3. P9 kernel k2 (@node), stage 1: element 0 of register 3 is read before a stage wrote it
    "#);
}

#[test]
fn only_attention_has_a_query() {
    let message = refused_kernel(
        Rule::Folds,
        2,
        |kernel| stage!(kernel, 0, Stage::Seg { query, .. } => *query = Some(view(0, 0, 2))),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P13 kernel k2 (@node), stage 0: a query belongs to attention, and to nothing else
       2. P9 kernel k2 (@node), stage 1: element 0 of register 3 is read before a stage wrote it
    "#);
}

#[test]
fn lookups_give_rows_of_a_matrix() {
    let message = refused_kernel(
        Rule::Lookups,
        0,
        |kernel| stage!(kernel, 0, Stage::Lookup { dst, .. } => dst.width = 1),
    );
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P14 kernel k0 (lookup), stage 0: parameter port 0 must be a matrix of rows of 1, found f32[5,2]
       2. P9 kernel k0 (lookup): element 0 of register 1 is read before a stage wrote it
    "#);
}

#[test]
fn sources_have_no_stages() {
    let message = refused_kernel(Rule::Sources, 0, |kernel| kernel.source = true);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P15 kernel k0 (lookup): a source has no stages, found 1
    "#);
}

#[test]
fn a_step_has_an_operand_for_each_port() {
    let message = refused(Rule::Arity, |plan| {
        plan.steps[2].operands.end = 4;
        plan.operands.pop();
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P16 step f2 (k2 @node): it must have 3 operands, found 2
    "#);
}

#[test]
fn a_step_has_a_lane_for_each_row() {
    let message = refused(Rule::Arity, |plan| plan.steps[1].rows = 2);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P16 step f1 (k1 input): it must have 2 lanes, found 1
    "#);
}

#[test]
fn lists_are_segments() {
    let message = refused(Rule::OperandTypes, |plan| {
        plan.operands[3] = Operand::Rows { field: FieldId(0), start: 0, stride: 1 }
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P17 step f2 (k2 @node): operand 1 must be list f32[2], found rows of field0: f32[2]
    "#);
}

#[test]
fn words_are_not_bound_as_floats() {
    let message =
        refused(Rule::OperandTypes, |plan| plan.operands[0] = Operand::Floats { start: 0, stride: 0 });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P17 step f0 (k0 lookup): operand 0 must be u32, found bound floats
    "#);
}

#[test]
fn places_have_the_types_of_results() {
    let message = refused(Rule::PlaceTypes, |plan| plan.places.swap(2, 3));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P18 step f2 (k2 @node): result 0 has 3 elements of f32, its place field2 takes f32
       2. P18 step f2 (k2 @node): result 1 has 1 elements of f32, its place field1 takes f32[3]
    "#);
}

#[test]
fn stores_have_the_types_of_parameter_ports() {
    let message = refused(Rule::StoreTypes, |plan| plan.store_args.swap(1, 2));
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P19 step f2 (k2 @node): parameter port 0 takes f32[4,3], store2 is f32[3]
       2. P19 step f2 (k2 @node): parameter port 1 takes f32[3], store1 is f32[4,3]
    "#);
}

#[test]
fn rows_lie_inside_slabs() {
    let message = refused(Rule::Bounds, |plan| {
        plan.operands[2] = Operand::Rows { field: FieldId(0), start: 1, stride: 2 }
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P20 step f2 (k2 @node): operand 0 names row 3 of s0, which has 3 rows
    "#);
}

#[test]
fn table_ranges_lie_inside_the_tables() {
    let message =
        refused(Rule::Bounds, |plan| plan.operands[2] = Operand::Table { field: FieldId(0), at: u32::MAX });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P20 step f2 (k2 @node): operand 0 reads the table entries 4294967295..4294967297 of 9
    "#);
}

#[test]
fn outputs_lie_inside_slabs() {
    let message = refused(Rule::Bounds, |plan| plan.outputs[0].row = 2);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P20 output 0: row 2 must be below 2, the rows of field1
    "#);
}

#[test]
fn segment_offsets_ascend_from_0() {
    let message = refused(Rule::Segments, |plan| plan.tables[1] = 4);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 2 places
       1. P21 step f2 (k2 @node): the offsets of operand 1 must ascend from 0
       2. P21 step f2 (k2 @node): the offsets of operand 2 must ascend from 0
    "#);
}

#[test]
fn lists_folded_together_are_equally_long() {
    let message = refused(Rule::Lengths, |plan| {
        plan.tables.extend([0, 2, 3]);
        plan.operands[4] = Operand::Segments { field: FieldId(0), offsets: 9, items: 6 };
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P22 step f2 (k2 @node): lists that are folded together must be equally long in every lane
    "#);
}

#[test]
fn bound_numbers_lie_inside_their_pools() {
    let message = refused(Rule::Bindings, |plan| plan.operands[1] = Operand::Floats { start: 1, stride: 1 });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P23 step f1 (k1 input): operand 0 reads up to floats 3 of 2 that are bound
    "#);
}

#[test]
fn rows_are_written_before_they_are_read() {
    let message = refused(Rule::Definition, |plan| {
        plan.waves = vec![1, 2, 3];
        plan.places[0] = Place::Rows { field: FieldId(0), start: 1 };
        plan.places[1] = Place::Rows { field: FieldId(0), start: 1 };
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 3 places
       1. P24 step f2 (k2 @node): operand 0 reads row 0 of field0, which no earlier wave wrote
       2. P24 step f2 (k2 @node): operand 1 reads row 0 of field0, which no earlier wave wrote
       3. P6 slab s0: it declares 3 rows, steps write 2 of them
    "#);
}

#[test]
fn results_of_a_wave_are_distinct() {
    let message =
        refused(Rule::Distinct, |plan| plan.places[1] = Place::Rows { field: FieldId(0), start: 1 });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 4 places
       1. P25 step f1 (k1 input): result 0 writes row 1 of field0, which its wave writes already
       2. P24 step f2 (k2 @node): operand 1 reads row 2 of field0, which no earlier wave wrote
       3. P24 step f2 (k2 @node): operand 2 reads row 2 of field0, which no earlier wave wrote
       4. P6 slab s0: it declares 3 rows, steps write 2 of them
    "#);
}

#[test]
fn no_wave_reads_what_it_writes() {
    let message = refused(Rule::Hazards, |plan| {
        plan.waves = vec![1, 3];
        plan.places[1] = Place::Rows { field: FieldId(0), start: 1 };
        plan.slabs[0].rows = 2;
        plan.tables = vec![0, 1, 3, 0, 0, 1, 1, 1, 1];
    });
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 3 places
       1. P26 step f2 (k2 @node): operand 0 reads row 1 of field0, which its own wave writes
       2. P26 step f2 (k2 @node): operand 1 reads row 1 of field0, which its own wave writes
       3. P26 step f2 (k2 @node): operand 2 reads row 1 of field0, which its own wave writes
    "#);
}

#[test]
fn the_certificate_is_counted_anew() {
    let message = refused(Rule::Certificate, |plan| plan.certificate.tabled = 5);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P27 the certificate: it must be Certificate { batches: 2, bound: 2, copied: 0, tabled: 6, direct: 2, slab_bytes: 56 }, found Certificate { batches: 2, bound: 2, copied: 0, tabled: 5, direct: 2, slab_bytes: 56 }
    "#);
}

#[test]
fn no_bound_is_above_the_batches() {
    let message = refused(Rule::Certificate, |plan| plan.certificate.bound = 3);
    insta::assert_snapshot!(message, @r#"
    the plan breaks its rules in 1 place
       1. P27 the certificate: no plan can have fewer batches than the bound, found 2 and 3
    "#);
}
