//! Migrating from TorchFold, DyNet, MXNet Fold and PyTorch, side by side.
//!
//! `cargo test --doc` runs every Rust listing of this page.
//!
//! # What is the same everywhere
//!
//! The model is a function of one instance. There is no minibatch axis, so the model does not stack, pad, mask, sort
//! or index. Ops need no batching rules: the planner batches nodes of equal signature.
//!
//! | there | here |
//! |---|---|
//! | a `Fold`, `pool` or computation graph per minibatch | [`Session::graph`](crate::Session::graph); [`Graph::clear`](crate::prelude::Graph::clear) keeps its memory |
//! | an op by name and arguments | [`Graph::call`](crate::prelude::Graph::call) of a cell, methods and operators of [`Value`](crate::prelude::Value) |
//! | numbers as arguments | `g.call(leaf, 17)`, `g.call(mix, (x, 3u32))` |
//! | `print(fold)` | [`Graph::summary`](crate::prelude::Graph::summary) |
//! | "do not batch this argument" | no annotation, or [`Value::shared`](crate::prelude::Value::shared), which is checked |
//! | "do not batch this" | [`Value::alone`](crate::prelude::Value::alone) |
//! | compute a value at once, to inspect it | [`Session::eager`](crate::Session::eager) |
//! | forward, emit more, forward again | [`Session::growing`](crate::Session::growing): each run plans and executes only new nodes |
//! | control flow that depends on values (fibers) | [`Session::tasks`](crate::Session::tasks), [`Trainer::step_tasks`](crate::Trainer::step_tasks) |
//! | minibatch and batch size in the training loop | [`Trainer::step`](crate::Trainer::step) takes the instances, [`Trainer::pass`](crate::Trainer::pass) iterates over minibatches |
//! | a scheduler of the learning rate | [`Optimize::schedule`](crate::prelude::Optimize::schedule), [`Trainer::set_schedule`](crate::Trainer::set_schedule) |
//! | `requires_grad_(False)`, then `True` | [`Trainer::freeze`](crate::Trainer::freeze), [`Trainer::unfreeze`](crate::Trainer::unfreeze); by pattern [`Trainer::train_only`](crate::Trainer::train_only) |
//! | detection of anomalies (NaN) | [`Session::set_watch`](crate::Session::set_watch), [`Eager::first_not_finite`](crate::Eager::first_not_finite) |
//! | evaluation and training mode | a session evaluates, [`Trainer::step`](crate::Trainer::step) trains, [`Trainer::evaluate`](crate::Trainer::evaluate) evaluates |
//!
//! # TorchFold: a tree in three lines
//!
//! In TorchFold a recursion over a tree calls `fold.add("leaf", word)` and `fold.add("children", l, r).split(2)`, and
//! `fold.apply(model, [nodes])` runs the methods of `model` on stacked tensors. In autobatch the methods are cells, which
//! are traced once:
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Embedding, TreeLstm};
//!
//! enum Tree { Leaf(u32), Node(Box<[Tree; 2]>) }
//!
//! struct Spinn { words: Embedding, node: TreeLstm }
//!
//! impl Spinn {
//!     fn encode<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
//!         match tree {
//!             Tree::Leaf(word) => self.node.leaf(self.words.look(g, *word)),         // fold.add('leaf', word)
//!             Tree::Node(kids) => {
//!                 let [l, r] = [&kids[0], &kids[1]].map(|kid| self.encode(g, kid));
//!                 self.node.node(g, [l, r])                                           // fold.add('children', l, r)
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("spinn");
//! let model = Spinn { words: Embedding::new(&mut m, "words", 100, 8), node: TreeLstm::new(&mut m, "node", 8) };
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//! let node = |l, r| Tree::Node(Box::new([l, r]));
//! let trees = [Tree::Leaf(3), node(Tree::Leaf(1), node(Tree::Leaf(4), Tree::Leaf(1)))];
//!
//! let g = session.graph();                                                            // fold = Fold()
//! let roots: Vec<Value> = trees.iter().map(|tree| model.encode(&g, tree)[0]).collect();
//! let run = session.run(&g, &roots)?;                                                 // fold.apply(model, [roots])
//! let (matrix, [rows, width]) = run.stack(&roots)?;
//! assert_eq!((matrix.len(), rows, width), (16, 2, 8));
//! # Ok(())
//! # }
//! ```
//!
//! # DyNet: expressions, and `value()`
//!
//! Expressions are values. [`Session::value`](crate::Session::value) executes exactly what one value needs.
//! [`Session::run`](crate::Session::run) takes several values and plans them together, in any order.
//! `--dynet-autobatch 0` is `AUTOBATCH_POLICY=none`. Memory needs no preset;
//! [`SessionOptions::limits`](crate::SessionOptions::limits) bounds it.
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Embedding, Linear, Lstm};
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("acceptor");
//! let words = Embedding::new(&mut m, "words", 50, 8);                                 // add_lookup_parameters
//! let lstm = Lstm::new(&mut m, "lstm", 8, 16);                                        // LSTMBuilder
//! let out = Linear::new(&mut m, "out", 16, 2);
//! let mut trainer = Trainer::new(m.build()?, Adam::new(0.01))?;
//!
//! let sentences = [(vec![3, 5, 7], 0), (vec![4], 1), (vec![9, 9], 0)];
//! let mut losses = Vec::new();
//! for _ in 0..10 {
//!     let step = trainer.step(&sentences, |g, (sentence, label)| {
//!         let mut state = lstm.start(g);                                              // initial_state()
//!         for &word in sentence {
//!             state = state.push(words.look(g, word));                                // add_input(x)
//!         }
//!         out.on(state.h()).cross_entropy(*label)                                     // pickneglogsoftmax
//!     })?;
//!     losses.push(step.loss);
//! }
//! assert!(losses[9] < losses[0]);
//! # Ok(())
//! # }
//! ```
//!
//! If the next node depends on a value, a DyNet program calls `value()` in the loop of each instance, and loses all
//! batching at that line. In autobatch the instance is an `async` function that awaits the value. All instances run until
//! each one awaits, and one plan computes their new nodes (`cargo run --release --example generate`):
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Embedding, Linear, Lstm};
//!
//! struct Speaker { words: Embedding, lstm: Lstm, next: Linear }
//!
//! impl Speaker {
//!     /// Generates at most ten words; word 0 ends a sentence.
//!     async fn speak(&self, g: &Graph, first: u32) -> autobatch::Result<Vec<u32>> {
//!         let mut said = vec![first];
//!         let mut state = self.lstm.start(g);
//!         while said.len() < 10 && said.last() != Some(&0) {
//!             state = state.push(self.words.look(g, said[said.len() - 1]));
//!             said.push(self.next.on(state.h()).argmax().index().await?);             // all instances wait here
//!         }
//!         Ok(said)
//!     }
//! }
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("speaker");
//! let words = Embedding::new(&mut m, "words", 5, 8);
//! let speaker = Speaker { words, lstm: Lstm::new(&mut m, "lstm", 8, 8), next: Linear::new(&mut m, "next", 8, 5) };
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//! let g = session.graph();
//! let speeches = session.tasks(&g, (0..5).map(|first| speaker.speak(&g, first)))?;
//! assert_eq!(speeches[0], [0]);
//! # Ok(())
//! # }
//! ```
//!
//! # MXNet Fold: a recurrence over a padded array
//!
//! `fold_unroll` takes a cell, an array of layout `TNC` and lengths. Here [`Sequences`](crate::nn::Sequences) drops the
//! padding, and [`unroll`](crate::nn::unroll) takes any cell:
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Sequences, unroll};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut m = ModuleBuilder::new("recurrence");
//! let (w, b) = (m.param("w", [6, 4], Init::Glorot(1.0)), m.param("b", [4], Init::ZEROS));
//! let cell = m.cell("step", [f32([2]), f32([4])], |g, [x, h]| [g.affine([x, h], w, Some(b)).tanh()]);
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//!
//! let (padded, lengths) = ([0.5; 3 * 2 * 2], [2, 3]);
//! let sequences = Sequences::from_tnc(&padded, [3, 2, 2], &lengths)?;
//! let last = session.predict(0..sequences.len(), |g, number| {
//!     let [h] = unroll(g, cell, [g.zeros([4])], sequences.inputs(g, number)).pop().expect("no sequence is empty");
//!     h
//! })?;
//! assert_eq!((last.len(), last[0].len()), (2, 4));
//! # Ok(())
//! # }
//! ```
//!
//! # PyTorch: packed sequences
//!
//! Sorting, padding, packing and unsorting have no counterpart: outputs return in the order of the requested values.
//! [`Packed`](crate::nn::Packed) exists for comparison. Its batch sizes equal those of the plan:
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Rnn, Sequences};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut m = ModuleBuilder::new("packed");
//! let rnn = Rnn::new(&mut m, "rnn", 1, 4);
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//! let (padded, lengths) = ([1.0; 5 * 2], [3, 5]);
//! let sequences = Sequences::from_ntc(&padded, [2, 5, 1], &lengths)?;
//! session.predict(0..2, |g, number| rnn.last(g, sequences.inputs(g, number)))?;
//!
//! let plan = session.last_plan().expect("a run has a plan");
//! let sizes: Vec<usize> = plan.steps.iter().map(|step| step.rows as usize).collect();
//! let packed = sequences.packed();
//! assert_eq!(packed.batch_sizes, [2, 2, 2, 1, 1]);
//! assert!(sizes.ends_with(&packed.batch_sizes)); // after the step of all inputs
//! assert_eq!(packed.sorted, [1, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! # PyTorch: the training loop
//!
//! | there | here |
//! |---|---|
//! | `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()` | [`Trainer::step`](crate::Trainer::step) |
//! | `param.grad` after `loss.backward()` | [`Trainer::gradients`](crate::Trainer::gradients), [`Session::gradients`](crate::Session::gradients) |
//! | the mean over all tokens of a minibatch | [`Trainer::step_weighted`](crate::Trainer::step_weighted) |
//! | `load_state_dict(torch_model)` | [`train::import_pytorch`](crate::train::import_pytorch) |
//! | several `backward()` before a `step()` | [`Trainer::step_in_parts`](crate::Trainer::step_in_parts) |
//! | `with torch.no_grad()` over a `DataLoader` | [`Session::run_in_parts`](crate::Session::run_in_parts) |
//! | parameter groups with an `lr` each | [`Optimize::rate`](crate::prelude::Optimize::rate) |
//! | a parameter group without `weight_decay` | [`Optimize::decay_only`](crate::prelude::Optimize::decay_only) |
//! | `load_state_dict(.., strict=False)` | [`train::read_matching_weights`](crate::train::read_matching_weights) |
//! | `Embedding(padding_idx=0)` | [`Embedding::padding`](crate::nn::Embedding::padding) |
//! | `ignore_index`, over a sequence | labels that are `None`: [`losses::sequence_cross_entropy`](crate::nn::losses::sequence_cross_entropy) |
//! | class weights | [`losses::weighted_cross_entropy`](crate::nn::losses::weighted_cross_entropy) |
//! | the mean over all valid labels | [`losses::weighted_mean`](crate::nn::losses::weighted_mean) |
//! | `reduction="sum"`, `"none"` | [`losses::total`](crate::nn::losses::total), the values themselves |
//!
//! A step's loss is the mean over *items*: each sentence of a minibatch has equal weight, whatever its length. PyTorch
//! programs usually put the logits of all tokens into one matrix, so each token has equal weight. To reproduce that, emit
//! the loss of the whole minibatch:
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{BiLstm, Embedding, Linear, losses};
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("tagger");
//! let words = Embedding::new(&mut m, "words", 50, 8).padding(0);
//! let (context, out) = (BiLstm::new(&mut m, "context", 8, 8), Linear::new(&mut m, "out", 16, 3));
//! let optimizer = AdamW::new(0.01).weight_decay(0.1).decay_only(|param| param.name.ends_with(".w"));
//! let mut trainer = Trainer::new(m.build()?, optimizer)?;
//! let minibatch: [(&[u32], &[i64]); 2] = [(&[3, 5, 7], &[0, -100, 2]), (&[4], &[1])];
//! let step = trainer.step_with(|g| {
//!     let mut terms = Vec::new();
//!     for (sentence, tags) in minibatch {
//!         let hidden = context.run(g, sentence.iter().map(|&word| words.look(g, word)));
//!         for (h, &tag) in hidden.into_iter().zip(tags) {
//!             if let Ok(tag) = u32::try_from(tag) {
//!                 terms.push((1.0, out.on(h).cross_entropy(tag)));
//!             }
//!         }
//!     }
//!     losses::weighted_mean(g, terms) // divided by the 3 valid tags
//! })?;
//! assert!((step.loss - 3f32.ln()).abs() < 0.1);
//! # Ok(())
//! # }
//! ```
//!
//! [`nn::pytorch`](crate::nn::pytorch) reads the weights of PyTorch's `Linear`, `Embedding`, `LSTM`, `GRU`, `MultiheadAttention`,
//! `TransformerEncoder` and `TransformerDecoder`. It transposes them and reorders their gates.
//!
//! # PyTorch: layers by name
//!
//! | there | here |
//! |---|---|
//! | `LSTM(.., num_layers=2, bidirectional=True, dropout=p)` | [`Stacked::<BiLstm, 2>::with`](crate::nn::Stacked::with) |
//! | `LSTM(.., proj_size=n)` | [`LstmOptions::projection`](crate::nn::LstmOptions::projection) |
//! | `RNN(.., nonlinearity="relu")` | [`RnnOptions::activation`](crate::nn::RnnOptions::activation) |
//! | `batch_first` | no counterpart: there is no minibatch axis |
//! | `MultiheadAttention`, with `kdim` and `vdim` | [`MultiHeadAttention`](crate::nn::MultiHeadAttention), [`MultiHeadOptions`](crate::nn::MultiHeadOptions) |
//! | `TransformerEncoder`, its layer | [`TransformerEncoder`](crate::nn::TransformerEncoder), [`TransformerEncoderLayer`](crate::nn::TransformerEncoderLayer) |
//! | `TransformerDecoder` | [`TransformerDecoder`](crate::nn::TransformerDecoder) |
//! | `attn_mask` of a causal model | [`run_causal`](crate::nn::TransformerEncoder::run_causal): a position's list ends with the position |
//! | cached keys and values | [`TransformerState`](crate::nn::TransformerState) |
//! | `key_padding_mask` | no counterpart: there is no padding |
//! | `LayerNorm`, `RMSNorm`, `GroupNorm`, `InstanceNorm` | [`LayerNorm`](crate::nn::LayerNorm), [`RmsNorm`](crate::nn::RmsNorm), [`GroupNorm`](crate::nn::GroupNorm) |
//! | `Bilinear`, `PReLU` | [`Bilinear`](crate::nn::Bilinear), [`PRelu`](crate::nn::PRelu) |
//! | `Hardtanh`, `ReLU6`, `GELU(approximate="tanh")`, `Softplus`, `Mish`, `SELU` | [`Activation`](crate::nn::Activation) |
//! | `LogSigmoid`, `Softsign`, `GLU` | `-(-x).softplus()`, `x / (x.abs() + 1.0)`, `let [a, b] = x.split(); a * b.sigmoid()` |
//! | `BCEWithLogitsLoss`, with `pos_weight` | [`Value::bce`](crate::prelude::Value::bce), [`weighted_bce`](crate::nn::losses::weighted_bce) |
//! | `HuberLoss`, `SmoothL1Loss`, `L1Loss`, `MSELoss` | [`huber`](crate::nn::losses::huber), [`smooth_l1`](crate::nn::losses::smooth_l1), [`l1`](crate::nn::losses::l1), [`Value::mse`](crate::prelude::Value::mse) |
//! | `TripletMarginLoss`, `MarginRankingLoss`, `CosineEmbeddingLoss` | [`triplet_distance`](crate::nn::losses::triplet_distance), [`margin_ranking`](crate::nn::losses::margin_ranking), [`cosine_embedding`](crate::nn::losses::cosine_embedding) |
//! | `MultiMarginLoss` | [`Value::hinge`](crate::prelude::Value::hinge) over the number of classes |
//! | `GaussianNLLLoss`, `PoissonNLLLoss` | [`gaussian_nll`](crate::nn::losses::gaussian_nll), [`poisson_nll`](crate::nn::losses::poisson_nll) |
//! | `clip_grad_norm_`, `clip_grad_value_` | [`Optimize::clip_norm`](crate::prelude::Optimize::clip_norm), [`Optimize::clip_value`](crate::prelude::Optimize::clip_value) |
//!
//! Missing: `BatchNorm`, because an instance's result would depend on the other instances of its minibatch; recurrent layers
//! without bias (freeze the bias at zero: [`Trainer::freeze`](crate::Trainer::freeze)); dropout of attention weights,
//! `add_bias_kv` and `add_zero_attn`; dropout at a rate of 1; convolutions over images; the CTC loss.
//!
//! # PyTorch: a transformer without padding
//!
//! Padding and masks give all sentences one length. Here a position reads a list instead. A layer takes two batches, whatever
//! the number and the lengths of the sentences:
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Embedding, Positions, TransformerEncoder};
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("encoder");
//! let words = Embedding::new(&mut m, "words", 50, 8);
//! let positions = Positions::learned(&mut m, "positions", 20, 8);
//! let encoder = TransformerEncoder::<2>::new(&mut m, "encoder", 8, 2);
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//! let mut batches = Vec::new();
//! for sentences in [vec![3u32], vec![3, 5, 1, 20, 7]] {
//!     session.predict(&sentences, |g, &length| {
//!         let xs = (0..length).map(|word| words.look(g, word));
//!         g.list(encoder.run(g, positions.add(g, xs))).mean()
//!     })?;
//!     let found = session.last_plan().expect("a run has a plan").certificate;
//!     assert_eq!((found.batches, found.copied), (found.bound, 0));
//!     batches.push(found.batches);
//! }
//! assert_eq!(batches, [7, 7]); // words, positions, two a layer, means
//! # Ok(())
//! # }
//! ```
//!
//! `cargo run --release --example transformer` trains a complete model. A query reads its list row by row, so attention costs
//! `n²` pairs and uses no matrix product. The tables of a plan take `2 n²` words per head and layer, and in training each pair
//! has a gradient of its key and of its value. Memory therefore limits the length of sequences before time does.
//!
//! Generation produces one word at a time. A decoder's state holds the keys and values of earlier words, so no round computes
//! them again. [Tasks](crate::Session::tasks) advance together: one plan per round serves all unfinished sentences.
//!
//! ```
//! use autobatch::prelude::*;
//! use autobatch::nn::{Embedding, Linear, TransformerDecoder, TransformerEncoder};
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("translate");
//! let words = Embedding::new(&mut m, "words", 50, 8);
//! let encoder = TransformerEncoder::<2>::new(&mut m, "encoder", 8, 2);
//! let decoder = TransformerDecoder::<2>::new(&mut m, "decoder", 8, 2);
//! let next = Linear::new(&mut m, "next", 8, 50);
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//! let g = session.graph();
//! let (words, encoder, decoder, next, g) = (&words, &encoder, &decoder, &next, &g);
//! let translate = |sentence: &'static [u32]| async move {
//!     let encoded = encoder.run(g, sentence.iter().map(|&word| words.look(g, word)));
//!     let mut state = decoder.start(g, &decoder.memory(g, encoded));
//!     let mut said = vec![0]; // word 0 begins a sentence
//!     while state.len() < sentence.len() + 2 {
//!         let read = state.push(words.look(g, said[state.len()]));
//!         said.push(next.on(read).argmax().index().await?);
//!     }
//!     Ok(said)
//! };
//! let said = session.tasks(g, [&[7, 3, 9][..], &[4]].map(translate))?;
//! assert_eq!([said[0].len(), said[1].len()], [6, 4]);
//! # Ok(())
//! # }
//! ```
