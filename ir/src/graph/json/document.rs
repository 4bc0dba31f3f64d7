//! The fields of a JSON document.

use crate::graph::{Cut, Float, Output, Signature, Site};
use crate::id::{NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Export, ParamDecl};
use crate::types::Type;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The fields that identify a document. They are read first, because the other fields of another
/// version may have another shape.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) module: ModuleDoc,
    pub(super) tables: Tables,
    pub(super) nodes: Vec<NodeDoc>,
    pub(super) cuts: Vec<Cut>,
    pub(super) outputs: Vec<Output>,
    pub(super) shared: Vec<ValueId>,
    pub(super) alone: Vec<NodeId>,
    pub(super) words: Vec<u32>,
    pub(super) floats: Vec<Float>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ModuleDoc {
    pub(super) name: String,
    pub(super) tables: Tables,
    pub(super) params: Vec<ParamDecl>,
    pub(super) cells: Vec<CellDoc>,
    pub(super) exports: Vec<Export>,
}

/// The tables of a module, or the further entries of a graph.
#[derive(Serialize, Deserialize)]
pub(super) struct Tables {
    pub(super) types: Vec<Type>,
    pub(super) signatures: Vec<SignatureDoc>,
    pub(super) sites: Vec<Site>,
}

#[derive(Serialize)]
pub(super) struct SignatureDoc {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) signature: Signature,
}

/// Written by hand, because a derived implementation buffers flattened structs at thirty bytes a digit.
impl<'de> Deserialize<'de> for SignatureDoc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { name: String::new(), signature: Signature::deserialize(deserializer)? })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct CellDoc {
    pub(super) name: String,
    pub(super) ports: usize,
    pub(super) noise: bool,
    pub(super) param_types: Vec<TypeId>,
    pub(super) nodes: Vec<NodeDoc>,
    pub(super) results: Vec<ValueId>,
    pub(super) site: SiteId,
}

#[derive(Serialize, Deserialize)]
pub(super) struct NodeDoc {
    #[serde(skip_deserializing)]
    pub(super) name: String,
    pub(super) signature: SigId,
    pub(super) operands: Vec<OperandDoc>,
    pub(super) results: Numbers,
    pub(super) site: SiteId,
}

/// Consecutive numbers, written as a list and read without storing it.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.first..self.first + self.count)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of consecutive numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Numbers, A::Error> {
        let mut numbers = Numbers { first: 0, count: 0 };
        while let Some(next) = items.next_element::<u32>()? {
            if numbers.count == 0 {
                numbers.first = next;
            } else if numbers.first.checked_add(numbers.count) != Some(next) {
                let message = format!("the results of a node have consecutive numbers, found {next}");
                return Err(serde::de::Error::custom(message));
            }
            numbers.count += 1;
        }
        Ok(numbers)
    }
}

/// `{"value": 3}`, `{"words": 0}`: a value, or a place in a pool.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OperandDoc {
    Value(ValueId),
    Words(u32),
    Floats(u32),
}
