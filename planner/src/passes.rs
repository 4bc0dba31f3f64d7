//! The passes from graph to graph: one ordered table, and the driver that runs it.
//!
//! Each pass is a file of `rewrite` whose name is the pass's. The driver runs the
//! selected ones in the order of the table, checks the graph after each as [`Selection::verify`]
//! says, keeps a line about each, and shows the graph to an observer, which may stop it: that is
//! what `--print-after`, `--stop-after` and `--verify=each` are made of.

use crate::rewrite::{Change, Context, count, cse, dead, fold, hoist, outline};
use autobatch_ir::graph::rebuild::Renaming;
use autobatch_ir::graph::{Callee, GraphData, Signature};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_oracle::equivalent::equivalent;
use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, which is its file's.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Whether values keep their bits. All passes of the table keep them; a pass that does not could
    /// never be on by default.
    pub keeps_forward_bits: bool,
    /// Whether gradients keep their bits, as the pass runs in training: those that `reference::reverse` gives. In a plan,
    /// gradients of parameters are sums over rows, whose order [`schedule`](crate::schedule) decides anew for every graph.
    pub keeps_gradient_bits: bool,
    /// Whether it looks at what lies between cells: it then runs by default on graphs made of cells, too.
    pub between_cells: bool,
    /// Whether it runs by default in plans that only compute values.
    pub on_in_inference: bool,
    /// Whether it runs by default in plans that will be differentiated.
    pub on_in_training: bool,
    run: fn(&GraphData, &Context<'_>) -> Option<Change>,
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    // First, so that equal constants are seen as equal by the next.
    Pass {
        name: "fold",
        what: "computes what depends on constants alone, and drops neutral constants",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
        between_cells: false,
        on_in_inference: true,
        on_in_training: true,
        run: fold::fold,
    },
    // Before outlining, which gives inner values up. In training only constants merge.
    Pass {
        name: "cse",
        what: "makes equal nodes one: constants always, others in inference",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
        between_cells: false,
        on_in_inference: true,
        on_in_training: true,
        run: cse::cse,
    },
    // Sums of gradients inside a cell associate otherwise than sums between ops.
    Pass {
        name: "outline",
        what: "makes runs of ops that are repeated everywhere calls of new cells",
        keeps_forward_bits: true,
        keeps_gradient_bits: false,
        between_cells: false,
        on_in_inference: true,
        on_in_training: false,
        run: outline::outline,
    },
    // After outlining, which makes the cells of recurrences that a model writes as ops. Off by default: on the
    // tagger it makes execution 15 to 20 % slower in batches of 64, and 26 % faster for a single sentence
    // (hidden 100, 4.8 to 3.6 ms), whose steps of one row would read all weights for it. Turn it on for
    // inference of single instances whose plan is cached.
    Pass {
        name: "hoist",
        what: "does products of inputs for all steps of a recurrence at once, where that is cheaper",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
        between_cells: true,
        on_in_inference: false,
        on_in_training: false,
        run: hoist::hoist,
    },
    // Last, for readers: clustering leaves out what is not needed by itself.
    Pass {
        name: "dead",
        what: "drops what no wanted value needs",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
        between_cells: false,
        on_in_inference: false,
        on_in_training: false,
        run: dead::dead,
    },
];

/// What is checked after each pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Nothing.
    Off,
    /// That the graph keeps the rules of graphs.
    Each,
    /// That, and that every value left is the value that it was, by
    /// [`equivalent`].
    Prove,
}

/// Which passes run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    on: [bool; PASSES.len()],
    /// Whether nodes of different instances may become one. Needs plans that outlive no
    /// instance, so it is never on by itself.
    pub across_instances: bool,
    /// Whether passes that have a price run wherever they can: to test them, or to see what they would do.
    pub eager: bool,
    /// What is checked after each pass.
    pub verify: Verify,
}

/// There is no pass of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPass(pub String);

