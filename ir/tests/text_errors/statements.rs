//! Messages about declarations, bodies and statements.

use super::{HEAD, NODE, WEIGHTS, X};

super::shows! {
    a_parameter_of_the_module_inside_a_cell_is_explained:
        HEAD, WEIGHTS, "cell @f(%x: f32[4]) {", "  %y = affine[@w](%x)", "  return %y", "}" => @r#"
    error: unknown parameter @w
     --> model.graph:5:15
      |
    5 |   %y = affine[@w](%x)
      |               ^^ not declared above
      = help: a cell takes its parameters as arguments: cell @name[@w: type](..)
    "#;
    a_parameter_declared_twice_is_explained: HEAD, WEIGHTS, "param @w f32" => @r#"
    error: the parameter @w is declared twice
     --> model.graph:4:7
      |
    4 | param @w f32
      |       ^^ here again
      = help: use unique names
    "#;
    a_cell_declared_twice_is_explained: HEAD, NODE, "cell @node() { return }" => @r#"
    error: the cell @node is declared twice
     --> model.graph:8:6
      |
    8 | cell @node() { return }
      |      ^^^^^ here again
      = help: use unique names
    "#;
    a_table_of_rank_one_is_explained: HEAD, "table @t f32[4]" => @r#"
    error: a table has the shape [rows, width], found [4]
     --> model.graph:2:7
      |
    2 | table @t f32[4]
      |       ^^ declared here
    "#;
    an_unknown_initialiser_is_explained: HEAD, "param @w f32[4] = glorto(1)" => @r#"
    error: unknown initialiser 'glorto'
     --> model.graph:2:19
      |
    2 | param @w f32[4] = glorto(1)
      |                   ^^^^^^ no such initialiser
      = help: did you mean 'glorot'?
    "#;
    an_initialiser_of_the_wrong_size_is_explained: HEAD, "param @w f32[3] = values(1, 2)" => @r#"
    error: the shape [3] needs 3 values, found 2
     --> model.graph:2:7
      |
    2 | param @w f32[3] = values(1, 2)
      |       ^^ declared here
    "#;
    declarations_out_of_order_are_explained: HEAD, NODE, "param @late f32" => @r#"
    error: expected a declaration or 'graph', found 'param'
     --> model.graph:8:1
      |
    8 | param @late f32
      | ^^^^^ unexpected
      = help: the order is: module, sites, parameters and tables, cells, exports, graph
    "#;
    an_unknown_statement_is_explained: HEAD, X, r#"outptu "y" %x"# => @r#"
    error: expected a statement such as %3 = add(%1, %2), found 'outptu'
     --> model.graph:4:1
      |
    4 | outptu "y" %x
      | ^^^^^^ unexpected
      = help: did you mean 'output'?
    "#;
    an_op_without_a_result_name_is_explained: HEAD, X, "exp(%x)" => @r#"
    error: expected a statement such as %3 = add(%1, %2), found 'exp'
     --> model.graph:4:1
      |
    4 | exp(%x)
      | ^^^ unexpected
      = help: name the result: %x = exp(..)
    "#;
    a_loss_that_is_a_vector_is_explained: HEAD, X, r#"loss "l" %x"# => @r#"
    error: a loss is a scalar f32, found f32[4]
     --> model.graph:4:10
      |
    4 | loss "l" %x
      |          ^^ this is f32[4]
      = help: reduce it: %l = reduce{fold=sum over=all}(%x)
    "#;
    an_output_name_that_is_taken_is_explained: HEAD, X, r#"output "o" %x output "o" %x"# => @r#"
    error: the output name "o" is taken
     --> model.graph:4:22
      |
    4 | output "o" %x output "o" %x
      |                      ^^^ here again
    "#;
    an_unknown_site_is_explained: HEAD, X, "%y = exp(%x) !4" => @r#"
    error: unknown site !4
     --> model.graph:4:14
      |
    4 | %y = exp(%x) !4
      |              ^^ not in the table of sites
      = help: declare it above: site !0 "src/model.rs" 31:21
    "#;
    sites_out_of_order_are_explained: HEAD, r#"site !1 "a.rs" 1:1"# => @r#"
    error: site !0 comes next, found !1
     --> model.graph:2:6
      |
    2 | site !1 "a.rs" 1:1
      |      ^^ out of order
      = help: sites count from !0
    "#;
    bindings_in_a_cell_are_explained:
        HEAD, "cell @f(%x: f32[4]) {", "  %y = pick(%x, #1)", "  return %y", "}" => @r#"
    error: numbers cannot be bound inside a cell
     --> model.graph:3:17
      |
    3 |   %y = pick(%x, #1)
      |                 ^ bound here
      = help: declare a port: cell @f(%i: u32)
    "#;
    a_body_without_an_end_is_explained: HEAD, "cell @f(%x: f32) {", "  %y = exp(%x)" => @r#"
    error: expected a node or 'return', found the end of the text
     --> model.graph:4:1
      |
    4 |
      | ^ the text ends here
    "#;
    a_noise_cell_without_a_key_is_explained:
        HEAD, "cell @f(%x: f32) noise { return %x }" => @r#"
    error: the last two ports of a cell that draws noise are the noise key, two u32
     --> model.graph:2:18
      |
    2 | cell @f(%x: f32) noise { return %x }
      |                  ^^^^^ draws noise
      = help: write (.., %low: u32, %high: u32) noise
    "#;
}
