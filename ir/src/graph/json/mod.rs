//! Graphs as JSON, for programs that do not read the binary format.
//!
//! A document contains the tables of [`GraphData`]. Ids are positions in the tables, types are spelled as in text, and
//! numbers that JSON lacks are strings. Names of callees accompany ids for human readers; the reader ignores them. A
//! document leaves out derived data: the types of values and the structural hash. The reader verifies the graph.
//!
//! Reading takes at most sixteen times the size of the document plus one mebibyte. So the reader
//! buffers no untyped data, and a node lists each of its results: a signature with many results costs
//! memory only if the document spells them out. `serde_json` rejects nesting beyond 128 levels.

mod document;
#[cfg(test)]
mod tests;

use crate::codec::{Kind, LoadError};
use crate::graph::{
    Arena, Bindings, FORMAT_VERSION, Float, GraphData, Node, Operand, OperandKind, Signature, Signatures,
    Site,
};
use crate::id::{MAX_INDEX, NodeId};
use crate::module::{Body, CellDecl, Module};
use crate::types::{Type, Types};
use document::{CellDoc, Document, Head, ModuleDoc, NodeDoc, Numbers, OperandDoc, SignatureDoc, Tables};
use std::sync::Arc;

const FORMAT: &str = "autobatch graph";

impl GraphData {
    /// The graph with its module as a JSON document; `pretty` indents it.
    ///
    /// # Errors
    /// If an operand is invalid, which a verified graph excludes.
    pub fn to_json(&self, pretty: bool) -> Result<String, serde_json::Error> {
        let module = &*self.module;
        let (types, sigs, sites) = self.own_tables();
        let document = Document {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            module: ModuleDoc::of(module)?,
            tables: Tables::of(module, types, sigs, sites),
            nodes: nodes_of(module, &self.sigs, &self.arena)?,
            cuts: self.cuts.clone(),
            outputs: self.outputs.clone(),
            shared: self.shared.clone(),
            alone: self.alone.clone(),
            words: self.bindings.words.clone(),
            floats: self.bindings.floats.iter().map(|&number| Float::new(number)).collect(),
        };
        if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }
    }

    /// Reads and verifies the graph in a JSON document.
    ///
    /// # Errors
    /// If the text is not such a document, or the graph violates a rule.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let malformed = |error: serde_json::Error| LoadError::malformed(message_of(&error));
        let Head { format, version } = serde_json::from_str(text).map_err(malformed)?;
        if format != FORMAT {
            return Err(LoadError::malformed(format!("the field format must be {FORMAT:?}")));
        }
        if version != FORMAT_VERSION {
            return Err(LoadError::Version { kind: Kind::Graph, found: version, known: FORMAT_VERSION });
        }
        let document: Document = serde_json::from_str(text).map_err(malformed)?;
        let module = document.module.read()?;
        module.verify()?;
        let mut data = Self::new(Arc::new(module));
        document.tables.append(&mut data.types, &mut data.sigs)?;
        data.sites.extend_exact(document.tables.sites);
        data.arena = read_arena(&document.nodes, &data.sigs)?;
        (data.cuts, data.outputs) = (document.cuts, document.outputs);
        (data.shared, data.alone) = (document.shared, document.alone);
        let floats = document.floats.iter().map(|number| number.get()).collect();
        data.bindings = Bindings { words: document.words, floats };
        data.verify()?;
        data.rehash();
        Ok(data)
    }
}

/// The message of a JSON error. It is cut, because it may quote the document.
fn message_of(error: &serde_json::Error) -> String {
    const SHOWN: usize = 400;
    let message = error.to_string();
    match message.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}.. at line {} column {}", &message[..end], error.line(), error.column()),
        None => message,
    }
}

impl Tables {
    fn of(module: &Module, types: &[Type], sigs: &[Signature], sites: &[Site]) -> Self {
        let doc = |signature: &Signature| SignatureDoc {
            name: module.callee_name(signature.callee),
            signature: signature.clone(),
        };
        Self { types: types.to_vec(), signatures: sigs.iter().map(doc).collect(), sites: sites.to_vec() }
    }

    /// Appends types and signatures. Ids must be in range and entries unique.
    fn append(&self, types: &mut Types, sigs: &mut Signatures) -> Result<(), LoadError> {
        for &ty in &self.types {
            let next = types.items().len();
            if types.intern(ty).index() != next {
                return Err(LoadError::malformed(format!("the type {ty} appears twice")));
            }
        }
        for SignatureDoc { name: _, signature } in &self.signatures {
            let Signature { callee: _, operands, params: _, param_types, results } = signature;
            let mut ids = operands.iter().chain(param_types).chain(results);
            if let Some(id) = ids.find(|id| id.index() >= types.items().len()) {
                return Err(LoadError::malformed(format!("a signature contains {id}, which does not exist")));
            }
            let next = sigs.items().len();
            if sigs.intern(signature.clone(), types).index() != next {
                return Err(LoadError::malformed(format!("signature {next} appears twice")));
            }
        }
        Ok(())
    }
}

