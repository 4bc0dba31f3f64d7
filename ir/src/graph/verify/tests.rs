//! One broken graph for each rule, and whole ones that pass.

use super::{Rule, VerifyErrors};
use crate::graph::{
    App, Arena, Callee, Cut, Graph, GraphData, Op, Operand, Output, OutputKind, ParamArg, Signature,
    Signatures,
};
use crate::id::{AppId, CellId, ParamId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Body, Init, Module, ModuleBuilder, ParamKind};
use crate::types::{DType, INDEX, Shape, Type, Types, f32, list};
use insta::assert_snapshot;
use std::sync::Arc;

/// A graph that uses everything: tables, affine cells, lists through cells, noise, nesting, inputs
/// of all pools, marks and both kinds of outputs.
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

/// What the verifier says of the sample after an edit, which must name `rule`; source lines left
/// out.
#[track_caller]
fn broken(rule: Rule, edit: impl FnOnce(&mut GraphData)) -> String {
    let mut data = sample();
    edit(&mut data);
    let errors: VerifyErrors = data.verify().expect_err("the edit breaks a rule");
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
fn changed(arena: &Arena, edit: impl FnOnce(&mut Vec<App>, &mut Vec<Operand>, &mut Vec<TypeId>)) -> Arena {
    let (mut apps, mut operands, mut types) =
        (arena.apps().to_vec(), arena.operand_pool().to_vec(), arena.value_types().to_vec());
    edit(&mut apps, &mut operands, &mut types);
    Arena::from_parts(apps, operands, types).expect("the parts still tile")
}

/// The first application with such a callee.
fn find(data: &GraphData, is: impl Fn(Callee) -> bool) -> AppId {
    data.arena.ids().find(|&id| is(data.signature(id).callee)).expect("the sample has one")
}

fn find_op(data: &GraphData, word: &str) -> AppId {
    find(data, |callee| matches!(callee, Callee::Op(op) if op.spelling() == word))
}

fn find_cell(data: &GraphData, name: &str) -> AppId {
    find(data, |callee| data.module.callee_name(callee) == name)
}

/// Replaces an operand of an application of the graph.
fn set_operand(data: &mut GraphData, id: AppId, place: usize, operand: Operand) {
    let at = data.arena.app(id).operands as usize + place;
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
fn numbers_may_be_bound_wherever_the_emitter_binds_them() {
    let mut m = ModuleBuilder::new("bound");
    let table = m.table("table", [5, 3], Init::ZEROS);
    let g = Graph::new(&m.build().unwrap());
    g.instance(0);
    let x = table.look(&g, 4);
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
    let doc = include_str!("mod.rs");
    for rule in Rule::ALL {
        assert!(doc.contains(&format!("* **{rule}** ")), "{rule} is not in the list: {}", rule.statement());
    }
}

#[test]
fn g1_tables_of_a_graph_begin_with_its_modules() {
    assert_snapshot!(broken(Rule::Tables, |data| data.types = Types::default()), @r"
    the rules of graphs are broken in 1 place
       1. G1 the graph's tables: the types must begin with those of module sample
    ");
    assert_snapshot!(broken(Rule::Tables, |data| {
        let mut types = data.types.items().to_vec();
        types.swap(0, 1);
        module(data).types = types.iter().copied().collect();
        data.types = types.into_iter().collect();
    }), @r"
    the rules of graphs are broken in 10 places
       1. G1 module sample: the first type must be u32
       2. G5 signature 0 (port): expected results (u32), found (f32[10,4])
       3. G5 signature 1 (lookup): the index must be u32, found f32[10,4]
       4. G7 signature 2 (cell @leaf): parameter argument 0 was declared f32[10,4], found u32
       5. G5 signature 11 (dropout): a noise key is two u32 numbers
       6. G5 signature 13 (fork_noise): a noise key is two u32 numbers
       7. G5 signature 14 (fork_noise): a noise key is two u32 numbers
       8. G5 signature 26 (pick_neg_log_softmax): labels must be u32, one a row of f32[4], found f32[10,4]
       9. G18 cell @drop: a body that draws noise has two last ports of type u32 for the key
      10. G18 cell @twice: a body that draws noise has two last ports of type u32 for the key
    ");
}

#[test]
fn g2_names_are_well_formed_and_unique() {
    assert_snapshot!(broken(Rule::Names, |data| {
        let module = module(data);
        module.params[0].name = "white space".to_owned();
        module.params[2].name = "w".to_owned();
        module.cells[0].name = "x".repeat(256);
        data.outputs[1].name = "loss0".to_owned();
    }), @r#"
    the rules of graphs are broken in 4 places
       1. G2 module sample: a name begins with a letter and holds at most 255 letters, digits, '_', '.' and '-', found parameter "white space"
       2. G2 module sample: the name "w" has two parameters
       3. G2 module sample: a name begins with a letter and holds at most 255 letters, digits, '_', '.' and '-', found cell "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.."
       4. G2 module sample: the name "loss0" has two outputs
    "#);
}

#[test]
fn g3_parameters_are_stored_floats() {
    assert_snapshot!(broken(Rule::Params, |data| {
        let module = module(data);
        module.params[0].ty = INDEX;
        module.params[1].init = Init::Values(vec![0.0; 3].into());
        module.params[2].kind = ParamKind::Table;
    }), @r"
    the rules of graphs are broken in 5 places
       1. G3 parameter @embed: a parameter is stored as f32, f16 or bf16, found u32
       2. G3 parameter @embed: a table has the shape [rows, width], found []
       3. G3 parameter @w: the shape [8,4] wants 32 values, found 3
       4. G3 parameter @b: a table has the shape [rows, width], found [4]
       5. G7 signature 2 (cell @leaf): parameter argument 0 was declared u32, found f32[10,4]
    ");
}

#[test]
fn g4_ids_lie_inside_their_tables() {
    assert_snapshot!(broken(Rule::Ids, |data| {
        data.arena = changed(&data.arena, |apps, _, _| {
            apps[0].sig = SigId::new(999);
            apps[1].site = SiteId::new(999);
        });
        module(data).params[0].site = SiteId::new(999);
        module(data).exports[0].sig = SigId::new(999);
    }), @r"
    the rules of graphs are broken in 4 places
       1. G4 parameter @embed: !999 is not among 28 sites
       2. G4 export @leaf: sig999 is not among 16 signatures
       3. G4 a0: sig999 is not among 27 signatures
       4. G4 a1 (unknown line): !999 is not among 28 sites
    ");
    assert_snapshot!(broken(Rule::Ids, |data| {
        let [leaf, node] = ["@leaf", "@node"].map(|name| data.arena.app(find_cell(data, name)).sig);
        set_sig(data, leaf, |sig| sig.callee = Callee::Cell(CellId::new(99)));
        set_sig(data, node, |sig| sig.params[0] = ParamArg::Module(ParamId::new(99)));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G4 signature 2 (cell99): cell99 is not among 5 cells
       2. G4 signature 6 (cell @node): param99 is not among 3 parameters
    ");
    assert_snapshot!(broken(Rule::Ids, |data| {
        body(data, "leaf").param_types[0] = TypeId::new(99);
    }), @r"
    the rules of graphs are broken in 2 places
       1. G4 cell @leaf: type99 is not among 9 types
       2. G6 signature 2 (cell @leaf): the body of the cell is broken
    ");
    assert_snapshot!(broken(Rule::Ids, |data| data.types.truncate(data.module.types.items().len())), @r#"
    the rules of graphs are broken in 11 places
       1. G4 signature 17 (reduce): type6 is not among 6 types
       2. G4 signature 18 (reshape): type6 is not among 6 types
       3. G4 signature 19 (reduce): type6 is not among 6 types
       4. G4 signature 20 (list): type7 is not among 6 types
       5. G4 signature 22 (input): type8 is not among 6 types
       6. G4 signature 23 (fill): type6 is not among 6 types
       7. G4 signature 24 (broadcast): type6 is not among 6 types
       8. G4 signature 25 (select): type8 is not among 6 types
       9. G4 signature 26 (pick_neg_log_softmax): type6 is not among 6 types
      10. G23 output "loss0": %15 has no type
      11. G23 output "loss1": %30 has no type
    "#);
}

#[test]
fn g5_results_of_ops_are_inferred() {
    assert_snapshot!(broken(Rule::Inference, |data| {
        let scalar = type_id(data, f32([]));
        let sig = data.arena.app(find_op(data, "list")).sig;
        set_sig(data, sig, |sig| sig.results[0] = scalar);
        let sig = data.arena.app(find_op(data, "select")).sig;
        set_sig(data, sig, |sig| sig.operands[0] = scalar);
        let sig = data.arena.app(find_op(data, "reduce")).sig;
        set_sig(data, sig, |sig| sig.callee = Callee::Op(Op::Split { axis: 0, parts: 1 << 16 }));
    }), @r"
    the rules of graphs are broken in 3 places
       1. G5 signature 17 (split): 65536 parts are 65536 results, found 1
       2. G5 signature 20 (list): expected results (list f32[1]), found (f32)
       3. G5 signature 25 (select): the condition must be bool, found f32
    ");
}

#[test]
fn g6_signatures_of_cells_have_the_types_of_the_body() {
    assert_snapshot!(broken(Rule::CellSignature, |data| {
        let sig = data.arena.app(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.results = Box::default());
        module(data).exports[0].sig = SigId::new(0);
    }), @r"
    the rules of graphs are broken in 2 places
       1. G6 signature 6 (cell @node): the results must have the types of the body's
       2. G6 export @leaf: an export is a signature of a cell
    ");
}

#[test]
fn g7_parameter_arguments_have_their_declared_types() {
    assert_snapshot!(broken(Rule::ParamTypes, |data| {
        let sig = data.arena.app(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.params[1] = ParamArg::Module(ParamId::new(0)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G7 signature 6 (cell @node): parameter argument 1 was declared f32[10,4], found f32[4]
    ");
    assert_snapshot!(broken(Rule::ParamTypes, |data| module(data).params[0].kind = ParamKind::Param), @r"
    the rules of graphs are broken in 1 place
       1. G7 signature 2 (cell @leaf): rows are looked up in tables, @embed is a dense parameter
    ");
}

#[test]
fn g8_bodies_take_parameters_through_ports() {
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let affine = body(data, "node").arena.app(AppId::new(2)).sig;
        set_sig(data, affine, |sig| sig.params[0] = ParamArg::Module(ParamId::new(1)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G8 a2 of cell @node: parameter argument 0 must be a port of the body, found one of the module
    ");
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let affine = body(data, "node").arena.app(AppId::new(2)).sig;
        set_sig(data, affine, |sig| sig.params[0] = ParamArg::Port(7));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G8 a2 of cell @node: the body has 2 parameter ports, found @7
    ");
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let sig = data.arena.app(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.params[0] = ParamArg::Port(0));
    }), @r"
    the rules of graphs are broken in 3 places
       1. G8 export @node: an export names parameters of the module, found a port
       2. G8 a2: a graph names parameters of the module, found a port
       3. G8 a17: a graph names parameters of the module, found a port
    ");
}

#[test]
fn g9_applications_make_the_results_of_their_signature() {
    assert_snapshot!(broken(Rule::Results, |data| {
        data.arena = changed(&data.arena, |_, _, types| types[0] = TypeId::new(0));
    }), @r"
    the rules of graphs are broken in 3 places
       1. G9 a0: the results have other types than the signature's
       2. G12 a2: operand 1 must be f32[4], found %0 of u32
       3. G12 a17: operand 1 must be f32[4], found %0 of u32
    ");
    assert_snapshot!(broken(Rule::Results, |data| {
        data.arena = changed(&data.arena, |_, _, types| types.push(TypeId::new(0)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G9 a30: expected results: 1, found: 2
    ");
}

#[test]
fn g10_operands_are_as_many_as_the_signatures() {
    assert_snapshot!(broken(Rule::OperandCount, |data| {
        data.arena = changed(&data.arena, |_, operands, _| operands.push(Operand::value(ValueId::new(0))));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G10 a30: expected operands: 2, found: 3
    ");
}

#[test]
fn g11_operands_are_made_before() {
    assert_snapshot!(broken(Rule::Order, |data| {
        let node = find_cell(data, "@node");
        let own = ValueId::new(data.arena.results(node).start);
        set_operand(data, node, 1, Operand::value(own));
        set_operand(data, node, 0, Operand::from_word(u32::MAX));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G11 a2: operand 0 is the word 0xffffffff, no operand
       2. G11 a2: operand 1 is %2, which is not made before
    ");
}

#[test]
fn g12_operands_have_the_types_of_the_signature() {
    assert_snapshot!(broken(Rule::OperandTypes, |data| {
        let max = data.arena.results(find_op(data, "reduce")).start;
        let list = find_op(data, "list");
        set_operand(data, list, 0, Operand::value(ValueId::new(max)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G12 a7: operand 0 must be f32[1], found %3 of f32
    ");
}

#[test]
fn g13_numbers_are_bound_where_an_index_is_read() {
    assert_snapshot!(broken(Rule::Bound, |data| {
        let (list, input) = (find_op(data, "list"), find_op(data, "input"));
        set_operand(data, list, 0, Operand::index(0));
        set_operand(data, input, 0, Operand::index(0));
        body(data, "leaf").arena = changed(&body(data, "leaf").arena.clone(), |_, operands, _| {
            operands[0] = Operand::index(0);
        });
    }), @r"
    the rules of graphs are broken in 3 places
       1. G13 a1 of cell @leaf: operand 0 is a bound number in a body
       2. G13 a0: an input of f32 takes bound floats
       3. G13 a7: list takes no bound number as operand 0
    ");
}

#[test]
fn g14_bound_runs_lie_inside_their_pools() {
    assert_snapshot!(broken(Rule::Pools, |data| {
        data.bindings.floats.pop();
        let leaf = find_cell(data, "@leaf");
        set_operand(data, leaf, 0, Operand::index(1000));
        data.bindings.words.iter_mut().for_each(|word| *word += 7);
    }), @r"
    the rules of graphs are broken in 4 places
       1. G14 a0: 4 elements from place 0 exceed a pool of 3
       2. G14 a1: operand 0 is word 1000 of 16 bound words
       3. G14 a11: a truth value is 0 or 1, found 8
       4. G14 a26: a truth value is 0 or 1, found 8
    ");
}

#[test]
fn g15_noise_keys_are_bound_words_ports_or_forks() {
    assert_snapshot!(broken(Rule::Noise, |data| {
        let body = body(data, "drop");
        body.noise = false;
    }), @r"
    the rules of graphs are broken in 2 places
       1. G15 a3 of cell @drop: %1 is no half of a noise key
       2. G15 a3 of cell @drop: %2 is no half of a noise key
    ");
}

#[test]
fn g16_lists_taken_together_are_equally_long() {
    assert_snapshot!(broken(Rule::Lengths, |data| {
        let at = data.arena.app(find_op(data, "list")).operands as usize;
        data.arena = changed(&data.arena, |apps, operands, _| {
            operands.remove(at);
            apps.iter_mut().filter(|app| app.operands as usize > at).for_each(|app| app.operands -= 1);
        });
    }), @r"
    the rules of graphs are broken in 1 place
       1. G16 a9: cell @mix takes lists of one length, found 1 and 2
    ");
}

#[test]
fn g16_reaches_through_cells_that_call_cells() {
    let mut m = ModuleBuilder::new("lists");
    let ports = || [list(f32([1])), list(f32([4]))];
    let inner = m.cell("inner", ports(), |g, [s, v]| [g.weighted_sum(s, v)]);
    let outer = m.cell("outer", ports(), |g, [s, v]| g.call(inner, [s, v]));
    let two = m.cell("two", [list(f32([1])), f32([4])], |g, [s, x]| g.call(inner, [s, g.list([x, x])]));
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    let (one, x) = (g.input(&[1.0]), g.input(&[1.0; 4]));
    let _ = g.call(outer, [g.list([one, one]), g.list([x, x])]);
    let _ = g.call(two, [g.list([one, one]), x]);
    g.data().verify().unwrap();
    let _ = g.call(outer, [g.list([one, one]), g.list([x])]);
    let _ = g.call(two, [g.list([one]), x]);
    let errors = g.data().verify().expect_err("the lengths differ");
    let messages: Vec<&str> = errors.findings().iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "cell @outer takes lists of one length, found 2 and 1",
            "cell @two takes lists of one length, found 1 and 2",
        ]
    );
}

#[test]
fn g17_ports_stand_at_the_head_of_bodies() {
    assert_snapshot!(broken(Rule::Ports, |data| {
        body(data, "node").ports = 1;
    }), @r"
    the rules of graphs are broken in 2 places
       1. G6 signature 6 (cell @node): the operands must have the types of the body's
       2. G17 a1 of cell @node: the first 1 applications are the ports, and no others
    ");
    assert_snapshot!(broken(Rule::Ports, |data| {
        let port = body(data, "node").arena.app(AppId::new(0)).sig;
        data.arena = changed(&data.arena, |apps, operands, _| {
            apps[0].sig = port;
            operands.remove(0);
            apps.iter_mut().skip(1).for_each(|app| app.operands -= 1);
        });
    }), @r"
    the rules of graphs are broken in 1 place
       1. G17 a0: a graph has no ports; numbers enter it through input
    ");
    assert_snapshot!(broken(Rule::Ports, |data| body(data, "node").ports = 99), @r"
    the rules of graphs are broken in 2 places
       1. G17 cell @node: the body has 99 ports and 4 applications
       2. G6 signature 6 (cell @node): the body of the cell is broken
    ");
}

#[test]
fn g18_noise_ports_are_the_last_two() {
    assert_snapshot!(broken(Rule::NoisePorts, |data| body(data, "node").noise = true), @r"
    the rules of graphs are broken in 5 places
       1. G18 cell @node: a body that draws noise has two last ports of type u32 for the key
       2. G15 a2: %1 is no half of a noise key
       3. G15 a2: %0 is no half of a noise key
       4. G15 a17: %16 is no half of a noise key
       5. G15 a17: %0 is no half of a noise key
    ");
}

#[test]
fn g19_bodies_call_earlier_cells_only() {
    assert_snapshot!(broken(Rule::CallOrder, |data| {
        let cells = &mut module(data).cells;
        let last = cells.len() - 1;
        cells.swap(last, last - 1);
    }), @r"
    the rules of graphs are broken in 2 places
       1. G19 a4 of cell @twice: cell @twice is not declared before
       2. G19 a6 of cell @twice: cell @twice is not declared before
    ");
}

#[test]
fn g20_bodies_nest_and_grow_within_limits() {
    let mut m = ModuleBuilder::new("deep");
    let mut cell = m.cell("c0", [f32([1])], |_, [x]| [x.tanh().exp()]);
    for level in 1..70 {
        let inner = cell;
        cell = m.cell(&format!("c{level}"), [f32([1])], |g, [x]| {
            let [x] = g.call(inner, x);
            g.call(inner, x)
        });
    }
    let errors = m.build().unwrap().verify().expect_err("the last inlines to 2^70 applications");
    let first = &errors.findings()[0];
    assert_eq!(first.rule, Rule::Nesting);
    assert_snapshot!(first, @"G20 cell @c19: calls nest at most 64 deep and inline to at most 1048576 applications, found 20 and 2097151");
    assert_snapshot!(errors.findings().last().unwrap(), @"G20 cell @c69: calls nest at most 64 deep and inline to at most 1048576 applications, found 70 and 18446744073709551615");
}

#[test]
fn g21_results_of_bodies_are_values() {
    assert_snapshot!(broken(Rule::BodyResults, |data| {
        body(data, "mix").results[0] = ValueId::new(0);
        body(data, "node").results[0] = ValueId::new(99);
    }), @r"
    the rules of graphs are broken in 4 places
       1. G21 cell @node: the result %99 is not among 4 values
       2. G6 signature 6 (cell @node): the body of the cell is broken
       3. G6 signature 10 (cell @mix): the results must have the types of the body's
       4. G21 cell @mix: a cell returns values, %0 is a list
    ");
}

#[test]
fn g22_cuts_ascend() {
    assert_snapshot!(broken(Rule::Cuts, |data| {
        data.cuts.swap(0, 1);
        data.cuts.push(Cut { first: 9999, key: None });
    }), @r"
    the rules of graphs are broken in 2 places
       1. G22 cut 1: a cut must lie in 16..=31, found 1
       2. G22 cut 2: a cut must lie in 16..=31, found 9999
    ");
}

#[test]
fn g23_outputs_are_values_and_losses_numbers() {
    assert_snapshot!(broken(Rule::Outputs, |data| {
        let list = ValueId::new(data.arena.results(find_op(data, "list")).start);
        let output = |name: &str, value, kind| Output { name: name.to_owned(), value, kind };
        data.outputs.push(output("outside", ValueId::new(9999), OutputKind::Value));
        data.outputs.push(output("list", list, OutputKind::Value));
        data.outputs.push(output("vector", ValueId::new(0), OutputKind::Loss));
    }), @r#"
    the rules of graphs are broken in 3 places
       1. G23 output "outside": %9999 is not among 31 values
       2. G23 output "list": a list is no output, found list f32[1]
       3. G23 output "vector": a loss is a scalar f32, found f32[4]
    "#);
}

#[test]
fn g24_marks_name_what_is_there() {
    assert_snapshot!(broken(Rule::Marks, |data| {
        data.shared.push(ValueId::new(9999));
        data.alone.push(AppId::new(9999));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G24 mark shared: %9999 is not among 31 values
       2. G24 mark alone: a9999 is not among 31 applications
    ");
}

#[test]
fn a_port_takes_no_storage_format() {
    let mut m = ModuleBuilder::new("half");
    m.cell("half", [Type::new(DType::F16, Shape::SCALAR)], |_, [x]| [x]);
    let error = m.build().expect_err("nothing could call the cell");
    assert_eq!(error.message, "f16 is a storage format of parameters, no port takes f16");
}

#[test]
fn findings_are_bounded() {
    let mut data = sample();
    data.shared = vec![ValueId::new(9999); 1000];
    let errors = data.verify().expect_err("no mark is sound");
    assert_eq!(errors.findings().len(), crate::findings::MAX_FINDINGS);
    assert!(errors.to_string().starts_with("the rules of graphs are broken in 100 or more places\n"));
}

#[test]
fn hostile_names_make_short_messages() {
    let mut data = sample();
    module(&mut data).params[0].name = "\u{7}\u{10ffff}".repeat(100_000);
    let errors = data.verify().expect_err("the name is no name");
    assert!(errors.to_string().len() < 4000, "{}", errors.to_string().len());
}
