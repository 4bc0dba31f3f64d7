//! The binary format of plans.

use super::kernels::{KernelWriter, RawKernels};
use super::tables::{read_type, type_words};
use super::{Blob, Kind, LoadError, Text, Words, open, read_file, seal};
use crate::id::{NodeId, ValueId};
use crate::module::ParamKind;
use crate::plan::normal::check_names;
use crate::plan::{
    Certificate, Field, FieldId, KernelId, Mode, Operand, OutputKey, Place, Plan, PlanOutput, Reduction,
    ReductionPart, ReductionSum, Slab, SlabId, SlabKind, Step, Store, StoreId, StoreKind, Verified,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct RawPlan<'a> {
    /// The names of the module, stores, fields and outputs, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    /// Length of the module's name, mode, structure (lowest word first), numbers of word and float inputs,
    /// forward and reverse batches, bound, then four numbers of two words each.
    head: Blob<'a>,
    /// Length of the name, kind, the store it belongs to, five words of type.
    stores: Blob<'a>,
    /// Kind, the slab it mirrors, rows, first field and end of fields.
    slabs: Blob<'a>,
    /// Slab, length of the name, five words of type.
    fields: Blob<'a>,
    kernels: RawKernels<'a>,
    /// Kernel, rows, then four ranges.
    steps: Blob<'a>,
    waves: Blob<'a>,
    /// Kind and three words.
    operands: Blob<'a>,
    /// Kind, field, start or table, and the offsets of edges.
    places: Blob<'a>,
    store_args: Blob<'a>,
    lanes: Blob<'a>,
    tables: Blob<'a>,
    /// Kind of the key, length of the name or number of the value, field, row.
    outputs: Blob<'a>,
    /// Store, kind, four numbers of the block, how many parts.
    reductions: Blob<'a>,
    /// Lanes, rows per lane, whether there is an `x`, then two operands.
    reduction_parts: Blob<'a>,
}

const HEAD: usize = 19;

fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn store_words(kind: StoreKind) -> [u32; 2] {
    match kind {
        StoreKind::Param(ParamKind::Param) => [0, 0],
        StoreKind::Param(ParamKind::Table) => [1, 0],
        StoreKind::Grad(of) => [2, of.0],
        StoreKind::State(of) => [3, of.0],
    }
}

fn slab_words(kind: SlabKind) -> [u32; 2] {
    match kind {
        SlabKind::Value => [0, 0],
        SlabKind::Node => [1, 0],
        SlabKind::Mirror(of) => [2, of.0],
    }
}

fn operand_words(operand: Operand) -> [u32; 4] {
    match operand {
        Operand::Rows { field, start, stride } => [0, field.0, start, stride],
        Operand::Table { field, at } => [1, field.0, at, 0],
        Operand::Segments { field, offsets, items } => [2, field.0, offsets, items],
        Operand::Words { start, stride } => [3, start, stride, 0],
        Operand::WordTable { at } => [4, at, 0, 0],
        Operand::Floats { start, stride } => [5, start, stride, 0],
        Operand::FloatTable { at } => [6, at, 0, 0],
    }
}

fn place_words(place: Place) -> [u32; 4] {
    match place {
        Place::Rows { field, start } => [0, field.0, start, 0],
        Place::Table { field, at } => [1, field.0, at, 0],
        Place::Edges { field, start, offsets } => [2, field.0, start, offsets],
    }
}