impl fmt::Display for UnknownPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
        write!(f, "there is no pass {:?}; the passes are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownPass {}

impl Selection {
    /// No pass.
    #[must_use]
    pub const fn none() -> Self {
        let verify = if cfg!(debug_assertions) { Verify::Each } else { Verify::Off };
        Self { on: [false; PASSES.len()], across_instances: false, eager: false, verify }
    }

    /// The passes that run by default in this mode. A graph that grows is not rewritten: what is
    /// planned later may read any value of what was planned before.
    #[must_use]
    pub fn of_mode(mode: Mode) -> Self {
        let on = |pass: &Pass| match mode {
            Mode::Infer => pass.on_in_inference,
            Mode::Train => pass.on_in_training,
            Mode::Grow => false,
        };
        let mut selection = Self::none();
        selection.on.iter_mut().zip(PASSES).for_each(|(slot, pass)| *slot = on(pass));
        selection
    }

    /// The passes that run by default on this graph: where most nodes are calls of cells, whoever
    /// wrote them chose the grain, and only what looks between cells is worth its time.
    #[must_use]
    pub fn of_graph(graph: &GraphData, mode: Mode) -> Self {
        let is_cell = |sig: &Signature| matches!(sig.callee, Callee::Cell(_));
        let is_cell: Vec<bool> = graph.sigs.items().iter().map(is_cell).collect();
        let cells = graph.arena.nodes().iter().filter(|node| is_cell[node.sig.index()]).count();
        let mut selection = Self::of_mode(mode);
        if 2 * cells >= graph.arena.len() {
            selection.on.iter_mut().zip(PASSES).for_each(|(on, pass)| *on &= pass.between_cells);
        }
        selection
    }

    /// With one pass on or off.
    ///
    /// # Errors
    /// If there is no such pass.
    pub fn with(mut self, name: &str, on: bool) -> Result<Self, UnknownPass> {
        match PASSES.iter().position(|pass| pass.name == name) {
            Some(number) => self.on[number] = on,
            None => return Err(UnknownPass(name.to_owned())),
        }
        Ok(self)
    }

    /// Whether a pass runs.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        PASSES.iter().zip(self.on).any(|(pass, on)| on && pass.name == name)
    }
}

/// A graph after passes.
#[derive(Clone, Debug)]
pub struct Optimized<'g> {
    /// The graph; the given one where no pass changed anything.
    pub graph: Cow<'g, GraphData>,
    /// What became of each value of the given graph.
    pub renaming: Renaming,
    /// A line about each pass that ran.
    pub log: Vec<String>,
}

/// What an observer is shown after each pass.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The pass that ran.
    pub pass: &'a Pass,
    /// The graph after it.
    pub graph: &'a GraphData,
    /// Whether it changed anything.
    pub changed: bool,
    /// The line about it.
    pub line: &'a str,
}

/// A pass broke the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassFailure {
    /// Which.
    pub pass: &'static str,
    /// How.
    pub message: String,
}

impl fmt::Display for PassFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after pass {}: {}", self.pass, self.message)
    }
}

impl std::error::Error for PassFailure {}

/// The observer that lets all passes run.
pub fn all(_: Step<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Runs the selected passes on a verified graph. The values in `wanted` and the graph's outputs stay
/// readable, under the names that the renaming gives.
///
/// # Errors
/// If a check after a pass finds a fault: a fault of that pass.
pub fn optimize<'g>(
    graph: &'g GraphData,
    wanted: &[ValueId],
    mode: Mode,
    selection: &Selection,
    observer: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> Result<Optimized<'g>, PassFailure> {
    let renaming = Renaming::identity(graph.arena.values());
    let mut state = Optimized { graph: Cow::Borrowed(graph), renaming, log: Vec::new() };
    for (pass, _) in PASSES.iter().zip(selection.on).filter(|(_, on)| *on) {
        let renamed = |&value: &ValueId| state.renaming.get(value).expect("passes keep what is wanted");
        let wanted: Vec<ValueId> = wanted.iter().map(renamed).collect();
        let Selection { across_instances, eager, .. } = *selection;
        let context = Context { wanted: &wanted, mode, across_instances, eager };
        let change = (pass.run)(&state.graph, &context);
        let changed = change.is_some();
        let line = match change {
            None => format!("{}: nothing to do", pass.name),
            Some(change) => {
                check(pass, &state.graph, &change, selection.verify)?;
                let (before, after) = (state.graph.arena.len(), change.graph.arena.len());
                state.renaming = state.renaming.then(&change.renaming);
                state.graph = Cow::Owned(change.graph);
                format!("{}: {}, {before} -> {}", pass.name, change.note, count(after, "node"))
            }
        };
        let outcome = observer(Step { pass, graph: &state.graph, changed, line: &line });
        state.log.push(line);
        if outcome.is_break() {
            break;
        }
    }
    Ok(state)
}

fn check(pass: &Pass, before: &GraphData, change: &Change, verify: Verify) -> Result<(), PassFailure> {
    let failure = |message: String| PassFailure { pass: pass.name, message };
    match verify {
        Verify::Off => Ok(()),
        Verify::Each => change.graph.verify().map_err(|errors| failure(errors.to_string())),
        Verify::Prove => {
            let pairs: Vec<(ValueId, ValueId)> = change.renaming.pairs().collect();
            let proof = equivalent(before, &change.graph, &pairs);
            proof.map(|_| ()).map_err(|error| failure(error.to_string()))
        }
    }
}
