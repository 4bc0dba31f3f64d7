//! The binary format of modules.

use super::record::{coded, read_all, read_one, write_all};
use super::tables::RawTables;
use super::{Blob, Kind, LoadError, Text, Words, binary_file, open, seal};
use crate::graph::{Arena, Node, Operand};
use crate::id::{SigId, SiteId, TypeId, ValueId};
use crate::module::{Body, CellDecl, Export, Init, Module, ParamDecl, ParamKind};
use crate::types::{Type, Types};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub(super) struct RawModule<'a> {
    /// The names of the module, parameters, cells and exports, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    /// The length of the module's name.
    name: Blob<'a>,
    tables: RawTables<'a>,
    params: Blob<'a>,
    /// The given initial values, concatenated.
    values: Blob<'a>,
    /// Length of the name, site, ports, noise, then counts of parameter ports, results,
    /// nodes, operands and values; then parameter types and results.
    cells: Blob<'a>,
    /// The nodes, operands and value types of all bodies, concatenated.
    arenas: RawArena<'a>,
    exports: Blob<'a>,
}

/// One arena, or several concatenated ones.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RawArena<'a> {
    /// Four words each; ids are stored as in memory: index plus one.
    #[serde(borrow)]
    pub(super) nodes: Blob<'a>,
    pub(super) operands: Blob<'a>,
    pub(super) value_types: Blob<'a>,
}

impl RawArena<'_> {
    pub(super) fn len(&self) -> usize {
        self.nodes.len() + self.operands.len() + self.value_types.len()
    }
}

/// An id from its representation in memory.
fn stored<T>(word: u32, id: impl Fn(usize) -> Option<T>) -> Option<T> {
    id((word as usize).checked_sub(1)?)
}

pub(super) fn read_arena(
    mut nodes: Words<'_>,
    operands: Words<'_>,
    value_types: Words<'_>,
) -> Result<Arena, LoadError> {
    let count = nodes.records(4)?;
    let mut read = Vec::with_capacity(count);
    for _ in 0..count {
        let [sig, operands, results, site] = nodes.array()?;
        let (Some(sig), Some(site)) = (stored(sig, SigId::try_new), stored(site, SiteId::try_new)) else {
            return Err(LoadError::malformed("a node has no signature or site"));
        };
        read.push(Node { sig, operands, results, site });
    }
    let operands = operands.members(|word| Some(Operand::from_word(word)))?;
    let value_types = value_types.members(|word| stored(word, TypeId::try_new))?;
    Arena::from_parts(read, operands, value_types).map_err(LoadError::malformed)
}

coded! { struct RawParam, 11 words: name, kind, ty, init, given, site }
coded! { enum ParamKind, 1 words: 0 = Param; 1 = Table; }
coded! { struct Export, 2 words: name, sig }

/// A parameter. Its given values are in a blob of their own.
struct RawParam {
    name: String,
    kind: ParamKind,
    ty: Type,
    /// The initialiser and its number.
    init: (u32, u32),
    /// The number of given values.
    given: u32,
    site: SiteId,
}

impl<'a> RawModule<'a> {
    pub(super) fn of(module: &'a Module) -> Self {
        let Module { tag: _, name, types, sigs, sites, params, cells, exports } = module;
        let mut text = String::new();
        let mut values = Vec::new();
        let param = |ParamDecl { name, kind, ty, init, site }: &ParamDecl| {
            let given = given_values(init);
            values.extend(given.iter().map(|value| value.to_bits()));
            let (init, given) = (init_words(init), given.len() as u32);
            RawParam { name: name.clone(), kind: *kind, ty: *ty, init, given, site: *site }
        };
        let raw_params: Vec<RawParam> = params.iter().map(param).collect();
        let name = write_all(std::slice::from_ref(name), &mut text);
        let params = write_all(&raw_params, &mut text);
        let mut cell_words = Vec::new();
        let (mut nodes, mut operands, mut value_types) = (Vec::new(), Vec::new(), Vec::new());
        for CellDecl { name, body, site } in cells {
            let Body { ports, noise, param_types, arena, results } = body;
            text.push_str(name);
            cell_words.extend([name.len() as u32, site.index() as u32, *ports as u32, u32::from(*noise)]);
            let (pool, types) = (arena.operand_pool(), arena.value_types());
            let counts = [param_types.len(), results.len(), arena.len(), pool.len(), types.len()];
            cell_words.extend(counts.map(|count| count as u32));
            cell_words.extend(param_types.iter().map(|id| id.index() as u32));
            cell_words.extend(results.iter().map(|id| id.index() as u32));
            nodes.extend_from_slice(arena.nodes());
            operands.extend_from_slice(pool);
            value_types.extend_from_slice(types);
        }
        let exports = write_all(exports, &mut text);
        let own = |blob: Blob<'_>| Blob(blob.0.into_owned().into());
        Self {
            text: Blob::bytes(text.into_bytes()),
            name,
            tables: RawTables::of(types.items(), sigs.items(), sites.items()),
            params,
            values: Blob::words(&values),
            cells: Blob::words(&cell_words),
            arenas: RawArena {
                nodes: own(Blob::plain(&nodes)),
                operands: own(Blob::plain(&operands)),
                value_types: own(Blob::plain(&value_types)),
            },
            exports,
        }
    }