impl<'a> RawPlan<'a> {
    fn of(plan: &'a Plan) -> Self {
        let Plan {
            module,
            structure,
            mode,
            stores,
            words,
            floats,
            slabs,
            fields,
            kernels,
            steps,
            waves,
            operands,
            places,
            store_args,
            lanes,
            tables,
            reductions,
            outputs,
            certificate,
        } = plan;
        let Certificate { batches, reverse_batches, bound, copied, gathered, direct, slab_bytes } =
            certificate;
        let mut head = vec![module.len() as u32, *mode as u32];
        head.extend([*structure as u64, (*structure >> 64) as u64].into_iter().flat_map(halves));
        head.extend([*words, *floats, *batches, *reverse_batches, *bound]);
        head.extend([*copied, *gathered, *direct, *slab_bytes].into_iter().flat_map(halves));
        let mut text = module.clone();
        let store_blob = write_stores(stores, &mut text);
        let slab_blob = slabs.iter().flat_map(|Slab { kind, rows, fields }| {
            let [kind, of] = slab_words(*kind);
            [kind, of, *rows, fields.start, fields.end]
        });
        let mut field_blob = Vec::with_capacity(7 * fields.len());
        for Field { slab, name, ty } in fields {
            text.push_str(name);
            field_blob.extend([slab.0, name.len() as u32]);
            field_blob.extend(type_words(*ty));
        }
        let step_blob = steps.iter().flat_map(|Step { kernel, rows, operands, places, stores, lanes }| {
            let [a, b, c, d] = [operands, places, stores, lanes].map(|range| [range.start, range.end]);
            [kernel.0, *rows, a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
        });
        let mut output_blob = Vec::with_capacity(4 * outputs.len());
        for PlanOutput { key, field, row } in outputs {
            let [kind, of] = match key {
                OutputKey::Named(name) => {
                    text.push_str(name);
                    [0, name.len() as u32]
                }
                OutputKey::Value(value) => [1, value.index() as u32],
                OutputKey::Gradient(value) => [2, value.index() as u32],
            };
            output_blob.extend([kind, of, field.0, *row]);
        }
        let reduction_blob = reductions.iter().flat_map(|Reduction { store, sum, parts }| {
            let [kind, row, col, k, n] = sum_words(*sum);
            [store.0, kind, row, col, k, n, parts.len() as u32]
        });
        let parts = reductions.iter().flat_map(|sum| &sum.parts);
        let part_blob = parts.flat_map(|ReductionPart { lanes, each, x, dy }| {
            let head = [*lanes, *each, u32::from(x.is_some())];
            let x = x.map_or([0; 4], operand_words);
            head.into_iter().chain(x).chain(operand_words(*dy))
        });
        let mut kernel_writer = KernelWriter::default();
        kernels.iter().for_each(|kernel| kernel_writer.push(kernel));
        let blob = |words: Vec<u32>| Blob::words(&words);
        Self {
            text: Blob(text.into_bytes().into()),
            head: blob(head),
            stores: blob(store_blob),
            slabs: blob(slab_blob.collect()),
            fields: blob(field_blob),
            kernels: kernel_writer.finish(),
            steps: blob(step_blob.collect()),
            waves: Blob::plain(waves),
            operands: blob(operands.iter().flat_map(|&operand| operand_words(operand)).collect()),
            places: blob(places.iter().flat_map(|&place| place_words(place)).collect()),
            store_args: blob(store_args.iter().map(|store| store.0).collect()),
            lanes: blob(lanes.iter().map(|lane| lane.index() as u32).collect()),
            tables: Blob::plain(tables),
            outputs: blob(output_blob),
            reductions: blob(reduction_blob.collect()),
            reduction_parts: blob(part_blob.collect()),
        }
    }

    fn size_hint(&self) -> usize {
        let pools = [&self.steps, &self.waves, &self.operands, &self.places, &self.lanes, &self.tables];
        pools.iter().map(|blob| blob.len()).sum::<usize>() + self.text.len() + (1 << 13)
    }
}

impl RawPlan<'_> {
    /// Decodes the plan without verifying it.
    fn read(&self) -> Result<Plan, LoadError> {
        let mut text = Text::new(&self.text)?;
        let mut head = self.head.reader("head")?;
        let head: [u32; HEAD] = head.array().and_then(|words| head.end().map(|()| words))?;
        let [module, mode, a, b, c, d, words, floats, batches, reverse_batches, bound, rest @ ..] = head;
        let Some(&mode) = Mode::ALL.get(mode as usize) else {
            return Err(LoadError::malformed(format!("{mode} is not a mode")));
        };
        let long = |at: usize| whole([rest[2 * at], rest[2 * at + 1]]);
        let plan = Plan {
            module: text.take(module)?,
            structure: u128::from(whole([c, d])) << 64 | u128::from(whole([a, b])),
            mode,
            stores: read_stores(&self.stores, &mut text)?,
            words,
            floats,
            slabs: self.read_slabs()?,
            fields: self.read_fields(&mut text)?,
            kernels: self.kernels.read()?,
            steps: self.read_steps()?,
            waves: self.waves.reader("waves")?.members(Some)?,
            operands: self.read_operands()?,
            places: self.read_places()?,
            store_args: self.store_args.reader("store arguments")?.members(|word| Some(StoreId(word)))?,
            lanes: self.lanes.reader("lanes")?.members(|word| NodeId::try_new(word as usize))?,
            tables: self.tables.reader("tables")?.members(Some)?,
            reductions: self.read_reductions()?,
            outputs: self.read_outputs(&mut text)?,
            certificate: Certificate {
                batches,
                reverse_batches,
                bound,
                copied: long(0),
                gathered: long(1),
                direct: long(2),
                slab_bytes: long(3),
            },
        };
        text.end()?;
        Ok(plan)
    }

