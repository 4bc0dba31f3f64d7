//! A plan as a list of dispatches.
//!
//! Compiling looks at every step once and writes, for each stage, a record of what the stage's template
//! wants to know: places of operands and results, extents, attributes. Nothing of it is text, but for
//! the bodies of maps; nothing depends on bound numbers or parameters' values.

mod finals;
mod fold;
mod layout;
mod map;
mod record;
mod row;
mod step;
mod touched;
mod update;

pub use layout::{Layout, Want};
pub use record::Record;
pub use touched::{Touches, touches};
pub use update::{Deed, SUM_OF_SQUARES, TILE_ELEMENTS, UpdateProgram, Updates, compile_update};

use crate::error::GpuError;
use crate::module::{Cuts, GROUP, Program};
use autobatch_ir::plan::{Plan, Verified};
use autobatch_shaders::COLLECT;
use std::collections::HashMap;
use std::ops::Range;

/// Threads of one dispatch at most: what two dimensions of 65,535 groups take, with room for the number
/// of a thread in 32 bits.
pub const MOST_THREADS: u64 = 1 << 31;
/// Groups of a dimension.
const MOST_GROUPS: u64 = 65_535;
/// Words of the arena before anything of the plan: the noise that is drawn.
pub const HEAD: u64 = 8;

/// A dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Which of the compiled programs.
    pub program: u32,
    /// Where its record begins in the tables.
    pub record: u32,
    /// How many threads, rows or groups have work, as the template counts.
    pub threads: u32,
    /// The first lane.
    pub first: u32,
    /// Groups in both dimensions.
    pub groups: [u32; 2],
    /// Multiply-adds, about.
    pub work: u64,
}

/// A copy of words inside the device, before the first dispatch: a parameter that a kernel takes whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The first word among the parameters.
    pub from: u64,
    /// The first word in the arena.
    pub to: u64,
    /// How many.
    pub words: u64,
}

/// A plan, ready for a device.
#[derive(Debug)]
pub struct Compiled {
    /// Where everything is.
    pub layout: Layout,
    /// The plan's tables and the records behind them.
    pub tables: Vec<u32>,
    /// What dispatches run.
    pub programs: Vec<Program>,
    /// The dispatches, in order.
    pub dispatches: Vec<Dispatch>,
    /// Which dispatches are a step's; those behind the last are of finals and outputs.
    pub steps: Vec<Range<u32>>,
    /// What is copied first.
    pub copies: Vec<Copy>,
    /// Words of constants, which go up behind the bound numbers.
    pub constants: Vec<u32>,
    /// Per output where its words begin among those collected.
    pub outputs: Vec<u32>,
}

/// What compiling needs to know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bytes of one binding, a power of two.
    pub binding: u64,
    /// Storage bindings of a module.
    pub bindings: u32,
    /// Words of rows that stages leave for one another.
    pub scratch: u64,
}

impl Target {
    /// A device of the least limits that all have.
    pub const LEAST: Self = Self { binding: 128 << 20, bindings: 8, scratch: DEFAULT_SCRATCH };

    /// Into how many bindings so many words are cut.
    ///
    /// # Errors
    /// If they are more than the device has.
    pub fn cuts(&self, arena: u64, params: u64) -> Result<Cuts, GpuError> {
        let bindings = |words: u64| (words * 4).div_ceil(self.binding).max(1);
        let (of_arena, of_params) = (bindings(arena), bindings(params));
        let free = u64::from(self.bindings.saturating_sub(1));
        if of_arena + of_params > free {
            return Err(GpuError::TooLarge {
                what: "the rows and parameters of the plan",
                needed: (arena + params) * 4,
                limit: free * self.binding,
            });
        }
        let shift = self.binding.ilog2() - 2;
        Ok(Cuts { arena: of_arena as u32, params: of_params as u32, shift })
    }
}

/// Words of scratch rows unless a budget says otherwise: 64 MiB.
pub const DEFAULT_SCRATCH: u64 = 16 << 20;

