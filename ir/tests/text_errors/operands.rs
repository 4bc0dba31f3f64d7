//! Messages about parameters, cells, ports and lists.

use super::{HEAD, NODE, WEIGHTS, X, Y};

super::shows! {
    a_cell_called_like_an_op_is_explained: HEAD, NODE, X, Y, "%z = node[@w](%x, #1)" => @r#"
    error: unknown op 'node'
      --> model.graph:11:6
       |
    11 | %z = node[@w](%x, #1)
       |      ^^^^ no op has this name
       = help: call a cell with 'call @node(..)'
    "#;
    a_weight_of_the_wrong_shape_is_explained:
        HEAD, WEIGHTS, X, "%y = affine[@w](%x)", "%z = affine[@w](%y)" => @r#"
    error: affine: the value has 2 elements, the weight takes 4
     --> model.graph:7:6
      |
    7 | %z = affine[@w](%y)
      |      ^^^^^^ applied to f32[4,2], f32[2]
      = help: the weight is stored as [outputs, inputs]: call affine_transposed, or import it transposed
    "#;
    an_unknown_parameter_is_explained: HEAD, WEIGHTS, X, "%y = affine[@v](%x)" => @r#"
    error: unknown parameter @v
     --> model.graph:6:13
      |
    6 | %y = affine[@v](%x)
      |             ^^ not declared above
      = help: declare it: param @v f32[..] = glorot(1)
    "#;
    an_unknown_cell_is_explained: HEAD, NODE, X, Y, "%z = call @nod[@w](%x, #1)" => @r#"
    error: unknown cell @nod
      --> model.graph:11:11
       |
    11 | %z = call @nod[@w](%x, #1)
       |           ^^^^ not declared above
       = help: did you mean @node?
    "#;
    a_port_of_another_type_is_explained: HEAD, NODE, X, Y, "%z = call @node[@w](%y, #1)" => @r#"
    error: port 0 of @node takes f32[4], found f32[2]
      --> model.graph:11:21
       |
    11 | %z = call @node[@w](%y, #1)
       |                     ^^ this is f32[2]
    "#;
    too_few_operands_of_a_cell_are_explained: HEAD, NODE, X, Y, "%z = call @node[@w](%x)" => @r#"
    error: @node has 2 ports, found 1 operands
      --> model.graph:11:11
       |
    11 | %z = call @node[@w](%x)
       |           ^^^^^ called here
    "#;
    a_parameter_argument_of_another_type_is_explained:
        HEAD, NODE, X, Y, "%z = call @node[@b](%x, #1)" => @r#"
    error: parameter argument 0 of @node must be f32[4,4], found f32[4]
      --> model.graph:11:11
       |
    11 | %z = call @node[@b](%x, #1)
       |           ^^^^^ in brackets after this name
    "#;
    a_missing_parameter_argument_is_explained: HEAD, NODE, X, Y, "%z = call @node(%x, #1)" => @r#"
    error: @node takes 1 parameter arguments, found 0
      --> model.graph:11:11
       |
    11 | %z = call @node(%x, #1)
       |           ^^^^^ in brackets after this name
    "#;
    an_empty_list_without_a_type_is_explained: HEAD, "graph", "%l = list()" => @r#"
    error: the element type of an empty list is unknown
     --> model.graph:3:6
      |
    3 | %l = list()
      |      ^^^^ no elements
      = help: write list f32[4] ()
    "#;
    a_list_of_two_types_is_explained: HEAD, NODE, X, Y, "%l = list(%x, %y)" => @r#"
    error: element 1 must be f32[4] like the first, found f32[2]
      --> model.graph:11:15
       |
    11 | %l = list(%x, %y)
       |               ^^ this is f32[2]
    "#;
    lists_of_different_lengths_are_explained:
        HEAD, X, "%a = list(%x, %x)", "%b = list(%x)", "%c = wsum(%a, %b)" => @r#"
    error: the lists must have equal lengths, found 2 and 1 values
     --> model.graph:6:6
      |
    6 | %c = wsum(%a, %b)
      |      ^^^^ over these lists
      = help: give each value a score
    "#;
    a_list_where_a_value_is_taken_is_explained: HEAD, X, "%a = list(%x)", "%b = exp(%a)" => @r#"
    error: exp: operand 0 must be a value, found list f32[4]
     --> model.graph:5:6
      |
    5 | %b = exp(%a)
      |      ^^^ applied to list f32[4]
      = help: lists are taken by sum, mean, max, logsumexp, argmax, pick, wsum, attend, graph_attend, append and list ports of cells
    "#;
}
