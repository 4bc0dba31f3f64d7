//! One failing test per rule: a good plan, changed in one place, and the message.

/// The message for a plan in which a stage of a kernel was changed.
macro_rules! refused_stage {
    ($rule:expr, $kernel:literal, $stage:literal, $pattern:pat => $change:expr) => {
        refused_kernel($rule, $kernel, |kernel| match &mut kernel.stages[$stage] {
            $pattern => $change,
            other => panic!("the stage is {other:?}"),
        })
    };
}

/// Tests that a plan is refused with just this message.
macro_rules! shows {
    ($($name:ident: $refused:expr => @$shown:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!($refused, @$shown);
        }
    )*};
}

mod kernels;
mod memory;
mod order;
mod pause;
mod steps;
mod updates;

use super::Rule;
use crate::NodeId;
use crate::graph::{Binary, Fold, Op, Over, Unary};
use crate::module::ParamKind;
use crate::plan::{
    Address, Certificate, Code, Field, FieldId, Instr, Kernel, KernelId, ListSource, Mode, Origin, OutputKey,
    ParamPort, Place, Plan, PlanOutput, ProdInit, ProductPart, Reg, RegId, RegKind, Slab, SlabId, SlabKind,
    Source, Stage, Step, StepOperand, Store, StoreId, StoreKind, View,
};
use crate::types::{DType, INDEX, Type, f32, list};
use autobatch_testing::hostile::metered;
use std::sync::Arc;
use std::time::Duration;

fn view(reg: u32, start: u32, width: u32) -> View {
    View { reg: RegId(reg), start, width }
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
        stages: vec![Stage::Lookup { param: ParamPort(0), index: view(0, 0, 1), dst: view(1, 0, 2) }],
        results: vec![view(1, 0, 2)],
        source: false,
        roles: None,
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
        roles: None,
    }
}

/// `k2`: a fold, a product, a line and a row stage.
fn node() -> Kernel {
    let scalar = Type::scalar(DType::F32);
    let part = |source, row| ProductPart { source, param: ParamPort(0), row, col: 0, transposed: false };
    let instr = |code, sources, store| Instr { code, dtype: DType::F32, sources, store };
    let fold = Stage::Seg {
        op: Op::WeightedSum { softmax: false },
        query: None,
        lists: vec![ListSource::Port(RegId(1)), ListSource::Port(RegId(2))],
        elements: vec![f32(2), f32(2)],
        dst: view(3, 0, 2),
    };
    let product = Stage::Prod {
        dst: view(4, 0, 3),
        rows: 1,
        init: ProdInit::Bias(ParamPort(1)),
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
        roles: None,
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
    let segments = |items| StepOperand::of_field(FieldId(0), Address::Lists { offsets: 0, items });
    let bound = |origin| StepOperand { origin, address: Address::Steps { start: 0, stride: 1 } };
    let output =
        |name: &str, field, row| PlanOutput { key: OutputKey::named(name), field: FieldId(field), row };
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
            bound(Origin::Words),
            bound(Origin::Floats),
            StepOperand::rows(FieldId(0), 0, 1),
            segments(3),
            segments(6),
        ],
        groups: Vec::new(),
        places: vec![place(0, 0), place(0, 2), place(1, 0), place(2, 0)],
        store_args: vec![StoreId(0), StoreId(1), StoreId(2)],
        lanes: (0..5).map(NodeId::new).collect(),
        tables: vec![0, 1, 3, 2, 0, 1, 1, 2, 2],
        reductions: Vec::new(),
        outputs: vec![output("h", 1, 1), output("total", 2, 0)],
        shards: Vec::new(),
        pause: None,
        certificate: Certificate {
            batches: 2,
            reverse_batches: 0,
            bound: 2,
            copied: 0,
            gathered: 6,
            direct: 2,
            slab_bytes: 56,
        },
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
    let (_, spent) = metered(|| refused(Rule::Rows, |plan| plan.slabs[0].rows = u32::MAX));
    let time = spent.time.unwrap_or_default();
    assert!(time < Duration::from_secs(5), "the rows of a slab must not be visited: {time:?}");
}
