//! Rules of nodes and graphs: an invalid graph for each.

use super::*;

#[test]
fn g9_nodes_have_the_results_of_their_signature() {
    assert_snapshot!(broken(Rule::Results, |data| {
        data.arena = changed(&data.arena, |_, _, types| types[0] = TypeId::new(0));
    }), @r"
    the rules of graphs are broken in 3 places
       1. G9 n0: the results differ in type from the signature
       2. G12 n2: operand 1 must be f32[4], found %0 of u32
       3. G12 n17: operand 1 must be f32[4], found %0 of u32
    ");
    assert_snapshot!(broken(Rule::Results, |data| {
        data.arena = changed(&data.arena, |_, _, types| types.push(TypeId::new(0)));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G9 n30: expected results: 1, found: 2
    ");
}

#[test]
fn g10_nodes_have_the_number_of_operands_of_the_signature() {
    assert_snapshot!(broken(Rule::OperandCount, |data| {
        data.arena = changed(&data.arena, |_, operands, _| operands.push(Operand::value(ValueId::new(0))));
    }), @r"
    the rules of graphs are broken in 1 place
       1. G10 n30: expected operands: 2, found: 3
    ");
}

#[test]
fn g11_operands_are_earlier_results() {
    assert_snapshot!(broken(Rule::Order, |data| {
        let node = find_cell(data, "@node");
        let own = ValueId::new(data.arena.results(node).start);
        set_operand(data, node, 1, Operand::value(own));
        set_operand(data, node, 0, Operand::from_word(u32::MAX));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G11 n2: operand 0 is the invalid word 0xffffffff
       2. G11 n2: operand 1 is %2, which no earlier node produces
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
       1. G12 n7: operand 0 must be f32[1], found %3 of f32
    ");
}

#[test]
fn g13_numbers_are_bound_where_an_index_is_read() {
    assert_snapshot!(broken(Rule::Bindings, |data| {
        let (list, input) = (find_op(data, "list"), find_op(data, "input"));
        set_operand(data, list, 0, Operand::index(0));
        set_operand(data, input, 0, Operand::index(0));
        body(data, "leaf").arena = changed(&body(data, "leaf").arena.clone(), |_, operands, _| {
            operands[0] = Operand::index(0);
        });
    }), @r"
    the rules of graphs are broken in 3 places
       1. G13 n1 of cell @leaf: operand 0 is a binding in a body
       2. G13 n0: an input of f32 takes bound floats
       3. G13 n7: list does not accept a binding as operand 0
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
       1. G14 n0: 4 elements from slot 0 exceed a pool of 3
       2. G14 n1: operand 0 is word 1000 of 16 bound words
       3. G14 n11: a bool is 0 or 1, found 8
       4. G14 n26: a bool is 0 or 1, found 8
    ");
}

#[test]
fn g15_noise_keys_are_bound_words_ports_or_forks() {
    assert_snapshot!(broken(Rule::Noise, |data| {
        let body = body(data, "drop");
        body.noise = false;
    }), @r"
    the rules of graphs are broken in 2 places
       1. G15 n3 of cell @drop: %1 is not part of a noise key
       2. G15 n3 of cell @drop: %2 is not part of a noise key
    ");
}

#[test]
fn g16_lists_read_together_have_equal_lengths() {
    assert_snapshot!(broken(Rule::Lengths, |data| {
        let at = data.arena.node(find_op(data, "list")).operands as usize;
        data.arena = changed(&data.arena, |nodes, operands, _| {
            operands.remove(at);
            nodes.iter_mut().filter(|node| node.operands as usize > at).for_each(|node| node.operands -= 1);
        });
    }), @r"
    the rules of graphs are broken in 1 place
       1. G16 n9: cell @mix takes lists of equal length, found 1 and 2
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
            "cell @outer takes lists of equal length, found 2 and 1",
            "cell @two takes lists of equal length, found 1 and 2",
        ]
    );
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
       2. G23 output "list": an output cannot be a list, found list f32[1]
       3. G23 output "vector": a loss is a scalar f32, found f32[4]
    "#);
}

#[test]
fn g24_marks_name_values_and_nodes_of_the_graph() {
    assert_snapshot!(broken(Rule::Marks, |data| {
        data.shared.push(ValueId::new(9999));
        data.alone.push(NodeId::new(9999));
    }), @r"
    the rules of graphs are broken in 2 places
       1. G24 mark shared: %9999 is not among 31 values
       2. G24 mark alone: n9999 is not among 31 nodes
    ");
}