    /// The size of the blobs that may be large.
    pub(super) fn size_hint(&self) -> usize {
        self.values.len() + self.arenas.len()
    }
}

impl RawModule<'_> {
    /// Decodes the module without verifying it.
    pub(super) fn read(&self) -> Result<Module, LoadError> {
        let mut text = Text::new(&self.text)?;
        let name: String = read_one(&self.name, "module name", &mut text)?;
        let mut module = Module::empty(&name);
        module.types = Types::default();
        self.tables.append(&mut module.types, &mut module.sigs, &mut module.sites)?;
        self.read_params(&mut text, &mut module)?;
        self.read_cells(&mut text, &mut module)?;
        module.exports = read_all(&self.exports, "exports", &mut text)?;
        text.end()?;
        Ok(module)
    }

    fn read_params<'b>(&'b self, text: &mut Text<'b>, module: &mut Module) -> Result<(), LoadError> {
        let (words, mut values) = (self.params.reader("parameters")?, self.values.reader("values")?);
        for RawParam { name, kind, ty, init, given, site } in read_all(&self.params, "parameters", text)? {
            let (kind_of_init, number) = init;
            let init = read_init(kind_of_init, f32::from_bits(number), values.take(given)?);
            let init = init.ok_or_else(|| words.refused(kind_of_init))?;
            module.params.push(ParamDecl { name, kind, ty, init, site });
        }
        values.end()
    }

    fn read_cells(&self, text: &mut Text<'_>, module: &mut Module) -> Result<(), LoadError> {
        let mut words = self.cells.reader("cells")?;
        let mut nodes = self.arenas.nodes.reader("nodes of cells")?;
        let mut operands = self.arenas.operands.reader("operands of cells")?;
        let mut value_types = self.arenas.value_types.reader("value types of cells")?;
        while words.len() > 0 {
            let [name, site, ports, noise] = words.array()?;
            let [param_types, results, node_count, operand_count, value_count] = words.array()?;
            let noise = match noise {
                0 => false,
                1 => true,
                _ => return Err(words.refused(noise)),
            };
            let four = node_count.checked_mul(4).ok_or_else(|| nodes.ended())?;
            let body = Body {
                ports: ports as usize,
                noise,
                param_types: words.take(param_types)?.members(|word| TypeId::try_new(word as usize))?,
                results: words.take(results)?.members(|word| ValueId::try_new(word as usize))?,
                arena: read_arena(
                    nodes.take(four)?,
                    operands.take(operand_count)?,
                    value_types.take(value_count)?,
                )?,
            };
            let site = SiteId::try_new(site as usize).ok_or_else(|| words.refused(site))?;
            module.cells.push(CellDecl { name: text.take(name)?, body, site });
        }
        nodes.end()?;
        operands.end()?;
        value_types.end()
    }
}

fn given_values(init: &Init) -> &[f32] {
    match init {
        Init::Values(values) => values,
        _ => &[],
    }
}

fn init_words(init: &Init) -> (u32, u32) {
    match init {
        Init::Constant(number) => (0, number.to_bits()),
        Init::Uniform(number) => (1, number.to_bits()),
        Init::Normal(number) => (2, number.to_bits()),
        Init::Glorot(number) => (3, number.to_bits()),
        Init::He => (4, 0),
        Init::Saxe(number) => (5, number.to_bits()),
        Init::Values(_) => (6, 0),
    }
}

fn read_init(word: u32, number: f32, given: Words<'_>) -> Option<Init> {
    let init = match word {
        0 => Init::Constant(number),
        1 => Init::Uniform(number),
        2 => Init::Normal(number),
        3 => Init::Glorot(number),
        4 => Init::He,
        5 => Init::Saxe(number),
        6 => {
            let values = given.words.iter().map(|word| f32::from_bits(u32::from_le_bytes(*word)));
            return Some(Init::Values(values.collect()));
        }
        _ => return None,
    };
    (given.len() == 0).then_some(init)
}

impl Module {
    /// Encodes the module as an `.abm` file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let raw = RawModule::of(self);
        seal(Kind::Module, &raw, raw.size_hint() + (1 << 12))
    }

    /// Decodes and verifies the bytes of an `.abm` file.
    ///
    /// # Errors
    /// If the bytes are not such a file or the module breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Arc<Self>, LoadError> {
        let module = open::<RawModule<'_>>(Kind::Module, bytes)?.read()?;
        module.verify()?;
        Ok(Arc::new(module))
    }
}

binary_file!(Kind::Module, Module => Arc<Module>, ".abm");
