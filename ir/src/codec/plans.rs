//! The binary format of plans. The lists of [`coded!`](super::record) are the records of its blobs.

use super::kernels::RawKernels;
use super::record::{Coded, Reader, Writer, coded, read_all, read_one, write_all};
use super::{Blob, Kind, LoadError, Text, binary_file, open, seal};
use crate::id::NodeId;
use crate::module::ParamKind;
use crate::plan::{
    Address, Certificate, Field, Group, GroupRange, GroupRule, Mode, Origin, OutputKey, Pause, Place, Plan,
    PlanOutput, Reduction, ReductionPart, ReductionSum, Slab, SlabKind, Step, StepOperand, Store, StoreId,
    StoreKind, Verified,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct RawPlan<'a> {
    /// The names of the module, stores, fields and outputs, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    head: Blob<'a>,
    stores: Blob<'a>,
    slabs: Blob<'a>,
    fields: Blob<'a>,
    kernels: RawKernels<'a>,
    steps: Blob<'a>,
    waves: Blob<'a>,
    operands: Blob<'a>,
    groups: Blob<'a>,
    places: Blob<'a>,
    store_args: Blob<'a>,
    lanes: Blob<'a>,
    tables: Blob<'a>,
    outputs: Blob<'a>,
    shards: Blob<'a>,
    reductions: Blob<'a>,
    reduction_parts: Blob<'a>,
}

coded! { struct Store, 8 words: name, kind, ty }
coded! { struct Slab, 5 words: kind, rows, fields }
coded! { enum SlabKind, 2 words: 0 = Value; 1 = Node; 2 = Mirror(of); }
coded! { struct Field, 7 words: slab, name, ty }
coded! { struct Step, 10 words: kernel, rows, operands, places, stores, lanes }
coded! { struct StepOperand, 5 words: origin, address }
coded! { enum Origin, 2 words: 0 = Field(field); 1 = Words; 2 = Floats; }
coded! { enum Address, 3 words:
    0 = Steps { start, stride }; 1 = Table { at }; 2 = Lists { offsets, items };
    3 = Groups { first, count };
}
coded! { struct Group, 5 words: end, len, range, rule }
coded! { enum GroupRange, 2 words: 0 = Run { start }; 1 = Table { at }; }
coded! { enum GroupRule, 1 words: 0 = All; 1 = Prefix; 2 = Suffix; }
coded! { enum Place, 4 words:
    0 = Rows { field, start }; 1 = Table { field, at }; 2 = Edges { field, start, offsets };
}
coded! { struct PlanOutput, 4 words: key, field, row }
coded! { enum OutputKey, 2 words: 0 = Named(name); 1 = Value(value); 2 = Gradient(value); }
coded! { enum ReductionSum, 5 words: 0 = Wgrad { row, col, k, n }; 1 = Colsum; 2 = Tgrad; 3 = Lgrad; }
coded! { struct ReductionPart, 14 words: lanes, each, x, dy, cuts }
coded! { enum Option<StepOperand>, 6 words: 0 = None; 1 = Some(operand); }
coded! { struct Certificate, 11 words:
    batches, reverse_batches, bound, copied, gathered, direct, slab_bytes
}
coded! { struct Pause, 2 words: waves, outputs }
coded! { struct RawReduction, 7 words: store, sum, parts }

/// The parts of a plan that are single values.
struct Head {
    module: String,
    mode: Mode,
    structure: u128,
    words: u32,
    floats: u32,
    certificate: Certificate,
    pause: Option<Pause>,
}

/// The words of a head without its pause.
const HEAD_WORDS: usize = 19;

/// The fields in order. The words of the pause come last, and only if there is one.
impl Coded for Head {
    const WORDS: usize = HEAD_WORDS;
    fn write(&self, to: &mut Writer<'_>) {
        let Self { module, mode, structure, words, floats, certificate, pause } = self;
        module.write(to);
        mode.write(to);
        structure.write(to);
        words.write(to);
        floats.write(to);
        certificate.write(to);
        pause.iter().for_each(|pause| pause.write(to));
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        Ok(Self {
            module: Coded::read(from)?,
            mode: Coded::read(from)?,
            structure: Coded::read(from)?,
            words: Coded::read(from)?,
            floats: Coded::read(from)?,
            certificate: Coded::read(from)?,
            pause: if from.words.len() > 0 { Some(Pause::read(from)?) } else { None },
        })
    }
}

/// A reduction with the number of its parts, which are records of their own.
struct RawReduction {
    store: StoreId,
    sum: ReductionSum,
    parts: u32,
}

impl Coded for StoreKind {
    const WORDS: usize = 2;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.extend(match self {
            Self::Param(ParamKind::Param) => [0, 0],
            Self::Param(ParamKind::Table) => [1, 0],
            Self::Grad(of) => [2, of.0],
            Self::State(of) => [3, of.0],
        });
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        match from.words.array()? {
            [0, 0] => Ok(Self::Param(ParamKind::Param)),
            [1, 0] => Ok(Self::Param(ParamKind::Table)),
            [2, of] => Ok(Self::Grad(StoreId(of))),
            [3, of] => Ok(Self::State(StoreId(of))),
            [kind, _] => Err(from.words.refused(kind)),
        }
    }
}

