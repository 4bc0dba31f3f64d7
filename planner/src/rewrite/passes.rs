//! The graph passes: one ordered table, and the driver that runs it.
//!
//! Each pass is a file or folder of `rewrite` with the name of the pass. The driver runs the selected passes in table
//! order. After each pass it checks the graph as [`Selection::verify`] says, writes one log line, and calls an observer,
//! which may stop the run. The command-line options `--print-after`, `--stop-after` and `--verify=each` use the observer.

pub use super::chains::in_chains;
use super::pass::{Change, Context, count};
use super::{cse, dead, fold, hoist, outline};
use autobatch_ir::graph::rebuild::Renaming;
use autobatch_ir::graph::{Callee, GraphData, Signature};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::ops::ControlFlow;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name, which is also the name of the source file.
    pub name: &'static str,
    /// One sentence for users.
    pub what: &'static str,
    /// Whether values keep their bits. Every pass of the table keeps them; a pass that does not may never be on by default.
    pub keeps_forward_bits: bool,
    /// Whether gradients keep their bits when the pass runs in training. The gradient of a parameter is a sum whose order the
    /// graph defines, so a pass that moves uses of parameters to other cells or nodes changes it.
    pub keeps_gradient_bits: bool,
    /// Whether the pass rewrites nodes between cells. Only such passes run by default on graphs that consist of cells.
    pub between_cells: bool,
    /// Whether the pass runs by default in plans that only compute values.
    pub on_in_inference: bool,
    /// Whether the pass runs by default in plans with gradients.
    pub on_in_training: bool,
    run: fn(&GraphData, &Context<'_>) -> Option<Change>,
}

/// A pass that keeps all bits and is off by default.
const OFF: Pass = Pass {
    name: "",
    what: "",
    keeps_forward_bits: true,
    keeps_gradient_bits: true,
    between_cells: false,
    on_in_inference: false,
    on_in_training: false,
    run: |_, _| None,
};

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    // Fold runs first: it makes equal constants equal nodes, which cse then merges.
    Pass {
        name: "fold",
        what: "computes constant expressions and removes neutral constants",
        on_in_inference: true,
        on_in_training: true,
        run: fold::fold,
        ..OFF
    },
    // Cse runs before outline, because outline removes the names of inner values. In training it only merges constants.
    Pass {
        name: "cse",
        what: "merges equal nodes; in training only equal constants",
        on_in_inference: true,
        on_in_training: true,
        run: cse::cse,
        ..OFF
    },
    // The gradients of a cell are summed in another order than those of separate ops.
    Pass {
        name: "outline",
        what: "replaces repeated runs of ops by calls of new cells",
        keeps_gradient_bits: false,
        on_in_inference: true,
        run: outline::outline,
        ..OFF
    },
    // Hoist runs after outline, which makes cells of recurrences that the model wrote as ops. It is off by default: on the
    // tagger it slows execution by 15 to 20 % in batches of 64. It speeds up a single sentence by 26 % (hidden 100, 4.8 to
    // 3.6 ms), whose steps of one row would each read all weights. Turn it on for single instances with a cached plan.
    Pass {
        name: "hoist",
        what: "computes the input products of a recurrence for all steps at once, where that is cheaper",
        between_cells: true,
        run: hoist::hoist,
        ..OFF
    },
    // Dead runs last and serves readers of the graph; clustering skips unneeded nodes without it.
    Pass { name: "dead", what: "removes nodes that no requested value needs", run: dead::dead, ..OFF },
];

/// Proves that two values are equal for all inputs: the first of each pair in the first graph, the second in the second.
///
/// The planner has no prover of its own, so that a proof shares no code with the passes. `autobatch_oracle` provides
/// `equivalent::prove`. The error says which pair could not be proved.
pub type Prover = fn(&GraphData, &GraphData, &[(ValueId, ValueId)]) -> Result<(), String>;

/// The check after each pass.
#[derive(Clone, Copy, Debug)]
pub enum Verify {
    /// Nothing.
    Off,
    /// The graph follows the rules of [`GraphData::verify`].
    Each,
    /// The prover proves every remaining value equal to the value before the pass.
    Prove(Prover),
}