    fn read_slabs(&self) -> Result<Vec<Slab>, LoadError> {
        records(&self.slabs, "slabs", |words, [kind, of, rows, start, end]| {
            let kind = match (kind, of) {
                (0, 0) => SlabKind::Value,
                (1, 0) => SlabKind::Node,
                (2, of) => SlabKind::Mirror(SlabId(of)),
                _ => return Err(words.refused(kind)),
            };
            Ok(Slab { kind, rows, fields: range(words, start, end)? })
        })
    }

    fn read_fields(&self, text: &mut Text<'_>) -> Result<Vec<Field>, LoadError> {
        records(&self.fields, "fields", |_, [slab, name, ty @ ..]: [u32; 7]| {
            Ok(Field { slab: SlabId(slab), name: text.take(name)?, ty: read_type(ty)? })
        })
    }

    fn read_steps(&self) -> Result<Vec<Step>, LoadError> {
        records(&self.steps, "steps", |words, [kernel, rows, a, b, c, d, e, f, g, h]| {
            Ok(Step {
                kernel: KernelId(kernel),
                rows,
                operands: range(words, a, b)?,
                places: range(words, c, d)?,
                stores: range(words, e, f)?,
                lanes: range(words, g, h)?,
            })
        })
    }

    fn read_operands(&self) -> Result<Vec<Operand>, LoadError> {
        records(&self.operands, "operands", read_operand)
    }

    fn read_reductions(&self) -> Result<Vec<Reduction>, LoadError> {
        let mut parts = records(&self.reduction_parts, "parts of reductions", |words, record: [u32; 11]| {
            let [lanes, each, present, a, b, c, d, dy @ ..] = record;
            let x = match (present, [a, b, c, d]) {
                (0, [0, 0, 0, 0]) => None,
                (1, x) => Some(read_operand(words, x)?),
                _ => return Err(words.refused(present)),
            };
            Ok(ReductionPart { lanes, each, x, dy: read_operand(words, dy)? })
        })?
        .into_iter();
        let reductions =
            records(&self.reductions, "reductions", |words, [store, kind, row, col, k, n, count]| {
                let sum = match kind {
                    0 => ReductionSum::Wgrad { row, col, k, n },
                    1 => ReductionSum::Colsum,
                    2 => ReductionSum::Tgrad,
                    _ => return Err(words.refused(kind)),
                };
                if sum_words(sum) != [kind, row, col, k, n] || count as usize > parts.len() {
                    return Err(words.refused(count));
                }
                Ok(Reduction {
                    store: StoreId(store),
                    sum,
                    parts: parts.by_ref().take(count as usize).collect(),
                })
            })?;
        match parts.next() {
            None => Ok(reductions),
            Some(_) => Err(LoadError::malformed("a part belongs to no reduction")),
        }
    }

    fn read_places(&self) -> Result<Vec<Place>, LoadError> {
        records(&self.places, "places", |words, [kind, field, at, offsets]| match (kind, offsets) {
            (0, 0) => Ok(Place::Rows { field: FieldId(field), start: at }),
            (1, 0) => Ok(Place::Table { field: FieldId(field), at }),
            (2, offsets) => Ok(Place::Edges { field: FieldId(field), start: at, offsets }),
            _ => Err(words.refused(kind)),
        })
    }

