//! Messages about versions, strings, numbers, types and stray characters.

use super::{HEAD, X};

super::shows! {
    a_text_without_its_version_line_is_explained: "graph", "%x = fill f32 {value=1}" => @r#"
    error: the version line is missing
     --> model.graph:1:1
      |
    1 | graph
      | ^^^^^ the text begins here
      = help: begin the text with 'autobatch graph 2'
    "#;
    an_empty_text_is_explained: => @r#"
    error: the version line is missing
     --> model.graph:1:1
      |
    1 |
      | ^ the text begins here
      = help: begin the text with 'autobatch graph 2'
    "#;
    a_newer_version_is_explained: "autobatch graph 3", "graph" => @r#"
    error: the text has format version 3, this autobatch reads 2
     --> model.graph:1:17
      |
    1 | autobatch graph 3
      |                 ^ the version of the text
      = help: update autobatch
    "#;
    an_older_version_is_explained: "autobatch graph 1", "graph" => @r#"
    error: the text has format version 1, this autobatch reads 2
     --> model.graph:1:17
      |
    1 | autobatch graph 1
      |                 ^ the version of the text
      = help: remove every '{dense}' after 'lookup' and write 'autobatch graph 2' in the first line
    "#;
    a_plan_is_explained: "autobatch plan 5" => @r#"
    error: this is a plan, not a graph
     --> model.graph:1:11
      |
    1 | autobatch plan 5
      |           ^^^^ the kind of the text
      = help: plans are read by the plan reader
    "#;
    a_number_too_large_is_explained: HEAD, X, "%y = pick(%x, #4294967296)" => @r#"
    error: the number 4294967296 is out of range
     --> model.graph:4:16
      |
    4 | %y = pick(%x, #4294967296)
      |                ^^^^^^^^^^ a number from 0 to 4294967295 goes here
    "#;
    a_float_too_large_is_explained: HEAD, "graph", "%x = fill f32 {value=1e39}" => @r#"
    error: the number 1e39 is out of range
     --> model.graph:3:22
      |
    3 | %x = fill f32 {value=1e39}
      |                      ^^^^ a float such as 0.5, -2e-3, inf or 0x7fc00000 goes here
    "#;
    a_malformed_number_is_explained: HEAD, "graph", "%x = input f32[2] (#[1.0, 2.o])" => @r#"
    error: expected a float such as 0.5, -2e-3, inf or 0x7fc00000, found '2.o'
     --> model.graph:3:27
      |
    3 | %x = input f32[2] (#[1.0, 2.o])
      |                           ^^^ not such a number
    "#;
    a_string_without_an_end_is_explained: HEAD, r#"module "tree"# => @r#"
    error: the string has no end
     --> model.graph:2:8
      |
    2 | module "tree
      |        ^^^^^ it begins here
      = help: close it with '"' on the same line; a line break inside is written \n
    "#;
    an_unknown_escape_is_explained: HEAD, r#"module "a\qb""# => @r#"
    error: unknown escape in a string
     --> model.graph:2:10
      |
    2 | module "a\qb"
      |          ^ it begins here
      = help: the escapes are \\ \" \n \t and \u{2603}
    "#;
    an_unknown_element_type_is_explained: HEAD, "param @w f23[4]" => @r#"
    error: unknown element type 'f23'
     --> model.graph:2:10
      |
    2 | param @w f23[4]
      |          ^^^ no such type
      = help: the element types are f32, f16, bf16, i32, u32, bool
    "#;
    an_impossible_shape_is_explained: HEAD, "param @w f32[4,0]" => @r#"
    error: extent 1 of a shape is zero; extents start at 1
     --> model.graph:2:13
      |
    2 | param @w f32[4,0]
      |             ^^^^^ this shape
    "#;
    a_sigil_without_a_name_is_explained: HEAD, X, "%y = exp(% x)" => @r#"
    error: a name must follow '%'
     --> model.graph:4:10
      |
    4 | %y = exp(% x)
      |          ^ nothing follows
      = help: names hold letters, digits, '_', '.' and '-', as in %x or %12
    "#;
    a_stray_character_is_explained: HEAD, X, "%y = exp(%x) § tail" => @r#"
    error: expected a statement such as %3 = add(%1, %2), found "§"
     --> model.graph:4:14
      |
    4 | %y = exp(%x) § tail
      |              ^ stray character
      = help: comments begin with ';' or '//'
    "#;
}