/// All provers are the same kind of check.
impl PartialEq for Verify {
    fn eq(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }
}

impl Eq for Verify {}

impl Hash for Verify {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
    }
}

/// Which passes run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    on: [bool; PASSES.len()],
    /// Whether cse may merge nodes of different instances. The plan must then not outlive an instance, so this is never a default.
    pub across_instances: bool,
    /// Whether passes with a cost model apply every legal rewrite. For tests, and to inspect what a pass can do.
    pub eager: bool,
    /// The check after each pass.
    pub verify: Verify,
}

/// The names of all passes, separated by commas.
fn pass_names() -> String {
    PASSES.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ")
}

/// The name of a pass that does not exist.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass {found:?}; the passes are {}", pass_names(), found = .0)]
pub struct UnknownPass(pub String);

autobatch_ir::debug_as_display!(UnknownPass);

impl Selection {
    /// Selects no pass.
    #[must_use]
    pub const fn none() -> Self {
        let verify = if cfg!(debug_assertions) { Verify::Each } else { Verify::Off };
        Self { on: [false; PASSES.len()], across_instances: false, eager: false, verify }
    }

    /// Selects the default passes of a mode. Growing plans have none: a later part may read any value of an earlier one.
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

    /// Selects the default passes of a mode for this graph. If at least half of the nodes besides lists call cells, the model
    /// already chose what belongs together, and only the passes between cells are worth their time.
    #[must_use]
    pub fn of_graph(graph: &GraphData, mode: Mode) -> Self {
        let weight = |sig: &Signature| match sig.callee {
            Callee::Cell(_) => 1,
            Callee::Op(_) if sig.is_list() => 0,
            Callee::Op(_) => -1,
        };
        let weights: Vec<i64> = graph.sigs.items().iter().map(weight).collect();
        let cells_beyond_ops: i64 = graph.arena.nodes().iter().map(|node| weights[node.sig.index()]).sum();
        let mut selection = Self::of_mode(mode);
        if cells_beyond_ops >= 0 {
            selection.on.iter_mut().zip(PASSES).for_each(|(on, pass)| *on &= pass.between_cells);
        }
        selection
    }

    /// Turns one pass on or off.
    ///
    /// # Errors
    /// If no pass has this name.
    pub fn with(mut self, name: &str, on: bool) -> Result<Self, UnknownPass> {
        match PASSES.iter().position(|pass| pass.name == name) {
            Some(number) => self.on[number] = on,
            None => return Err(UnknownPass(name.to_owned())),
        }
        Ok(self)
    }

    /// Whether a pass is selected.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        PASSES.iter().zip(self.on).any(|(pass, on)| on && pass.name == name)
    }
}

/// A graph after the passes.
#[derive(Clone, Debug)]
pub struct Optimized<'g> {
    /// The rewritten graph, or the given graph if no pass changed it.
    pub graph: Cow<'g, GraphData>,
    /// The new name of each value of the given graph.
    pub renaming: Renaming,
    /// One line for each pass that ran.
    pub log: Vec<String>,
}

/// The observer's view after each pass.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The pass that ran.
    pub pass: &'a Pass,
    /// The graph after it.
    pub graph: &'a GraphData,
    /// Whether the pass changed the graph.
    pub changed: bool,
    /// The log line of the pass.
    pub line: &'a str,
}

/// A check after a pass failed: the pass is faulty.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("after pass {pass}: {message}")]
pub struct PassFailure {
    /// The name of the pass.
    pub pass: &'static str,
    /// The finding of the check.
    pub message: String,
}

autobatch_ir::debug_as_display!(PassFailure);

/// An observer that stops nothing.
pub fn all(_: Step<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Runs the selected passes on a verified graph. The values in `wanted` and the outputs of the graph stay readable, under the
/// names that the renaming gives.
///
/// # Errors
/// If the check after a pass fails.
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
        let renamed = |&value: &ValueId| state.renaming.get(value).expect("passes keep requested values");
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
        Verify::Prove(prove) => {
            let pairs: Vec<(ValueId, ValueId)> = change.renaming.pairs().collect();
            prove(before, &change.graph, &pairs).map_err(failure)
        }
    }
}
