//! The verifier rejects an invalid graph for each rule, and accepts valid graphs.

mod modules;
mod nodes;

use super::{Rule, VerifyErrors};
use crate::graph::{
    Arena, Callee, Cut, Graph, GraphData, Node, Op, Operand, Output, OutputKind, ParamArg, Signature,
    Signatures,
};
use crate::id::{CellId, NodeId, ParamId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Body, Init, Module, ModuleBuilder, ParamKind};
use crate::types::{DType, INDEX, Shape, Type, Types, f32, list};
use insta::assert_snapshot;
use std::sync::Arc;

/// A graph with all features: tables, affine cells, lists through cells, noise, nesting, inputs of both
/// pools, marks and both kinds of outputs.
fn sample() -> GraphData {
    let mut m = ModuleBuilder::new("sample");
    let embed = m.table("embed", [10, 4], Init::Uniform(0.1));
    let w = m.param("w", [8, 4], Init::Values(vec![0.5; 32].into()));
    let b = m.param("b", [4], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word)]);
    let node = m.cell("node", [f32([4]); 2], |g, [l, r]| [g.affine([l, r], w, Some(b)).tanh()]);
    let mix = m.cell("mix", [list(f32([1])), list(f32([4]))], |g, [s, v]| [g.softmax_sum(s, v)]);
    let drop = m.cell("drop", [f32([4])], |_, [x]| [x.dropout(0.5)]);
    let twice = m.cell("twice", [f32([4])], |g, [x]| {
        let [x] = g.call(drop, x);
        g.call(drop, x)
    });
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    let shared = g.input(&[1.0, 2.0, 3.0, 4.0]).shared();
    for key in 0..2 {
        g.instance(key);
        let [x] = g.call(leaf, 3 + key as u32);
        let [y] = g.call(node, [x, shared]);
        let scores = g.list([x.sum_rows().reshape([1]), y.max().reshape([1])]);
        let [z] = g.call(mix, [scores, g.list([x, y])]);
        let [z] = g.call(twice, z);
        let z = z.mask(&[true, false, true, true]).alone();
        g.loss(&format!("loss{key}"), z.cross_entropy(1));
        g.output(&format!("z{key}"), z);
    }
    g.finish().unwrap()
}

/// The findings in the sample after an edit, without source lines. One of them must be of `rule`.
#[track_caller]
fn broken(rule: Rule, edit: impl FnOnce(&mut GraphData)) -> String {
    let mut data = sample();
    edit(&mut data);
    let errors: VerifyErrors = data.verify().expect_err("the edit violates a rule");
    assert!(errors.findings().iter().any(|finding| finding.rule == rule), "{errors}");
    let text = errors.to_string();
    let mut lines = text.lines().map(|line| match (line.find(" (ir/src"), line.find("): ")) {
        (Some(start), Some(end)) if start < end => format!("{}{}", &line[..start], &line[end + 1..]),
        _ => line.to_owned(),
    });
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |text, line| text + "\n" + &line)
}

/// An arena with its parts changed.
fn changed(arena: &Arena, edit: impl FnOnce(&mut Vec<Node>, &mut Vec<Operand>, &mut Vec<TypeId>)) -> Arena {
    let (mut nodes, mut operands, mut types) =
        (arena.nodes().to_vec(), arena.operand_pool().to_vec(), arena.value_types().to_vec());
    edit(&mut nodes, &mut operands, &mut types);
    Arena::from_parts(nodes, operands, types).expect("the parts still partition")
}

/// The first node whose callee satisfies a predicate.
fn find(data: &GraphData, is: impl Fn(Callee) -> bool) -> NodeId {
    data.arena.ids().find(|&id| is(data.signature(id).callee)).expect("the sample has such a node")
}

fn find_op(data: &GraphData, word: &str) -> NodeId {
    find(data, |callee| matches!(callee, Callee::Op(op) if op.spelling() == word))
}

fn find_cell(data: &GraphData, name: &str) -> NodeId {
    find(data, |callee| data.module.callee_name(callee) == name)
}

