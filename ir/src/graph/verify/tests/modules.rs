//! Rules of modules and bodies: an invalid graph for each.

use super::*;

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
    }), @r#"
    the rules of graphs are broken in 11 places
       1. G1 module sample: the first type must be u32
       2. G3 cell @leaf: a parameter is stored as f32, f16 or bf16, found u32
       3. G5 signature 0 (port): expected results (u32), found (f32[10,4])
       4. G5 signature 1 (lookup): the index must be u32, found f32[10,4]
       5. G7 signature 2 (cell @leaf): parameter argument 0 was declared f32[10,4], found u32
       6. G5 signature 11 (dropout): a noise key is two u32 numbers
       7. G5 signature 13 (fork_noise): a noise key is two u32 numbers
       8. G5 signature 14 (fork_noise): a noise key is two u32 numbers
       9. G5 signature 26 (pick_neg_log_softmax): labels must be u32, one per row of f32[4], found f32[10,4]
      10. G18 cell @drop: the last two ports of a body that draws noise must be u32
      11. G18 cell @twice: the last two ports of a body that draws noise must be u32
    "#);
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
       2. G2 module sample: two parameters have the name "w"
       3. G2 module sample: a name begins with a letter and holds at most 255 letters, digits, '_', '.' and '-', found cell "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.."
       4. G2 module sample: two outputs have the name "loss0"
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
    the rules of graphs are broken in 4 places
       1. G3 parameter @embed: a parameter is stored as f32, f16 or bf16, found u32
       2. G3 parameter @w: the shape [8,4] needs 32 values, found 3
       3. G3 parameter @b: a table has the shape [rows, width], found [4]
       4. G7 signature 2 (cell @leaf): parameter argument 0 was declared u32, found f32[10,4]
    ");
}