    fn read_outputs(&self, text: &mut Text<'_>) -> Result<Vec<PlanOutput>, LoadError> {
        records(&self.outputs, "outputs", |words, [kind, of, field, row]| {
            let value = || ValueId::try_new(of as usize).ok_or_else(|| words.refused(of));
            let key = match kind {
                0 => OutputKey::Named(text.take(of)?.into()),
                1 => OutputKey::Value(value()?),
                2 => OutputKey::Gradient(value()?),
                _ => return Err(words.refused(kind)),
            };
            Ok(PlanOutput { key, field: FieldId(field), row })
        })
    }
}

/// The records of stores; their names are appended to the text.
pub(super) fn write_stores(stores: &[Store], text: &mut String) -> Vec<u32> {
    let mut words = Vec::with_capacity(8 * stores.len());
    for Store { name, ty, kind } in stores {
        text.push_str(name);
        words.push(name.len() as u32);
        words.extend(store_words(*kind));
        words.extend(type_words(*ty));
    }
    words
}

pub(super) fn read_stores(stores: &Blob<'_>, text: &mut Text<'_>) -> Result<Vec<Store>, LoadError> {
    records(stores, "stores", |words, [name, kind, of, ty @ ..]: [u32; 8]| {
        let kind = match (kind, of) {
            (0, 0) => StoreKind::Param(ParamKind::Param),
            (1, 0) => StoreKind::Param(ParamKind::Table),
            (2, of) => StoreKind::Grad(StoreId(of)),
            (3, of) => StoreKind::State(StoreId(of)),
            _ => return Err(words.refused(kind)),
        };
        Ok(Store { name: text.take(name)?, ty: read_type(ty)?, kind })
    })
}

fn sum_words(sum: ReductionSum) -> [u32; 5] {
    match sum {
        ReductionSum::Wgrad { row, col, k, n } => [0, row, col, k, n],
        ReductionSum::Colsum => [1, 0, 0, 0, 0],
        ReductionSum::Tgrad => [2, 0, 0, 0, 0],
    }
}

fn read_operand(words: &Words<'_>, raw: [u32; 4]) -> Result<Operand, LoadError> {
    let [kind, a, b, c] = raw;
    let operand = match kind {
        0 => Operand::Rows { field: FieldId(a), start: b, stride: c },
        1 => Operand::Table { field: FieldId(a), at: b },
        2 => Operand::Segments { field: FieldId(a), offsets: b, items: c },
        3 => Operand::Words { start: a, stride: b },
        4 => Operand::WordTable { at: a },
        5 => Operand::Floats { start: a, stride: b },
        6 => Operand::FloatTable { at: a },
        _ => return Err(words.refused(kind)),
    };
    // Reject stray words: each operand has exactly one encoding.
    if operand_words(operand) == raw { Ok(operand) } else { Err(words.refused(c)) }
}

/// Decodes every record of a blob with `make`.
pub(super) fn records<const N: usize, T>(
    blob: &Blob<'_>,
    what: &'static str,
    mut make: impl FnMut(&Words<'_>, [u32; N]) -> Result<T, LoadError>,
) -> Result<Vec<T>, LoadError> {
    let mut words = blob.reader(what)?;
    let count = words.records(N)?;
    let mut made = Vec::with_capacity(count);
    for _ in 0..count {
        let record = words.array()?;
        made.push(make(&words, record)?);
    }
    Ok(made)
}

fn range(words: &Words<'_>, start: u32, end: u32) -> Result<Range<u32>, LoadError> {
    if start <= end { Ok(start..end) } else { Err(words.refused(end)) }
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
        check_names(&plan).map_err(LoadError::malformed)?;
        Ok(plan.verify()?)
    }

    /// Writes an `.abp` file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        crate::files::write(path.as_ref(), &self.to_bytes())
    }

    /// Reads an `.abp` file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and if the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Verified<Self>, LoadError> {
        read_file(Kind::Plan, path.as_ref(), Self::from_bytes)
    }
}