/// Replaces an operand of a node of the graph.
fn set_operand(data: &mut GraphData, id: NodeId, place: usize, operand: Operand) {
    let at = data.arena.node(id).operands as usize + place;
    data.arena = changed(&data.arena, |_, operands, _| operands[at] = operand);
}

/// Changes a signature in the tables of module and graph.
fn set_sig(data: &mut GraphData, id: SigId, edit: impl FnOnce(&mut Signature)) {
    let mut items = data.sigs.items().to_vec();
    edit(&mut items[id.index()]);
    let types = data.types.clone();
    let table = |items: &[Signature]| {
        let mut table = Signatures::default();
        for item in items {
            table.intern(item.clone(), &types);
        }
        table
    };
    let own = data.module.sigs.items().len();
    data.sigs = table(&items);
    Arc::make_mut(&mut data.module).sigs = table(&items[..own]);
}

fn body<'d>(data: &'d mut GraphData, name: &str) -> &'d mut Body {
    let cells = &mut Arc::make_mut(&mut data.module).cells;
    &mut cells.iter_mut().find(|decl| decl.name == name).expect("the sample has it").body
}

fn module(data: &mut GraphData) -> &mut Module {
    Arc::make_mut(&mut data.module)
}

fn type_id(data: &GraphData, ty: Type) -> TypeId {
    data.types.find(&ty).expect("the sample has the type")
}

#[test]
fn emitted_graphs_pass() {
    sample().verify().unwrap();
    sample().module.verify().unwrap();
    GraphData::new(ModuleBuilder::new("empty").build().unwrap()).verify().unwrap();
}

#[test]
fn the_verifier_accepts_all_numbers_that_the_emitter_binds() {
    let mut m = ModuleBuilder::new("bound");
    let table = m.table("table", [5, 3], Init::ZEROS);
    let g = Graph::new(&m.build().unwrap());
    g.instance(0);
    let x = table.lookup(&g, 4);
    let rows = g.input_shaped([2, 3], &[0.0; 6]).dropout(0.5);
    let labels = g.indices(&[0, 2]);
    let index = g.index(1);
    let _ = rows.hinge(labels, 1.0);
    let _ = rows.pick(1).dot(rows.pick(index));
    let _ = (x.cross_entropy(2), x.cross_entropy(index), x.hinge(0, 1.0));
    let _ = (g.one_hot(1, 3), g.one_hot(x.argmax(), 3), table.row(index));
    let _ = g.attend(x, g.list([x, x]), g.list([x, rows.pick(0)]), 0.5);
    let _ = g.empty_list(f32([2])).max();
    g.common();
    let _ = x.mask(&[true, true, false]).dropout(0.1);
    g.check().unwrap();
    g.data().verify().unwrap();
}

#[test]
fn rules_are_numbered_in_order() {
    for (place, rule) in Rule::ALL.iter().enumerate() {
        assert_eq!(rule.to_string(), format!("G{}", place + 1));
    }
    let doc = include_str!("../mod.rs");
    for rule in Rule::ALL {
        assert!(doc.contains(&format!("* **{rule}** ")), "{rule} is not in the list: {}", rule.statement());
    }
}

#[test]
fn a_port_takes_no_storage_format() {
    let mut m = ModuleBuilder::new("half");
    m.cell("half", [Type::new(DType::F16, Shape::SCALAR)], |_, [x]| [x]);
    let error = m.build().expect_err("a port cannot have a storage format");
    assert_eq!(error.message, "f16 is a storage format of parameters, no port takes f16");
}

#[test]
fn findings_are_bounded() {
    let mut data = sample();
    data.shared = vec![ValueId::new(9999); 1000];
    let errors = data.verify().expect_err("all marks are invalid");
    assert_eq!(errors.findings().len(), crate::findings::MAX_FINDINGS);
    assert!(errors.to_string().starts_with("the rules of graphs are broken in 100 or more places\n"));
}

#[test]
fn hostile_names_make_short_messages() {
    let mut data = sample();
    module(&mut data).params[0].name = "\u{7}\u{10ffff}".repeat(100_000);
    let errors = data.verify().expect_err("the name is malformed");
    assert!(errors.to_string().len() < 4000, "{}", errors.to_string().len());
}
