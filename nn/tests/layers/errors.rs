//! Faults are recorded with the user's line, and no call panics.

use autobatch_ir::module::{Init, ParamDecl};
use autobatch_ir::recipe::ParamRecipe;
use autobatch_ir::{EmitError, Graph, ModuleBuilder, ParamId, Value, Weights};
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Sgd,
};
use autobatch_nn::*;

/// The fault of a module's declaration.
fn declaring<L>(declare: impl FnOnce(&mut ModuleBuilder) -> L) -> EmitError {
    let mut m = ModuleBuilder::new("m");
    let _ = declare(&mut m);
    m.build().expect_err("the declaration is faulty")
}

/// The fault of emitting with a layer.
fn emitting<L>(
    declare: impl FnOnce(&mut ModuleBuilder) -> L,
    emit: impl for<'g> FnOnce(&'g Graph, L),
) -> EmitError {
    let mut m = ModuleBuilder::new("m");
    let layer = declare(&mut m);
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    g.instance(0);
    emit(&g, layer);
    g.check().expect_err("the graph records the fault")
}

#[track_caller]
fn at(error: &EmitError, line: u32) {
    assert!(error.site.file.ends_with("errors.rs"), "{error}");
    assert_eq!(error.site.line, line, "{error}");
}

const NO_VALUES: [Value<'static>; 0] = [];

#[test]
fn heads_of_graph_attention_divide_its_width() {
    let error = declaring(|m| GraphAttention::new(m, "g", 4, 6, 4));
    assert!(
        error.to_string().contains("expected a number of heads that divides the width 6, found 4"),
        "{error}"
    );
    assert!(error.site.file.ends_with("errors.rs"), "{error}");
}

#[test]
fn a_crf_has_one_tag_per_position() {
    let error = emitting(
        |m| Crf::new(m, "crf", 3),
        |g, crf| {
            let _ = crf.loss(g, [g.input(&[0.0; 3])], &[1, 2]);
        },
    );
    assert!(error.to_string().contains("found 1 positions and 2 tags"), "{error}");
}

#[test]
fn experts_exist_and_are_named_once() {
    assert!(
        declaring(|m| Experts::new(m, "e", &[2, 2], Activation::Relu, 0))
            .to_string()
            .contains("at least 1 expert")
    );
    for used in [&[][..], &[2], &[1, 1]] {
        let declare = |m: &mut ModuleBuilder| Experts::new(m, "e", &[2, 2], Activation::Relu, 2);
        let error = emitting(declare, |g, layer| {
            let x = g.input(&[0.0; 2]);
            let _ = layer.sparse(g, x, layer.gates(x), used);
        });
        assert!(error.to_string().contains("expected one or more different experts 0..2"), "{error}");
    }
}

#[test]
fn neighbours_must_exist() {
    let declare = |m: &mut ModuleBuilder| GatedGraph::new(m, "g", 4);
    let error = emitting(declare, |g, layer| {
        let nodes = [1.0, 2.0].map(|x| g.input(&[x; 4]));
        let _ = layer.run(g, &nodes, &[vec![1], vec![2]], 1);
    });
    assert!(error.to_string().contains("node 1 has the neighbour 2, but there are 2 nodes"), "{error}");
    let error = emitting(declare, |g, layer| {
        let _ = layer.run(g, &[g.input(&[1.0; 4])], &[[0], [0]], 1);
    });
    assert!(error.to_string().contains("1 nodes need as many lists of neighbours, found 2"), "{error}");
    assert!(error.site.file.ends_with("errors.rs"), "{error}");
    let error = emitting(
        |m| GatedSum::new(m, "r", 4, 2),
        |g, layer| {
            let _ = layer.on(g, &[g.input(&[1.0; 4])], &[]);
        },
    );
    assert!(error.to_string().contains("1 states need as many inputs, found 0"), "{error}");
}

macro_rules! wrong_use {
    ($($name:ident: $declare:expr, $emit:expr, $message:literal;)*) => {$(
        #[test]
        fn $name() {
            let error = emitting($declare, $emit);
            assert!(error.message.contains($message), "{error}");
            assert!(error.site.file.ends_with("errors.rs"), "the error must name the user's line: {error}");
        }
    )*};
}

#[test]
fn errors_about_unused_rates_and_decays_list_the_parameters() {
    let mut m = ModuleBuilder::new("m");
    let _ = (Linear::new(&mut m, "out", 4, 2), Embedding::new(&mut m, "words", 9, 4));
    let module = m.build().unwrap();
    for (optimizer, expected) in [
        (Sgd::new(0.1).rate(0.5, |param| param.name == "word"), "rate(0.5) applies to no parameter"),
        (Adam::new(0.1).decay_only(|param| param.name == "word"), "decay_only applies to no parameter"),
    ] {
        let error = optimizer.recipe(&module, &optimizer.all(&module)).expect_err("no such parameter");
        at(&error, line!() - 1);
        let message = error.to_string();
        assert!(message.contains(expected) && message.contains("@out.w, @out.b, @words"), "{message}");
    }
    let optimizer = Sgd::new(0.1).rate(0.5, |param| param.name == "words");
    // Frozen parameters may have rates.
    optimizer.recipe(&module, &[]).expect("one parameter has the name");
}

#[test]
fn states_too_large_for_memory_are_an_error() {
    let mut m = ModuleBuilder::new("m");
    m.param("w", [1 << 29], Init::ZEROS);
    let mut module = (*m.build().unwrap()).clone();
    let optimizer = Optimizer::from(Adam::new(0.1));
    let mut recipe = optimizer.recipe(&module, &optimizer.all(&module)).unwrap();
    // 2^48 bytes: more than a process can address, although each state alone would fit.
    let (decl, own) = (module.params[0].clone(), recipe.params[0].clone());
    let all = || 0..1 << 16;
    module.params = all().map(|n| ParamDecl { name: format!("w{n}"), ..decl.clone() }).collect();
    recipe.params = all().map(|n| ParamRecipe { param: ParamId::new(n), ..own.clone() }).collect();
    let mut small = ModuleBuilder::new("small");
    small.param("w", [1], Init::ZEROS);
    let weights = Weights::init(&small.build().unwrap(), 0);
    let error = recipe.states(&weights, &module).expect_err("the states must not fit in memory");
    assert!(error.to_string().contains("281474976710656 bytes, which the system cannot allocate"), "{error}");
}

wrong_use! {
    a_layer_norm_of_one_element_without_eps:
        |_| (), |g, ()| { let _ = g.zeros([3, 1]).layer_norm(0.0); }, "rows of one element have no deviation";
    attention_over_an_empty_list:
        |m| AdditiveAttention::new(m, "a", 2, 2, 2), |g, a| { let _ = a.read(g, g.zeros([2]), &[], NO_VALUES); },
        "there are no values to attend to";
    dot_attention_over_an_empty_list:
        |_| DotAttention::scaled(2), |g, a| { let _ = a.read(g, g.zeros([2]), NO_VALUES, NO_VALUES); },
        "there are no values to attend to";
    a_narrow_input_of_a_linear_layer:
        |m| Linear::new(m, "l", 4, 2), |g, l| { let _ = l.on(g.zeros([3])); }, "the weight takes 4";
    parts_that_do_not_add_up:
        |m| Linear::new(m, "l", 4, 2), |g, l| { let _ = l.on_parts(g, [g.zeros([3])]); }, "the weight takes 4";
    a_narrow_input_of_an_mlp:
        |m| Mlp::new(m, "l", &[4, 2], Activation::Relu), |g, l| { let _ = l.on(g.zeros([3])); }, "f32[4]";
    a_narrow_input_of_an_lstm:
        |m| Lstm::new(m, "l", 4, 2), |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "takes f32[4]";
    a_narrow_last_input_of_an_lstm:
        |m| Lstm::new(m, "l", 4, 2), |g, l| { let _ = l.last(g, [g.zeros([3])]); }, "takes f32[4]";
    a_narrow_pushed_input:
        |m| Gru::new(m, "l", 4, 2), |g, l| { let _ = l.start(g).push(g.zeros([3])); }, "takes f32[4]";
    a_narrow_input_of_a_hoisted_layer:
        |m| Lstm::with_options(m, "l", 4, 2, &LstmOptions { hoist: Hoist::Yes, ..LstmOptions::default() }),
        |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "@l.project takes f32[4]";
    a_narrow_input_of_two_directions:
        |m| BiLstm::new(m, "l", 4, 2), |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "takes f32[4]";
    a_narrow_input_of_a_stack:
        |m| Stacked::<Rnn, 2>::new(m, "l", 4, 2), |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "f32[4]";
    a_narrow_input_pushed_on_a_stack:
        |m| Stacked::<Rnn, 2>::new(m, "l", 4, 2), |g, l| { let _ = l.start(g).push(g.zeros([3])); }, "f32[4]";
    a_first_state_of_another_width:
        |m| Gru::new(m, "l", 4, 2),
        |g, l| { let _ = l.start_from([g.zeros([3])]).push(g.zeros([4])); }, "takes f32[2]";
    a_rate_that_is_not_a_probability:
        |m| Gru::with_options(m, "l", 4, 2, &GruOptions { input_dropout: 1.5, ..GruOptions::default() }),
        |g, l| { let _ = l.start(g); }, "below 1";
    a_tree_node_of_another_width:
        |m| TreeLstm::<2>::new(m, "l", 4), |g, l| { let _ = l.node(g, [[g.zeros([3]); 2]; 2]); }, "f32[4]";
    a_tree_node_with_an_input_it_was_not_declared_with:
        |m| TreeRnn::<2>::new(m, "l", 4),
        |g, l| { let _ = l.node_with(g, g.zeros([4]), [g.zeros([4]); 2]); }, "takes 2 values, found 3";
    a_child_sum_node_of_another_width:
        |m| ChildSumTreeLstm::new(m, "l", 3, 4),
        |g, l| { let _ = l.node(g, g.zeros([3]), &[[g.zeros([3]); 2]]); }, "f32[4]";
    a_matrix_that_is_not_square:
        |m| MvRnn::new(m, "l", 2), |g, l| { let _ = l.leaf(g.zeros([2]), g.zeros([3])); }, "3 elements";
    a_lattice_word_that_ends_before_it_begins:
        |m| LatticeLstm::new(m, "l", 3, 2, 4),
        |g, l| {
            let word = LatticeWord { first: 1, last: 1, x: g.zeros([2]) };
            let _ = l.run(g, &[g.zeros([3]); 2], &[word]);
        }, "a word from 1 to 1 does not fit 2 characters";
    a_lattice_word_beyond_the_sentence:
        |m| LatticeLstm::new(m, "l", 3, 2, 4),
        |g, l| {
            let word = LatticeWord { first: 0, last: 2, x: g.zeros([2]) };
            let _ = l.run(g, &[g.zeros([3]); 2], &[word]);
        }, "a word from 0 to 2";
    keys_of_another_width:
        |m| AdditiveAttention::new(m, "l", 3, 2, 4), |g, l| { let _ = l.keys(g, [g.zeros([3])]); }, "f32[2]";
    more_values_than_keys:
        |m| AdditiveAttention::new(m, "l", 3, 2, 4),
        |g, l| {
            let keys = l.keys(g, [g.zeros([2])]);
            let _ = l.read(g, g.zeros([3]), &keys, [g.zeros([4]); 2]);
        }, "equal lengths, found 1 and 2";
    heads_over_an_empty_list:
        |m| MultiHeadAttention::new(m, "l", 4, 2),
        |g, l| { let _ = l.read(g.zeros([4]), &l.memory(g, NO_VALUES, NO_VALUES)); },
        "there are no values to attend to";
    heads_over_more_values_than_keys:
        |m| MultiHeadAttention::new(m, "l", 4, 2),
        |g, l| { let x = g.zeros([4]); let _ = l.read(x, &l.memory(g, [x], [x, x])); },
        "1 keys need 1 values, found 2";
    heads_over_a_narrow_key:
        |m| MultiHeadAttention::new(m, "l", 4, 2), |g, l| { let _ = l.memory(g, [g.zeros([3])], [g.zeros([4])]); },
        "port 0 of @l.entry takes f32[4]";
    a_narrow_query:
        |m| MultiHeadAttention::new(m, "l", 4, 2),
        |g, l| { let x = g.zeros([4]); let _ = l.read(g.zeros([3]), &l.memory(g, [x], [x])); }, "takes f32[4]";
    a_narrow_position_of_attention:
        |m| MultiHeadAttention::new(m, "l", 4, 2), |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "takes f32[4]";
    another_layers_memory:
        |m| (MultiHeadAttention::new(m, "l", 4, 2), MultiHeadAttention::new(m, "k", 4, 2)),
        |g, (l, k)| { let x = g.zeros([4]); let _ = l.read(x, &k.memory(g, [x], [x])); }, "belongs to another layer";
    keys_of_another_width_in_self_attention:
        |m| MultiHeadAttention::with_options(m, "l", 4, 2, &MultiHeadOptions { key: Some(3), ..Default::default() }),
        |g, l| { let _ = l.run_causal(g, [g.zeros([4])]); }, "keys and values of the width of queries";
    a_narrow_position_of_an_encoder:
        |m| TransformerEncoder::new(m, "l", 4, 2, 2), |g, l| { let _ = l.run(g, [g.zeros([3])]); }, "takes f32[4]";
    a_narrow_position_of_a_decoder:
        |m| TransformerDecoder::new(m, "l", 4, 2, 2),
        |g, l| { let _ = l.run(g, [g.zeros([3])], &l.memory(g, [g.zeros([4])])); }, "takes f32[4]";
    a_narrow_position_in_the_memory_of_a_decoder:
        |m| TransformerDecoder::new(m, "l", 4, 2, 2),
        |g, l| { let _ = l.run(g, [g.zeros([4])], &l.memory(g, [g.zeros([3])])); }, "takes f32[4]";
    a_decoder_of_an_empty_sequence:
        |m| TransformerDecoder::new(m, "l", 4, 2, 2),
        |g, l| { let none: [Value<'_>; 0] = []; let _ = l.run(g, [g.zeros([4])], &l.memory(g, none)); },
        "no values to attend to";
    another_decoders_memory:
        |m| (TransformerDecoder::new(m, "l", 4, 2, 2), TransformerDecoder::new(m, "k", 4, 2, 2)),
        |g, (l, k)| { let x = g.zeros([4]); let _ = l.run(g, [x], &k.memory(g, [x])); }, "belongs to another decoder";
    a_word_instead_of_a_vector:
        |m| ChildSumTreeLstm::new(m, "l", 3, 4), |g, l| { let _ = l.node(g, 7, &[]); }, "takes f32[3]";
    a_vector_instead_of_a_word:
        |m| {
            let words = Embedding::new(m, "w", 9, 3);
            ChildSumTreeLstm::of_words(m, "l", words, 4, Hoist::Yes, &Init::ZEROS)
        },
        |g, l| { let _ = l.node(g, g.zeros([3]), &[]); }, "takes u32";
    a_position_beyond_the_learned_ones:
        |m| Positions::learned(m, "l", 2, 4), |g, l| { let _ = l.add(g, [g.zeros([4]); 3]); },
        "there are 2 positions, found position 2";
    characters_of_another_width:
        |m| CharCnn::new(m, "l", 3, 3, 4, Activation::Relu), |g, l| { let _ = l.on(g, [g.zeros([2])]); }, "f32[3]";
    labels_for_other_logits:
        |_| (), |g, ()| { let _ = losses::sequence_cross_entropy(g, [g.zeros([2])], [0, 1]); },
        "1 logits need 1 labels, found 2";
    weights_for_other_classes:
        |_| (), |g, ()| { let _ = losses::weighted_cross_entropy(g.zeros([2]), 1, &[1.0]); },
        "2 logits need 2 weights, found 1";
}

#[test]
fn a_wrong_size_reports_its_line() {
    let mut line = 0;
    let error = emitting(
        |m| Stacked::<BiLstm, 2>::new(m, "l", 4, 2),
        |g, layer| {
            let x = g.zeros([5]);
            line = line!() + 1;
            let _ = layer.run(g, [x]);
        },
    );
    at(&error, line);
}

/// A declaration that fails on the line of the macro call, and that line.
macro_rules! on_this_line {
    (|$m:ident| $declaration:expr) => {
        |$m: &mut ModuleBuilder| {
            let _ = $declaration;
            line!()
        }
    };
}

#[test]
fn declarations_report_their_line() {
    const BAD: Activation = Activation::LeakyRelu(f32::NAN);
    let rnn = || RnnOptions { activation: BAD, ..Default::default() };
    let tree = || TreeRnnOptions { activation: BAD, ..Default::default() };
    let dropped = || TransformerOptions { dropout: 1.0, ..Default::default() };
    let faulty: [&dyn Fn(&mut ModuleBuilder) -> u32; 24] = [
        &on_this_line!(|m| [Linear::new(m, "b", 2, 2), Linear::new(m, "b", 2, 2)]),
        &on_this_line!(|m| Embedding::new(m, "x", 0, 2)),
        &on_this_line!(|m| Mlp::new(m, "x", &[3], Activation::Relu)),
        &on_this_line!(|m| Mlp::new(m, "x", &[3, 0], Activation::Relu)),
        &on_this_line!(|m| Lstm::new(m, "x", 0, 0)),
        &on_this_line!(|m| Stacked::<BiLstm, 2>::new(m, "no name", 2, 2)),
        &on_this_line!(|m| Gru::new(m, "x", 2, usize::MAX)),
        &on_this_line!(|m| TreeLstm::<2>::new(m, "x", usize::MAX / 2)),
        &on_this_line!(|m| TreeLstm::<5>::new(m, "x", 2)),
        &on_this_line!(|m| CharCnn::new(m, "x", 2, 10, 2, Activation::Relu)),
        &on_this_line!(|m| ChildSumTreeLstm::new(m, "x", 2, 0)),
        &on_this_line!(|m| MvRnn::new(m, "x", 1 << 40)),
        &on_this_line!(|m| Mlp::with_options(m, "x", &[3, 4], Activation::Relu, 1.0)),
        &on_this_line!(|m| Mlp::new(m, "x", &[3, 4], Activation::Elu(f32::NAN))),
        &on_this_line!(|m| CharCnn::new(m, "x", 2, 3, 2, Activation::Elu(f32::INFINITY))),
        &on_this_line!(|m| Rnn::with_options(m, "x", 2, 2, &rnn())),
        &on_this_line!(|m| Mlp::new(m, "x", &[3, 4], Activation::Clamp(1.0, -1.0))),
        &on_this_line!(|m| GroupNorm::new(m, "x", 2, 5)),
        &on_this_line!(|m| MultiHeadAttention::new(m, "x", 6, 4)),
        &on_this_line!(|m| TransformerEncoder::new(m, "x", 0, 0, 2)),
        &on_this_line!(|m| TransformerEncoderLayer::with_options(m, "x", 4, 2, &dropped())),
        &on_this_line!(|m| TransformerDecoder::new(m, "x", 5, 2, 2)),
        &on_this_line!(|m| TransformerDecoder::new(m, "x", 4, 2, 0)),
        &on_this_line!(|m| TreeRnn::<2>::with_options(m, "x", 2, &tree())),
    ];
    for declare in faulty {
        let mut line = 0;
        let error = declaring(|m| line = declare(m));
        at(&error, line);
    }
}

#[test]
fn hostile_sizes_allocate_nothing() {
    let lstm = LstmOptions { forget_bias: 1.0, peepholes: true, layer_norm: true, ..LstmOptions::default() };
    let tree = TreeLstmOptions { forget_bias: 1.0, input: Some(usize::MAX), ..TreeLstmOptions::default() };
    for size in [usize::MAX, usize::MAX / 4, 1 << 40, 1 << 28, u32::MAX as usize] {
        let _ = declaring(|m| Lstm::with_options(m, "x", size, size, &lstm));
        let _ = declaring(|m| TreeLstm::<2>::with_options(m, "x", size, &tree));
        let _ = declaring(|m| CharCnn::new(m, "x", size, size, size, Activation::Relu));
        let _ = declaring(|m| LatticeLstm::new(m, "x", size, size, size));
        let _ = declaring(|m| AdditiveAttention::new(m, "x", size, size, size));
        let _ = declaring(|m| MultiHeadAttention::new(m, "x", size, size));
        let _ = declaring(|m| TransformerEncoder::new(m, "x", size, 1, 2));
        let _ = declaring(|m| TransformerDecoder::new(m, "x", size, 1, 2));
        let _ = declaring(|m| TransformerEncoder::new(m, "x", 4, 1, size));
        let _ = declaring(|m| Positions::learned(m, "x", size, size));
    }
}

#[test]
fn handles_of_a_faulty_module_are_harmless() {
    let mut m = ModuleBuilder::new("m");
    let layers = (Lstm::new(&mut m, "x", 0, 2), TreeLstm::<6>::new(&mut m, "t", 2));
    let other = ModuleBuilder::new("other").build().unwrap();
    let g = Graph::new(&other);
    let _ = layers.0.run(&g, [g.zeros([2])]);
    let _ = layers.1.node(&g, [[g.zeros([2]); 2]; 6]);
    assert!(g.check().is_err());
}

#[test]
fn optimisers_reject_numbers_out_of_range_by_name() {
    let mut m = ModuleBuilder::new("m");
    m.param("w", [2, 2], Init::Glorot(1.0));
    let module = m.build().unwrap();
    let cases: [(Optimizer, &str); 16] = [
        (Sgd::new(f64::NAN).into(), "learning rate NaN of sgd"),
        (Sgd::new(1e300).into(), "learning rate 1e300 of sgd"),
        (Momentum::new(0.1, f64::NAN).into(), "momentum NaN of momentum"),
        (Momentum::new(0.1, 2.0).into(), "momentum 2.0 of momentum"),
        (Nesterov::new(0.1, 1.0).into(), "momentum 1.0 of nesterov"),
        (Adam::new(0.1).betas(-1.0, 0.9).into(), "betas.0 -1.0 of adam"),
        (AdamW::new(0.1).betas(0.9, 2.0).into(), "betas.1 2.0 of adamw"),
        (AmsGrad::new(0.1).eps(f64::NAN).into(), "eps NaN of amsgrad"),
        (Adam::new(0.1).eps(-1.0).into(), "eps -1.0 of adam"),
        (Adagrad::new(0.1).learning_rate_decay(f64::INFINITY).into(), "learning_rate_decay inf of adagrad"),
        (Adagrad::new(0.1).first_sum(-1.0).into(), "first_sum -1.0 of adagrad"),
        (Adadelta::new(1.0).rho(1.5).into(), "rho 1.5 of adadelta"),
        (Adadelta::new(1.0).eps(f64::NAN).into(), "eps NaN of adadelta"),
        (RmsProp::new(0.1).alpha(f64::NAN).into(), "alpha NaN of rmsprop"),
        (RmsProp::new(0.1).momentum(-0.5).into(), "momentum -0.5 of rmsprop"),
        (RmsProp::new(0.1).eps(1e300).into(), "eps 1e300 of rmsprop"),
    ];
    for (optimizer, expected) in cases {
        let error = optimizer.recipe(&module, &optimizer.all(&module)).unwrap_err().to_string();
        assert!(error.contains(&format!("{expected} is not a valid argument")), "{expected}: {error}");
        assert!(error.contains("give a "), "{error}");
    }
    let sound: [Optimizer; 3] = [
        Momentum::new(0.0, 0.0).into(),
        Adam::new(1e-3).betas(0.0, 0.999).eps(0.0).into(),
        RmsProp::new(0.1).alpha(0.0).into(),
    ];
    for optimizer in sound {
        optimizer.recipe(&module, &optimizer.all(&module)).unwrap();
    }
}

#[test]
fn cutoffs_of_an_adaptive_softmax_must_ascend() {
    for wrong in [&[][..], &[0, 5], &[10, 10]] {
        let error = declaring(|m| AdaptiveSoftmax::new(m, "words", 4, wrong, 4));
        at(&error, line!() - 1);
        assert!(error.to_string().contains("must ascend from 1"), "{error}");
    }
}
