//! Rule G16: the lengths of lists.
//!
//! A graph contains every list, so all lengths are known. In a body a list may be a port, whose length only a caller knows.
//! The verifier then stores the constraints of the body on its ports, and checks them at every call.

use crate::graph::lists::ListLengths;
use crate::graph::{Arena, Callee, Op, Signature};
use crate::id::ValueId;

/// A constraint of a cell on one of its list ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LengthConstraint {
    pub(super) port: u32,
    /// The first port that must have the same length; `port` itself if there is none.
    pub(super) like: u32,
    /// The length, if the body fixes it.
    pub(super) exactly: Option<u32>,
}

/// The known or symbolic length of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Known(u32),
    /// The length of the list at this port.
    Port(u32),
}

/// A union-find of the list ports of a body, by equal length.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// A smaller port of the same class, or the port itself.
    parent: Vec<u32>,
    /// The length of a class, stored at its smallest port.
    known: Vec<Option<u32>>,
    lists: ListLengths,
}

impl Lengths {
    pub(super) fn of_ports(ports: usize) -> Self {
        Self { parent: (0..ports as u32).collect(), known: vec![None; ports], lists: ListLengths::default() }
    }

    /// The length of a list. `None` for other values and for misplaced ports, which another rule reports.
    pub(super) fn of(&mut self, arena: &Arena, sigs: &[Signature], value: ValueId) -> Option<Length> {
        if value.index() >= arena.values() {
            return None;
        }
        match sigs.get(arena.node(arena.producer(value)).sig.index())?.callee {
            // A graph has no ports here.
            Callee::Op(Op::Port(_)) if value.index() < self.parent.len() => {
                Some(Length::Port(value.index() as u32))
            }
            _ => self.lists.of(arena, sigs, value).map(Length::Known),
        }
    }

    fn root(&mut self, mut port: u32) -> u32 {
        while self.parent[port as usize] != port {
            let above = self.parent[self.parent[port as usize] as usize];
            self.parent[port as usize] = above;
            port = above;
        }
        port
    }

    /// Requires that two lists have the same length.
    ///
    /// # Errors
    /// The two lengths, if both are known and differ.
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

    /// The constraints on callers.
    pub(super) fn into_constraints(mut self) -> Vec<LengthConstraint> {
        let mut constraints = Vec::new();
        for port in 0..self.parent.len() as u32 {
            let like = self.root(port);
            let exactly = self.known[like as usize];
            if like != port || exactly.is_some() {
                constraints.push(LengthConstraint { port, like, exactly });
            }
        }
        constraints
    }
}

fn agree(a: u32, b: u32) -> Result<(), (u32, u32)> {
    if a == b { Ok(()) } else { Err((a, b)) }
}
