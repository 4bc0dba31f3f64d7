//! What a text's author reads when it is wrong: every message as it is shown.

use autobatch_ir::GraphData;

fn refusal(text: &str) -> String {
    GraphData::from_text(text).expect_err("the text is wrong").in_file("model.graph").to_string()
}

macro_rules! shows {
    ($($name:ident: $text:expr => @$shown:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(refusal($text), @$shown);
        }
    )*};
}

shows! {
    a_text_without_its_version_line_is_explained: r#"graph
%x = fill f32 {value=1}
"# => @r#"
    error: the version line is missing
     --> model.graph:1:1
      |
    1 | graph
      | ^^^^^ the text begins here
      = help: begin the text with 'autobatch graph 1'
    "#;
    an_empty_text_is_explained: r#""# => @r#"
    error: the version line is missing
     --> model.graph:1:1
      |
    1 |
      | ^ the text begins here
      = help: begin the text with 'autobatch graph 1'
    "#;
    a_newer_version_is_explained: r#"autobatch graph 2
graph
"# => @r#"
    error: this text has version 2, this reader knows version 1
     --> model.graph:1:17
      |
    1 | autobatch graph 2
      |                 ^ the version of the text
      = help: read it with a newer autobatch
    "#;
    a_plan_is_explained: r#"autobatch plan 1
"# => @r#"
    error: this is a plan, not a graph
     --> model.graph:1:11
      |
    1 | autobatch plan 1
      |           ^^^^ the kind of the text
      = help: plans are read by the plan reader
    "#;
    an_unknown_op_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = sigmod(%x)
"# => @r#"
    error: unknown op 'sigmod'
     --> model.graph:4:6
      |
    4 | %y = sigmod(%x)
      |      ^^^^^^ no op has this name
      = help: did you mean 'sigmoid'?
    "#;
    a_cell_called_like_an_op_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = node[@w](%x, #1)
"# => @r#"
    error: unknown op 'node'
      --> model.graph:11:6
       |
    11 | %z = node[@w](%x, #1)
       |      ^^^^ no op has this name
       = help: cells are called by 'call @node(..)'
    "#;
    an_unknown_attribute_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = slice{axis=0 strt=1 len=2}(%x)
"# => @r#"
    error: slice has no attribute 'strt'
     --> model.graph:4:19
      |
    4 | %y = slice{axis=0 strt=1 len=2}(%x)
      |                   ^^^^ unknown attribute
      = help: did you mean 'start'?
    "#;
    a_missing_attribute_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = slice{axis=0 len=2}(%x)
"# => @r#"
    error: slice needs the attribute 'start'
     --> model.graph:4:6
      |
    4 | %y = slice{axis=0 len=2}(%x)
      |      ^^^^^ it is missing
      = help: write slice{axis=.. start=.. len=..}
    "#;
    an_attribute_given_twice_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = elu{alpha=1 alpha=2}(%x)
"# => @r#"
    error: the attribute 'alpha' is given twice
     --> model.graph:4:18
      |
    4 | %y = elu{alpha=1 alpha=2}(%x)
      |                  ^^^^^ here again
    "#;
    a_word_that_is_no_choice_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = reduce{fold=prod over=last}(%x)
"# => @r#"
    error: expected one of sum, mean, max, min, found 'prod'
     --> model.graph:4:18
      |
    4 | %y = reduce{fold=prod over=last}(%x)
      |                  ^^^^ unexpected
    "#;
    an_undefined_value_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%long_name = exp(%x)
%z = exp(%lung_name)
"# => @r#"
    error: %lung_name is not defined
     --> model.graph:5:10
      |
    5 | %z = exp(%lung_name)
      |          ^^^^^^^^^^ used here
      = help: did you mean %long_name?
    "#;
    a_value_used_before_it_is_defined_is_explained: r#"autobatch graph 1
graph
%1 = exp(%0)
%0 = fill f32 {value=1}
"# => @r#"
    error: %0 is not defined
     --> model.graph:3:10
      |
    3 | %1 = exp(%0)
      |          ^^ used here
      = help: an application names only values of the lines above it
    "#;
    a_name_defined_twice_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = exp(%x)
%y = log(%x)
"# => @r#"
    error: the name %y is taken
     --> model.graph:5:1
      |
    5 | %y = log(%x)
      | ^^ defined again
      = help: a value is defined once: choose another name
    "#;
    operands_of_the_wrong_type_is_explained: r#"autobatch graph 1
param @w f32[4,2]
param @b f32[2]
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = affine[@w, @b](%x)
%z = add(%x, %y)
"# => @r#"
    error: add: operands must have one shape, found f32[4] and f32[2]
     --> model.graph:7:6
      |
    7 | %z = add(%x, %y)
      |      ^^^ applied to f32[4], f32[2]
      = help: repeat the smaller with .broadcast(shape); scalars need no help
    "#;
    a_weight_of_the_wrong_shape_is_explained: r#"autobatch graph 1
param @w f32[4,2]
param @b f32[2]
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = affine[@w](%x)
%z = affine[@w](%y)
"# => @r#"
    error: affine: the value has 2 elements, the weight wants 4
     --> model.graph:7:6
      |
    7 | %z = affine[@w](%y)
      |      ^^^^^^ applied to f32[4,2], f32[2]
    "#;
    a_wrong_number_of_operands_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = add(%x)
"# => @r#"
    error: add: expected 2 operands, found 1
     --> model.graph:4:6
      |
    4 | %y = add(%x)
      |      ^^^ applied to f32[4]
    "#;
    a_wrong_number_of_results_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%a, %b, %c = split{axis=0 parts=2}(%x)
"# => @r#"
    error: this application has 2 results, 3 are named
     --> model.graph:4:14
      |
    4 | %a, %b, %c = split{axis=0 parts=2}(%x)
      |              ^^^^^ name each result
      = help: write %a, %b = .. for two results
    "#;
    a_wrong_annotation_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y: f32[5] = exp(%x)
"# => @r#"
    error: %y is f32[4], not f32[5]
     --> model.graph:4:1
      |
    4 | %y: f32[5] = exp(%x)
      | ^^ its type is f32[4]
      = help: correct the type, or leave it out: types follow from the operands
    "#;
    an_unknown_parameter_is_explained: r#"autobatch graph 1
param @w f32[4,2]
param @b f32[2]
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = affine[@v](%x)
"# => @r#"
    error: unknown parameter @v
     --> model.graph:6:13
      |
    6 | %y = affine[@v](%x)
      |             ^^ not declared above
      = help: declare it: param @v f32[..] = glorot(1)
    "#;
    a_parameter_of_the_module_inside_a_cell_is_explained: r#"autobatch graph 1
param @w f32[4,2]
param @b f32[2]
cell @f(%x: f32[4]) {
  %y = affine[@w](%x)
  return %y
}
"# => @r#"
    error: unknown parameter @w
     --> model.graph:5:15
      |
    5 |   %y = affine[@w](%x)
      |               ^^ not declared above
      = help: a cell takes its parameters as arguments: cell @name[@w: type](..)
    "#;
    an_unknown_cell_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = call @nod[@w](%x, #1)
"# => @r#"
    error: unknown cell @nod
      --> model.graph:11:11
       |
    11 | %z = call @nod[@w](%x, #1)
       |           ^^^^ not declared above
       = help: did you mean @node?
    "#;
    a_port_of_another_type_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = call @node[@w](%y, #1)
"# => @r#"
    error: port 0 of @node takes f32[4], found f32[2]
      --> model.graph:11:21
       |
    11 | %z = call @node[@w](%y, #1)
       |                     ^^ this is f32[2]
    "#;
    too_few_operands_of_a_cell_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = call @node[@w](%x)
"# => @r#"
    error: @node has 2 ports, found 1 operands
      --> model.graph:11:11
       |
    11 | %z = call @node[@w](%x)
       |           ^^^^^ called here
    "#;
    a_parameter_argument_of_another_type_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = call @node[@b](%x, #1)
"# => @r#"
    error: parameter argument 0 of @node must be f32[4,4], found f32[4]
      --> model.graph:11:11
       |
    11 | %z = call @node[@b](%x, #1)
       |           ^^^^^ in brackets behind this name
    "#;
    a_missing_parameter_argument_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%z = call @node(%x, #1)
"# => @r#"
    error: @node takes 1 parameter arguments, found 0
      --> model.graph:11:11
       |
    11 | %z = call @node(%x, #1)
       |           ^^^^^ in brackets behind this name
    "#;
    a_parameter_declared_twice_is_explained: r#"autobatch graph 1
param @w f32[4,2]
param @b f32[2]
param @w f32
"# => @r#"
    error: the parameter @w is declared twice
     --> model.graph:4:7
      |
    4 | param @w f32
      |       ^^ here again
      = help: give each its own name
    "#;
    a_cell_declared_twice_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
cell @node() { return }
"# => @r#"
    error: the cell @node is declared twice
     --> model.graph:8:6
      |
    8 | cell @node() { return }
      |      ^^^^^ here again
      = help: give each its own name
    "#;
    a_number_too_large_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = pick(%x, #4294967296)
"# => @r#"
    error: the number 4294967296 is out of range
     --> model.graph:4:16
      |
    4 | %y = pick(%x, #4294967296)
      |                ^^^^^^^^^^ a number from 0 to 4294967295 goes here
    "#;
    a_float_too_large_is_explained: r#"autobatch graph 1
graph
%x = fill f32 {value=1e39}
"# => @r#"
    error: the number 1e39 is out of range
     --> model.graph:3:22
      |
    3 | %x = fill f32 {value=1e39}
      |                      ^^^^ a float such as 0.5, -2e-3, inf or 0x7fc00000 goes here
    "#;
    a_number_that_is_none_is_explained: r#"autobatch graph 1
graph
%x = input f32[2] (#[1.0, 2.o])
"# => @r#"
    error: expected a float such as 0.5, -2e-3, inf or 0x7fc00000, found '2.o'
     --> model.graph:3:27
      |
    3 | %x = input f32[2] (#[1.0, 2.o])
      |                           ^^^ not such a number
    "#;
    a_wrong_number_of_bound_numbers_is_explained: r#"autobatch graph 1
graph
%x = input f32[3] (#[1.0, 2.0])
"# => @r#"
    error: f32[3] wants 3 numbers, found 2
     --> model.graph:3:20
      |
    3 | %x = input f32[3] (#[1.0, 2.0])
      |                    ^ 2 numbers begin here
    "#;
    a_string_without_an_end_is_explained: r#"autobatch graph 1
module "tree
"# => @r#"
    error: the string has no end
     --> model.graph:2:8
      |
    2 | module "tree
      |        ^^^^^ it begins here
      = help: close it with '"' on the same line; a line break inside is written \n
    "#;
    an_unknown_escape_is_explained: r#"autobatch graph 1
module "a\qb"
"# => @r#"
    error: unknown escape in a string
     --> model.graph:2:10
      |
    2 | module "a\qb"
      |          ^ it begins here
      = help: the escapes are \\ \" \n \t and \u{2603}
    "#;
    an_unknown_element_type_is_explained: r#"autobatch graph 1
param @w f23[4]
"# => @r#"
    error: unknown element type 'f23'
     --> model.graph:2:10
      |
    2 | param @w f23[4]
      |          ^^^ no such type
      = help: the element types are f32, f16, bf16, i32, u32, bool
    "#;
    an_impossible_shape_is_explained: r#"autobatch graph 1
param @w f32[4,0]
"# => @r#"
    error: extent 1 of a shape is zero; extents start at 1
     --> model.graph:2:13
      |
    2 | param @w f32[4,0]
      |             ^^^^^ this shape
    "#;
    a_table_that_is_no_matrix_is_explained: r#"autobatch graph 1
table @t f32[4]
"# => @r#"
    error: a table has the shape [rows, width], found [4]
     --> model.graph:2:7
      |
    2 | table @t f32[4]
      |       ^^ declared here
    "#;
    an_initialiser_that_does_not_exist_is_explained: r#"autobatch graph 1
param @w f32[4] = glorto(1)
"# => @r#"
    error: unknown initialiser 'glorto'
     --> model.graph:2:19
      |
    2 | param @w f32[4] = glorto(1)
      |                   ^^^^^^ no such initialiser
      = help: did you mean 'glorot'?
    "#;
    an_initialiser_of_the_wrong_size_is_explained: r#"autobatch graph 1
param @w f32[3] = values(1, 2)
"# => @r#"
    error: the shape [3] wants 3 values, found 2
     --> model.graph:2:7
      |
    2 | param @w f32[3] = values(1, 2)
      |       ^^ declared here
    "#;
    declarations_out_of_order_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
param @late f32
"# => @r#"
    error: expected a declaration or 'graph', found 'param'
     --> model.graph:8:1
      |
    8 | param @late f32
      | ^^^^^ unexpected
      = help: the order is: module, sites, parameters and tables, cells, exports, graph
    "#;
    a_sigil_without_a_name_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = exp(% x)
"# => @r#"
    error: a name must follow '%'
     --> model.graph:4:10
      |
    4 | %y = exp(% x)
      |          ^ nothing follows
      = help: names hold letters, digits, '_', '.' and '-', as in %x or %12
    "#;
    a_stray_character_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = exp(%x) § tail
"# => @r#"
    error: expected a statement such as %3 = add(%1, %2), found "§"
     --> model.graph:4:14
      |
    4 | %y = exp(%x) § tail
      |              ^ stray character
      = help: comments begin with ';' or '//'
    "#;
    an_unknown_statement_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
outptu "y" %x
"# => @r#"
    error: expected a statement such as %3 = add(%1, %2), found 'outptu'
     --> model.graph:4:1
      |
    4 | outptu "y" %x
      | ^^^^^^ unexpected
      = help: did you mean 'output'?
    "#;
    an_op_without_a_result_name_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
exp(%x)
"# => @r#"
    error: expected a statement such as %3 = add(%1, %2), found 'exp'
     --> model.graph:4:1
      |
    4 | exp(%x)
      | ^^^ unexpected
      = help: name the result: %x = exp(..)
    "#;
    a_loss_that_is_no_scalar_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
loss "l" %x
"# => @r#"
    error: a loss is a scalar f32, found f32[4]
     --> model.graph:4:10
      |
    4 | loss "l" %x
      |          ^^ this is f32[4]
      = help: reduce it: %l = reduce{fold=sum over=all}(%x)
    "#;
    an_output_name_that_is_taken_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
output "o" %x output "o" %x
"# => @r#"
    error: the output name "o" is taken
     --> model.graph:4:22
      |
    4 | output "o" %x output "o" %x
      |                      ^^^ here again
    "#;
    an_unknown_site_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = exp(%x) !4
"# => @r#"
    error: unknown site !4
     --> model.graph:4:14
      |
    4 | %y = exp(%x) !4
      |              ^^ not in the table of sites
      = help: declare it above: site !0 "src/model.rs" 31:21
    "#;
    sites_out_of_order_is_explained: r#"autobatch graph 1
site !1 "a.rs" 1:1
"# => @r#"
    error: site !0 comes next, found !1
     --> model.graph:2:6
      |
    2 | site !1 "a.rs" 1:1
      |      ^^ out of order
      = help: sites count from !0
    "#;
    bound_numbers_in_a_cell_is_explained: r#"autobatch graph 1
cell @f(%x: f32[4]) {
  %y = pick(%x, #1)
  return %y
}
"# => @r#"
    error: a cell has no bound numbers of its own
     --> model.graph:3:17
      |
    3 |   %y = pick(%x, #1)
      |                 ^ bound here
      = help: take it as a port: cell @f(%i: u32)
    "#;
    an_empty_list_without_a_type_is_explained: r#"autobatch graph 1
graph
%l = list()
"# => @r#"
    error: the element type of an empty list is unknown
     --> model.graph:3:6
      |
    3 | %l = list()
      |      ^^^^ no elements
      = help: write list f32[4] ()
    "#;
    a_list_of_two_types_is_explained: r#"autobatch graph 1
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = input f32[2] (#[1, 2])
%l = list(%x, %y)
"# => @r#"
    error: element 1 must be f32[4] like the first, found f32[2]
      --> model.graph:11:15
       |
    11 | %l = list(%x, %y)
       |               ^^ this is f32[2]
    "#;
    lists_of_two_lengths_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%a = list(%x, %x)
%b = list(%x)
%c = wsum(%a, %b)
"# => @r#"
    error: the lists must be equally long, found 2 and 1 values
     --> model.graph:6:6
      |
    6 | %c = wsum(%a, %b)
      |      ^^^^ over these lists
      = help: give each value its score
    "#;
    a_list_where_a_value_is_taken_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%a = list(%x)
%b = exp(%a)
"# => @r#"
    error: exp: operand 0 must be a value, found list f32[4]
     --> model.graph:5:6
      |
    5 | %b = exp(%a)
      |      ^^^ applied to list f32[4]
      = help: lists are taken by sum, mean, max, wsum, attend and list ports of cells
    "#;
    a_body_without_an_end_is_explained: r#"autobatch graph 1
cell @f(%x: f32) {
  %y = exp(%x)
"# => @r#"
    error: expected an application or 'return', found the end of the text
     --> model.graph:4:1
      |
    4 |
      | ^ the text ends here
    "#;
    a_cell_that_says_noise_without_a_key_is_explained: r#"autobatch graph 1
cell @f(%x: f32) noise { return %x }
"# => @r#"
    error: a cell that draws noise ends its ports with the noise key, two u32
     --> model.graph:2:18
      |
    2 | cell @f(%x: f32) noise { return %x }
      |                  ^^^^^ draws noise
      = help: write (.., %low: u32, %high: u32) noise
    "#;
    several_numbers_where_one_is_bound_is_explained: r#"autobatch graph 1
graph
%x = input f32[4] (#[1, 2, 3, 4])
%y = pick(%x, #[1, 2])
"# => @r#"
    error: only input binds several numbers
     --> model.graph:4:16
      |
    4 | %y = pick(%x, #[1, 2])
      |                ^ one index goes here
      = help: write %x = input f32[2] (#[1.0, 2.0]) and name %x here
    "#;
}