/// Compiles a plan.
///
/// # Errors
/// If it takes more than words of 32 bits can count, or than the device holds.
pub fn compile(plan: &Verified<Plan>, target: Target) -> Result<Compiled, GpuError> {
    let mut build = Build::new(plan, target)?;
    for step in &plan.steps {
        let start = build.dispatches.len() as u32;
        step::lower(&mut build, step)?;
        build.steps.push(start..build.dispatches.len() as u32);
    }
    for sum in &plan.finals {
        finals::lower(&mut build, sum)?;
    }
    build.outputs()?;
    build.finish(target)
}

/// A compilation in progress.
struct Build<'a> {
    plan: &'a Plan,
    layout: Layout,
    scratch_budget: u64,
    /// Words of scratch that the greediest dispatch takes.
    scratch: u64,
    tables: Vec<u32>,
    programs: Vec<Program>,
    numbers: HashMap<Program, u32>,
    dispatches: Vec<Dispatch>,
    steps: Vec<Range<u32>>,
    outputs: Vec<u32>,
}

impl<'a> Build<'a> {
    fn new(plan: &'a Plan, target: Target) -> Result<Self, GpuError> {
        Ok(Self {
            plan,
            layout: Layout::new(plan)?,
            scratch_budget: target.scratch.max(1),
            scratch: 0,
            tables: plan.tables.clone(),
            programs: Vec::new(),
            numbers: HashMap::new(),
            dispatches: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// Adds a dispatch; one without threads is none.
    fn dispatch(
        &mut self,
        program: Program,
        record: &Record,
        (first, threads): (u32, u64),
        columns: u64,
    ) -> Result<(), GpuError> {
        let groups = program.groups(threads, columns);
        if threads == 0 || groups == 0 {
            return Ok(());
        }
        let (across, down) = (groups.min(MOST_GROUPS), groups.div_ceil(MOST_GROUPS));
        if threads > MOST_THREADS || groups * GROUP > 2 * MOST_THREADS || down > MOST_GROUPS {
            return Err(GpuError::TooLarge {
                what: "the elements of a lane",
                needed: threads,
                limit: MOST_THREADS,
            });
        }
        let at = u32::try_from(self.tables.len()).ok();
        let end = self.tables.len() as u64 + record.words().len() as u64;
        let Some(at) = at.filter(|_| end <= u64::from(u32::MAX)) else {
            return Err(GpuError::TooLarge {
                what: "the tables",
                needed: end * 4,
                limit: u64::from(u32::MAX) * 4,
            });
        };
        self.tables.extend_from_slice(record.words());
        let next = self.programs.len() as u32;
        let number = *self.numbers.entry(program.clone()).or_insert(next);
        if number == next {
            self.programs.push(program);
        }
        self.dispatches.push(Dispatch {
            program: number,
            record: at,
            threads: threads as u32,
            first,
            groups: [across as u32, down as u32],
            work: threads,
        });
        Ok(())
    }

    /// Says how much work the last dispatch is.
    fn last_is_work(&mut self, work: u64) {
        if let Some(last) = self.dispatches.last_mut() {
            last.work = work;
        }
    }

    /// The dispatch that brings outputs together, behind the scratch rows.
    fn outputs(&mut self) -> Result<(), GpuError> {
        let mut record = Record::default();
        let result = self.layout.reserve_outputs(self.scratch)?;
        record.push(0).push(result).push(self.plan.outputs.len() as u32);
        let mut end = 0u64;
        for output in &self.plan.outputs {
            let width = u64::from(self.plan.field(output.field).width());
            let from = self.layout.field(output.field).0 as u64 + u64::from(output.row) * width;
            self.outputs.push(end as u32);
            let shift = (from as u32).wrapping_sub(end as u32);
            end += width;
            record.push(end as u32).push(shift);
        }
        self.layout.fit_outputs(end)?;
        self.dispatch(Program::Fixed(COLLECT), &record, (0, end), 1)
    }

    fn finish(self, target: Target) -> Result<Compiled, GpuError> {
        let bytes = self.tables.len() as u64 * 4;
        if bytes > target.binding {
            return Err(GpuError::TooLarge { what: "the tables", needed: bytes, limit: target.binding });
        }
        target.cuts(self.layout.total(), self.layout.params())?;
        Ok(Compiled {
            copies: self.layout.copies(),
            constants: self.layout.constants(),
            layout: self.layout,
            tables: self.tables,
            programs: self.programs,
            dispatches: self.dispatches,
            steps: self.steps,
            outputs: self.outputs,
        })
    }
}
