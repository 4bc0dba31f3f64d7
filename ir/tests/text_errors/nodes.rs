//! Messages about ops, attributes, names and types.

use super::{HEAD, WEIGHTS, X};

super::shows! {
    an_unknown_op_is_explained: HEAD, X, "%y = sigmod(%x)" => @r#"
    error: unknown op 'sigmod'
     --> model.graph:4:6
      |
    4 | %y = sigmod(%x)
      |      ^^^^^^ no op has this name
      = help: did you mean 'sigmoid'?
    "#;
    an_unknown_attribute_is_explained: HEAD, X, "%y = slice{axis=0 strt=1 len=2}(%x)" => @r#"
    error: slice has no attribute 'strt'
     --> model.graph:4:19
      |
    4 | %y = slice{axis=0 strt=1 len=2}(%x)
      |                   ^^^^ unknown attribute
      = help: did you mean 'start'?
    "#;
    a_missing_attribute_is_explained: HEAD, X, "%y = slice{axis=0 len=2}(%x)" => @r#"
    error: slice needs the attribute 'start'
     --> model.graph:4:6
      |
    4 | %y = slice{axis=0 len=2}(%x)
      |      ^^^^^ it is missing
      = help: write slice{axis=.. start=.. len=..}
    "#;
    an_attribute_given_twice_is_explained: HEAD, X, "%y = elu{alpha=1 alpha=2}(%x)" => @r#"
    error: the attribute 'alpha' is given twice
     --> model.graph:4:18
      |
    4 | %y = elu{alpha=1 alpha=2}(%x)
      |                  ^^^^^ here again
    "#;
    a_word_outside_a_closed_set_is_explained: HEAD, X, "%y = reduce{fold=prod over=last}(%x)" => @r#"
    error: expected one of sum, mean, max, min, found 'prod'
     --> model.graph:4:18
      |
    4 | %y = reduce{fold=prod over=last}(%x)
      |                  ^^^^ unexpected
    "#;
    an_undefined_value_is_explained: HEAD, X, "%long_name = exp(%x)", "%z = exp(%lung_name)" => @r#"
    error: %lung_name is not defined
     --> model.graph:5:10
      |
    5 | %z = exp(%lung_name)
      |          ^^^^^^^^^^ used here
      = help: did you mean %long_name?
    "#;
    a_value_used_before_it_is_defined_is_explained:
        HEAD, "graph", "%1 = exp(%0)", "%0 = fill f32 {value=1}" => @r#"
    error: %0 is not defined
     --> model.graph:3:10
      |
    3 | %1 = exp(%0)
      |          ^^ used here
      = help: a node can read only values of the lines above it
    "#;
    a_name_defined_twice_is_explained: HEAD, X, "%y = exp(%x)", "%y = log(%x)" => @r#"
    error: the name %y is taken
     --> model.graph:5:1
      |
    5 | %y = log(%x)
      | ^^ defined again
      = help: choose another name; a value is defined once
    "#;
    operands_of_the_wrong_type_are_explained:
        HEAD, WEIGHTS, X, "%y = affine[@w, @b](%x)", "%z = add(%x, %y)" => @r#"
    error: add: operands must have one shape, found f32[4] and f32[2]
     --> model.graph:7:6
      |
    7 | %z = add(%x, %y)
      |      ^^^ applied to f32[4], f32[2]
      = help: repeat the smaller with .broadcast(shape); scalars need no help
    "#;
    a_wrong_number_of_operands_is_explained: HEAD, X, "%y = add(%x)" => @r#"
    error: add: expected 2 operands, found 1
     --> model.graph:4:6
      |
    4 | %y = add(%x)
      |      ^^^ applied to f32[4]
    "#;
    a_wrong_number_of_results_is_explained: HEAD, X, "%a, %b, %c = split{axis=0 parts=2}(%x)" => @r#"
    error: this node has 2 results, 3 are named
     --> model.graph:4:14
      |
    4 | %a, %b, %c = split{axis=0 parts=2}(%x)
      |              ^^^^^ name each result
      = help: write %a, %b = .. for two results
    "#;
    a_wrong_annotation_is_explained: HEAD, X, "%y: f32[5] = exp(%x)" => @r#"
    error: %y is f32[4], not f32[5]
     --> model.graph:4:1
      |
    4 | %y: f32[5] = exp(%x)
      | ^^ its type is f32[4]
      = help: correct the type, or leave it out: types follow from the operands
    "#;
    a_wrong_number_of_bindings_is_explained:
        HEAD, "graph", "%x = input f32[3] (#[1.0, 2.0])" => @r#"
    error: f32[3] needs 3 numbers, found 2
     --> model.graph:3:20
      |
    3 | %x = input f32[3] (#[1.0, 2.0])
      |                    ^ 2 numbers begin here
    "#;
    several_bindings_in_an_index_operand_are_explained: HEAD, X, "%y = pick(%x, #[1, 2])" => @r#"
    error: only 'input' binds several numbers
     --> model.graph:4:16
      |
    4 | %y = pick(%x, #[1, 2])
      |                ^ one index goes here
      = help: write %x = input f32[2] (#[1.0, 2.0]) and name %x here
    "#;
}
