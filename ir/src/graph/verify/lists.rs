//! Rule G16: the lengths of lists.
//!
//! In a graph every list is written down, so its length is known. In a body a list may be a port,
//! whose length only a caller knows: what the body demands of its ports is then kept as the cell's
//! *needs*, and asked of every call.

use crate::graph::{Arena, Callee, Op, Signature};
use crate::id::ValueId;

/// What a cell demands of one of its list ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListNeed {
    pub(super) port: u32,
    /// The first port that must be equally long; `port` itself where there is none.
    pub(super) like: u32,
    /// The length, where the body fixes it.
    pub(super) exactly: Option<u32>,
}

/// What is known of the length of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Known(u32),
    /// That of the list that enters at this port.
    Port(u32),
}

/// The classes of equally long list ports of a body.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// A smaller port of the same class, or the port itself.
    parent: Vec<u32>,
    /// The length of a class, at its smallest port.
    known: Vec<Option<u32>>,
}

impl Lengths {
    pub(super) fn of_ports(ports: usize) -> Self {
        Self { parent: (0..ports as u32).collect(), known: vec![None; ports] }
    }

    /// How many ports there are; none in a graph.
    pub(super) fn ports(&self) -> usize {
        self.parent.len()
    }

    fn root(&mut self, mut port: u32) -> u32 {
        while self.parent[port as usize] != port {
            let above = self.parent[self.parent[port as usize] as usize];
            self.parent[port as usize] = above;
            port = above;
        }
        port
    }

    /// Demands that two lists be equally long.
    ///
    /// # Errors
    /// The two lengths, if they are known and differ.
    pub(super) fn join(&mut self, a: Length, b: Length) -> Result<(), (u32, u32)> {
        match (a, b) {
            (Length::Known(a), Length::Known(b)) => agree(a, b),
            (Length::Known(length), Length::Port(port)) | (Length::Port(port), Length::Known(length)) => {
                let root = self.root(port) as usize;
                match self.known[root] {
                    Some(known) => agree(known, length),
                    None => {
                        self.known[root] = Some(length);
                        Ok(())
                    }
                }
            }
            (Length::Port(a), Length::Port(b)) => {
                let (a, b) = (self.root(a), self.root(b));
                let (low, high) = (a.min(b), a.max(b));
                if low == high {
                    return Ok(());
                }
                self.parent[high as usize] = low;
                match (self.known[low as usize], self.known[high as usize]) {
                    (Some(a), Some(b)) => agree(a, b),
                    (a, b) => {
                        self.known[low as usize] = a.or(b);
                        Ok(())
                    }
                }
            }
        }
    }

    /// The demands on callers.
    pub(super) fn into_needs(mut self) -> Vec<ListNeed> {
        let mut needs = Vec::new();
        for port in 0..self.parent.len() as u32 {
            let like = self.root(port);
            let exactly = self.known[like as usize];
            if like != port || exactly.is_some() {
                needs.push(ListNeed { port, like, exactly });
            }
        }
        needs
    }
}

fn agree(a: u32, b: u32) -> Result<(), (u32, u32)> {
    if a == b { Ok(()) } else { Err((a, b)) }
}

/// The length of a list of an arena with so many ports; `None` for what is no list, and for a port
/// where none may be, which is a finding of its own.
pub(super) fn length_of(arena: &Arena, sigs: &[Signature], ports: usize, value: ValueId) -> Option<Length> {
    if value.index() >= arena.values() {
        return None;
    }
    let node = arena.producer(value);
    match sigs.get(arena.node(node).sig.index())?.callee {
        Callee::Op(Op::List) => Some(Length::Known(arena.operands(node).len() as u32)),
        Callee::Op(Op::Port(_)) if value.index() < ports => Some(Length::Port(value.index() as u32)),
        _ => None,
    }
}