impl ModuleDoc {
    fn of(module: &Module) -> Result<Self, serde_json::Error> {
        let Module { tag: _, name, types, sigs, sites, params, cells, exports } = module;
        let cell = |CellDecl { name, body, site }: &CellDecl| {
            let Body { ports, noise, param_types, arena, results } = body;
            Ok(CellDoc {
                name: name.clone(),
                ports: *ports,
                noise: *noise,
                param_types: param_types.clone(),
                nodes: nodes_of(module, sigs, arena)?,
                results: results.clone(),
                site: *site,
            })
        };
        Ok(Self {
            name: name.clone(),
            tables: Tables::of(module, types.items(), sigs.items(), sites.items()),
            params: params.clone(),
            cells: cells.iter().map(cell).collect::<Result<_, serde_json::Error>>()?,
            exports: exports.clone(),
        })
    }

    fn read(self) -> Result<Module, LoadError> {
        let mut module = Module::empty(&self.name);
        module.types = Types::default();
        self.tables.append(&mut module.types, &mut module.sigs)?;
        module.sites.extend_exact(self.tables.sites);
        (module.params, module.exports) = (self.params, self.exports);
        for CellDoc { name, ports, noise, param_types, nodes, results, site } in self.cells {
            let arena = read_arena(&nodes, &module.sigs)?;
            let body = Body { ports, noise, param_types, arena, results };
            module.cells.push(CellDecl { name, body, site });
        }
        Ok(module)
    }
}

fn nodes_of(module: &Module, sigs: &Signatures, arena: &Arena) -> Result<Vec<NodeDoc>, serde_json::Error> {
    let operand = |operand: &Operand| match operand.kind() {
        Some(OperandKind::Value(value)) => Ok(OperandDoc::Value(value)),
        Some(OperandKind::Index(slot)) => Ok(OperandDoc::Words(slot)),
        Some(OperandKind::Data(slot)) => Ok(OperandDoc::Floats(slot)),
        None => Err(serde::ser::Error::custom("an operand is invalid; verify the graph first")),
    };
    let node = |id: NodeId| {
        let node = arena.node(id);
        Ok(NodeDoc {
            name: module.callee_name(sigs.get(node.sig).callee),
            signature: node.sig,
            operands: arena.operands(id).iter().map(operand).collect::<Result<_, _>>()?,
            results: Numbers { first: arena.results(id).start as u32, count: arena.results(id).len() as u32 },
            site: node.site,
        })
    };
    arena.ids().map(node).collect()
}

/// Reads an arena. Results have consecutive ids and the types of the signature.
fn read_arena(documents: &[NodeDoc], sigs: &Signatures) -> Result<Arena, LoadError> {
    let (mut nodes, mut operands, mut types) = (Vec::with_capacity(documents.len()), Vec::new(), Vec::new());
    for (number, document) in documents.iter().enumerate() {
        let Some(signature) = sigs.items().get(document.signature.index()) else {
            let message = format!("node {number} has {}, which does not exist", document.signature);
            return Err(LoadError::malformed(message));
        };
        nodes.push(Node {
            sig: document.signature,
            operands: operands.len() as u32,
            results: types.len() as u32,
            site: document.site,
        });
        for &operand in &document.operands {
            operands.push(match operand {
                OperandDoc::Value(value) => Operand::value(value),
                OperandDoc::Words(slot) if slot as usize <= MAX_INDEX => Operand::index(slot),
                OperandDoc::Floats(slot) if slot as usize <= MAX_INDEX => Operand::data(slot),
                OperandDoc::Words(slot) | OperandDoc::Floats(slot) => {
                    return Err(LoadError::malformed(format!("{slot} is not a slot of a pool")));
                }
            });
        }
        let Numbers { first, count } = document.results;
        let (next, expected) = (types.len(), signature.results.len());
        if count as usize != expected || (count > 0 && first as usize != next) {
            let message =
                format!("node {number} has {expected} results from %{next}, found {count} from %{first}");
            return Err(LoadError::malformed(message));
        }
        types.extend_from_slice(&signature.results);
        if types.len().max(operands.len()) > MAX_INDEX {
            return Err(LoadError::malformed("an arena has too many operands or values"));
        }
    }
    Arena::from_parts(nodes, operands, types).map_err(LoadError::malformed)
}