impl<'a> RawPlan<'a> {
    fn of(plan: &'a Plan) -> Self {
        let head = Head {
            module: plan.module.clone(),
            mode: plan.mode,
            structure: plan.structure,
            words: plan.words,
            floats: plan.floats,
            certificate: plan.certificate,
            pause: plan.pause.clone(),
        };
        let reduction = |Reduction { store, sum, parts }: &Reduction| RawReduction {
            store: *store,
            sum: *sum,
            parts: parts.len() as u32,
        };
        let reductions: Vec<RawReduction> = plan.reductions.iter().map(reduction).collect();
        let parts: Vec<ReductionPart> = plan.reductions.iter().flat_map(|sum| sum.parts.clone()).collect();
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.index() as u32).collect::<Vec<u32>>();
        let mut text = String::new();
        // Names enter the text in the order of these fields.
        let mut raw = Self {
            head: write_all(&[head], &mut text),
            stores: write_all(&plan.stores, &mut text),
            slabs: write_all(&plan.slabs, &mut text),
            fields: write_all(&plan.fields, &mut text),
            kernels: RawKernels::of(&plan.kernels),
            steps: write_all(&plan.steps, &mut text),
            waves: Blob::plain(&plan.waves),
            operands: write_all(&plan.operands, &mut text),
            groups: write_all(&plan.groups, &mut text),
            places: write_all(&plan.places, &mut text),
            store_args: write_all(&plan.store_args, &mut text),
            lanes: Blob::words(&numbers(&plan.lanes)),
            tables: Blob::plain(&plan.tables),
            outputs: write_all(&plan.outputs, &mut text),
            shards: Blob::words(&numbers(&plan.shards)),
            reductions: write_all(&reductions, &mut text),
            reduction_parts: write_all(&parts, &mut text),
            text: Blob::default(),
        };
        raw.text = Blob::bytes(text.into_bytes());
        raw
    }

    fn size_hint(&self) -> usize {
        let pools =
            [&self.steps, &self.waves, &self.operands, &self.groups, &self.places, &self.lanes, &self.tables];
        pools.iter().map(|blob| blob.len()).sum::<usize>() + self.text.len() + (1 << 13)
    }
}

impl RawPlan<'_> {
    /// Decodes the plan without verifying it.
    fn read(&self) -> Result<Plan, LoadError> {
        let mut text = Text::new(&self.text)?;
        let Head { module, mode, structure, words, floats, certificate, pause } =
            read_one(&self.head, "head", &mut text)?;
        let plan = Plan {
            module,
            structure,
            mode,
            stores: read_all(&self.stores, "stores", &mut text)?,
            words,
            floats,
            slabs: read_all(&self.slabs, "slabs", &mut text)?,
            fields: read_all(&self.fields, "fields", &mut text)?,
            kernels: self.kernels.read()?,
            steps: read_all(&self.steps, "steps", &mut text)?,
            waves: self.waves.reader("waves")?.members(Some)?,
            operands: read_all(&self.operands, "operands", &mut text)?,
            groups: read_all(&self.groups, "groups", &mut text)?,
            places: read_all(&self.places, "places", &mut text)?,
            store_args: read_all(&self.store_args, "store arguments", &mut text)?,
            lanes: self.lanes.reader("lanes")?.members(|word| NodeId::try_new(word as usize))?,
            tables: self.tables.reader("tables")?.members(Some)?,
            shards: self.shards.reader("shards")?.members(|word| NodeId::try_new(word as usize))?,
            reductions: self.read_reductions(&mut text)?,
            outputs: read_all(&self.outputs, "outputs", &mut text)?,
            pause,
            certificate,
        };
        text.end()?;
        Ok(plan)
    }

    fn read_reductions<'a>(&'a self, text: &mut Text<'a>) -> Result<Vec<Reduction>, LoadError> {
        let parts: Vec<ReductionPart> = read_all(&self.reduction_parts, "parts of reductions", text)?;
        let mut parts = parts.into_iter();
        let mut reductions = Vec::new();
        for RawReduction { store, sum, parts: count } in read_all(&self.reductions, "reductions", text)? {
            if count as usize > parts.len() {
                return Err(LoadError::malformed("a reduction has more parts than there are"));
            }
            reductions.push(Reduction { store, sum, parts: parts.by_ref().take(count as usize).collect() });
        }
        match parts.next() {
            None => Ok(reductions),
            Some(_) => Err(LoadError::malformed("a part belongs to no reduction")),
        }
    }
}

impl Plan {
    /// Encodes the plan as an `.abp` file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let raw = RawPlan::of(self);
        seal(Kind::Plan, &raw, raw.size_hint())
    }

    /// Decodes and verifies the bytes of an `.abp` file.
    ///
    /// # Errors
    /// If the bytes are not such a file or the plan breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Verified<Self>, LoadError> {
        let plan = open::<RawPlan<'_>>(Kind::Plan, bytes)?.read()?;
        Ok(plan.verify()?)
    }
}

binary_file!(Kind::Plan, Plan => Verified<Plan>, ".abp");
