//! Errors of plan texts, as they are displayed.

use autobatch_ir::plan::Plan;

const TEXT: &str = "autobatch plan 5
module \"m\" structure 0x1 mode infer
store @w param f32[4,6]
bind words 3 floats 0
slab s0 value {h: f32[6], c: f32[6]} x3
kernel k0 @f (%0: f32[4]) [@0: f32[4,6]] {
  temp %1: f32[6], %2: f32[6]
  prod %1 = 0 + %0 . @0[0..4]
  map 6 {
    t0 = tanh %1
    t1 = mul t0, 2.0 -> %2
  }
  return %2, %1
}
wave 0  f0 k0[@w] x3 -> s0.h[0..3] s0.c[0..3] <- x[0..12 by 4] = n0..n3
output \"h\" s0.h[0]
certificate batches 1 bound 1 | rows copied 0 gathered 0 direct 3 | slabs 144 bytes
";

/// The error of the text with `from` changed to `to`, as it is shown.
fn error(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    match Plan::from_text(TEXT.replacen(from, to, 1)) {
        Ok(_) => panic!("{to} was taken"),
        Err(error) => error.in_file("m.plan").to_string(),
    }
}

#[test]
fn the_text_itself_is_fine() {
    assert!(Plan::from_text(TEXT).is_ok());
}

#[test]
fn an_error_shows_the_line_and_says_what_to_do() {
    assert_eq!(
        error("k0[@w]", "k0[@v]"),
        "error: unknown store @v
  --> m.plan:15:15
   |
15 | wave 0  f0 k0[@v] x3 -> s0.h[0..3] s0.c[0..3] <- x[0..12 by 4] = n0..n3
   |               ^^ not declared above
   = help: declare it: store @v param f32[..]"
    );
    assert_eq!(
        error("s0.h[0..3]", "s0.h[0..2]"),
        "error: the step has 3 lanes, found 2
  --> m.plan:15:29
   |
15 | wave 0  f0 k0[@w] x3 -> s0.h[0..2] s0.c[0..3] <- x[0..12 by 4] = n0..n3
   |                             ^^^^^^ one for each lane goes here"
    );
}

#[test]
fn each_mistake_is_named() {
    for (from, to, said) in [
        ("autobatch plan 5", "plan 1", "begin the text with 'autobatch plan 5'"),
        ("plan 5", "plan 2", "expected version 5, found 2"),
        ("plan 5", "plan 2", "plan the graph again with this version of autobatch"),
        ("autobatch plan 5", "autobatch graph 2", "this is a graph, not a plan"),
        ("mode infer", "mode inferr", "the modes are infer, train and grow"),
        ("0x1", "1", "the structure is no hash of 128 bits"),
        ("param f32", "parameter f32", "expected param, table, grad or state, found 'parameter'"),
        ("bind words 3 floats 0\n", "", "expected 'bind'"),
        ("c: f32[6]", "h: f32[6]", "s0 has two fields called h"),
        ("slab s0", "slab s1", "expected 's0', found 's1'"),
        ("temp %1", "temp %2", "expected '%1', found '%2'"),
        ("  prod", "  produce", "no stage"),
        ("tanh %1", "tahn %1", "did you mean 'tanh'?"),
        ("tanh %1", "softmax %1", "softmax is not elementwise"),
        ("mul t0", "mul t1", "t1 is not computed yet"),
        ("mul t0, 2.0", "mul t0", "expected ',', found '->'"),
        ("%0 . @0[0..4]", "%0 . @0[0..3]", "the operand meets 4 rows of @0, not 0..3"),
        ("%0 . @0[0..4]", "%0 . @3[0..4]", "the kernel has no parameter port @3"),
        ("return %2", "return %7", "the kernel has no register %7"),
        ("f0 k0", "f0 k4", "there is no kernel k4"),
        ("wave 0", "wave 1", "expected wave 0, found wave 1"),
        ("s0.h[0..3] ", "s9.h[0..3] ", "there is no slab s9"),
        ("s0.h[0..3] ", "s0.k[0..3] ", "its fields are h, c"),
        ("s0.h[0..3] ", "s0.h[0..6 by 2] ", "name the rows one by one"),
        ("x[0..12 by 4]", "x{0..4000000000}", "hold too many numbers"),
        ("x[0..12 by 4]", "seg s0.h[0|1]", "'|' stands between the lists of lanes"),
        ("n0..n3", "n3..n0", "3..9 is 3 4 5 6 7 8"),
        ("certificate", "", "expected 'certificate'"),
        ("144 bytes", "144 bytes wave 1", "the certificate is the last line of a plan"),
    ] {
        let shown = error(from, to);
        assert!(shown.contains(said), "{to:?} gives\n{shown}\nwhich does not say {said:?}");
    }
}