#[test]
fn g3_initial_values_can_be_drawn() {
    assert_snapshot!(broken(Rule::Params, |data| {
        let module = module(data);
        module.params[1].init = Init::Uniform(-0.5);
        module.params[2].init = Init::Glorot(f32::NAN);
    }), @r"
    the rules of graphs are broken in 2 places
       1. G3 parameter @w: the initial values need a finite spread of at least 0, found -0.5
       2. G3 parameter @b: the initial values need a finite gain, found NaN
    ");
}

#[test]
fn g3_parameter_ports_are_stored_floats() {
    assert_snapshot!(broken(Rule::Params, |data| {
        body(data, "node").param_types.push(TypeId::new(0));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G3 cell @node: a parameter is stored as f32, f16 or bf16, found u32
       2. G6 signature 6 (cell @node): the parameter arguments must have the types of the body
    ");
}

#[test]
fn g4_ids_lie_inside_their_tables() {
    assert_snapshot!(broken(Rule::Ids, |data| {
        data.arena = changed(&data.arena, |nodes, _, _| {
            nodes[0].sig = SigId::new(999);
            nodes[1].site = SiteId::new(999);
        });
        module(data).params[0].site = SiteId::new(999);
        module(data).exports[0].sig = SigId::new(999);
    }), @r"
    the rules of graphs are broken in 4 places
       1. G4 parameter @embed: !999 is not among 28 sites
       2. G4 export @leaf: sig999 is not among 16 signatures
       3. G4 n0: sig999 is not among 27 signatures
       4. G4 n1 (unknown line): !999 is not among 28 sites
    ");
    assert_snapshot!(broken(Rule::Ids, |data| {
        let [leaf, node] = ["@leaf", "@node"].map(|name| data.arena.node(find_cell(data, name)).sig);
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
       2. G6 signature 2 (cell @leaf): the body of the cell is invalid
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
        let sig = data.arena.node(find_op(data, "list")).sig;
        set_sig(data, sig, |sig| sig.results[0] = scalar);
        let sig = data.arena.node(find_op(data, "select")).sig;
        set_sig(data, sig, |sig| sig.operands[0] = scalar);
        let sig = data.arena.node(find_op(data, "reduce")).sig;
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
        let sig = data.arena.node(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.results = Box::default());
        module(data).exports[0].sig = SigId::new(0);
    }), @r"
    the rules of graphs are broken in 2 places
       1. G6 signature 6 (cell @node): the results must have the types of the body
       2. G6 export @leaf: an export is a signature of a cell
    ");
}

#[test]
fn g7_parameter_arguments_have_their_declared_types() {
    assert_snapshot!(broken(Rule::ParamTypes, |data| {
        let sig = data.arena.node(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.params[1] = ParamArg::Module(ParamId::new(0)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G7 signature 6 (cell @node): parameter argument 1 was declared f32[10,4], found f32[4]
    ");
    assert_snapshot!(broken(Rule::ParamTypes, |data| module(data).params[0].kind = ParamKind::Param), @r"
    the rules of graphs are broken in 1 place
       1. G7 signature 2 (cell @leaf): a lookup reads a table, @embed is a dense parameter
    ");
}

#[test]
fn g8_bodies_take_parameters_through_ports() {
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let affine = body(data, "node").arena.node(NodeId::new(2)).sig;
        set_sig(data, affine, |sig| sig.params[0] = ParamArg::Module(ParamId::new(1)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G8 n2 of cell @node: parameter argument 0 must be a port of the body, found one of the module
    ");
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let affine = body(data, "node").arena.node(NodeId::new(2)).sig;
        set_sig(data, affine, |sig| sig.params[0] = ParamArg::Port(7));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G8 n2 of cell @node: the body has 2 parameter ports, found @7
    ");
    assert_snapshot!(broken(Rule::ParamSource, |data| {
        let sig = data.arena.node(find_cell(data, "@node")).sig;
        set_sig(data, sig, |sig| sig.params[0] = ParamArg::Port(0));
    }), @r"
    the rules of graphs are broken in 3 places
       1. G8 export @node: an export names parameters of the module, found a port
       2. G8 n2: a graph names parameters of the module, found a port
       3. G8 n17: a graph names parameters of the module, found a port
    ");
}

#[test]
fn g25_only_graphs_append_to_lists() {
    assert_snapshot!(broken(Rule::Appends, |data| {
        let (element, of_elements) = (type_id(data, f32([4])), type_id(data, list(f32([4]))));
        let sum = body(data, "mix").arena.node(NodeId::new(2)).sig;
        set_sig(data, sum, |signature| {
            signature.callee = Callee::Op(Op::Append);
            signature.operands = [of_elements, element].into();
            signature.results = [of_elements].into();
        });
    }), @r"
    the rules of graphs are broken in 4 places
       1. G9 n2 of cell @mix: the results differ in type from the signature
       2. G25 n2 of cell @mix: a body lists its items, only a graph appends to lists
       3. G12 n2 of cell @mix: operand 0 must be list f32[4], found %0 of list f32[1]
       4. G12 n2 of cell @mix: operand 1 must be f32[4], found %1 of list f32[4]
    ");
}

#[test]
fn g17_ports_stand_at_the_head_of_bodies() {
    assert_snapshot!(broken(Rule::Ports, |data| {
        body(data, "node").ports = 1;
    }), @r"
    the rules of graphs are broken in 2 places
       1. G6 signature 6 (cell @node): the operands must have the types of the body
       2. G17 n1 of cell @node: exactly the first 1 nodes must be ports
    ");
    assert_snapshot!(broken(Rule::Ports, |data| {
        let port = body(data, "node").arena.node(NodeId::new(0)).sig;
        data.arena = changed(&data.arena, |nodes, operands, _| {
            nodes[0].sig = port;
            operands.remove(0);
            nodes.iter_mut().skip(1).for_each(|node| node.operands -= 1);
        });
    }), @r"
    the rules of graphs are broken in 1 place
       1. G17 n0: a graph has no ports; use an input
    ");
    assert_snapshot!(broken(Rule::Ports, |data| body(data, "node").ports = 99), @r"
    the rules of graphs are broken in 2 places
       1. G17 cell @node: the body has 99 ports and 4 nodes
       2. G6 signature 6 (cell @node): the body of the cell is invalid
    ");
}

#[test]
fn g18_noise_ports_are_the_last_two() {
    assert_snapshot!(broken(Rule::NoisePorts, |data| body(data, "node").noise = true), @r"
    the rules of graphs are broken in 5 places
       1. G18 cell @node: the last two ports of a body that draws noise must be u32
       2. G15 n2: %1 is not part of a noise key
       3. G15 n2: %0 is not part of a noise key
       4. G15 n17: %16 is not part of a noise key
       5. G15 n17: %0 is not part of a noise key
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
       1. G19 n4 of cell @twice: cell @twice is not declared earlier
       2. G19 n6 of cell @twice: cell @twice is not declared earlier
    ");
}

/// Cells that each call the cell before twice. The first has two ops. A builder rejects such cells, so the text declares them.
fn doubling(name: &str, levels: usize, by: usize) -> String {
    let mut text = format!(
        "cell @{name}(%0: f32[1]) {{\n  %1: f32[1] = scale_gradient{{by={by}}}(%0)\n  %2: f32[1] = exp(%1)\n  return %2\n}}\n"
    );
    let mut inner = name.to_owned();
    for level in 1..levels {
        let outer = format!("{name}.{level}");
        text += &format!(
            "cell @{outer}(%0: f32[1]) {{\n  %1 = call @{inner}(%0)\n  %2 = call @{inner}(%1)\n  return %2\n}}\n"
        );
        inner = outer;
    }
    text
}

/// The broken rules of a module with these cells.
fn errors_of(cells: &str) -> VerifyErrors {
    let text = format!("autobatch graph 2\nmodule \"doubling\"\n{cells}");
    let module = Module::from_text(text).expect("the text is well formed");
    module.verify().expect_err("the cells are too large")
}

#[test]
fn g20_bodies_nest_and_grow_within_limits() {
    let errors = errors_of(&doubling("c", 70, 1));
    let first = &errors.findings()[0];
    assert_eq!(first.rule, Rule::Nesting);
    assert_snapshot!(first, @"G20 cell @c.18: the bodies of a module have at most 1048576 nodes after inlining, found 2097129 up to this one, 1048575 in this one; call cells from the graph, or less often");
    assert_snapshot!(errors.findings().last().unwrap(), @"G20 cell @c.69: calls nest at most 64 deep, found 70");
}

#[test]
fn g20_bounds_the_sum_over_a_module_too() {
    let errors =
        errors_of(&(0..40).map(|number| doubling(&format!("c{number}"), 17, number)).collect::<String>());
    assert_eq!(errors.findings().len(), 1);
    assert_snapshot!(errors.findings()[0], @"G20 cell @c2.3: the bodies of a module have at most 1048576 nodes after inlining, found 1048590 up to this one, 31 in this one; call cells from the graph, or less often");
}

#[test]
fn g21_results_of_bodies_are_values() {
    assert_snapshot!(broken(Rule::BodyResults, |data| {
        body(data, "mix").results[0] = ValueId::new(0);
        body(data, "node").results[0] = ValueId::new(99);
    }), @r"
    the rules of graphs are broken in 4 places
       1. G21 cell @node: the result %99 is not among 4 values
       2. G6 signature 6 (cell @node): the body of the cell is invalid
       3. G6 signature 10 (cell @mix): the results must have the types of the body
       4. G21 cell @mix: a cell returns values, and %0 is a list
    ");
}
