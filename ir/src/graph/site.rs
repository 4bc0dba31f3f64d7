//! Source locations of nodes.

use crate::getters::getters;
use crate::hash::BuildMix;
use crate::id::SiteId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

/// A source location.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// The file, as named by the compiler.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl From<&Location<'_>> for Site {
    fn from(location: &Location<'_>) -> Self {
        Self { file: location.file().to_owned(), line: location.line(), column: location.column() }
    }
}

const CACHE: usize = 64;

/// The source locations of a module or graph, in the order of first use.
///
/// A small direct-mapped cache, indexed by address, serves most lookups: an emitter asks for the same
/// few dozen locations millions of times.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    items: Vec<Site>,
    by_location: HashMap<usize, SiteId, BuildMix>,
    cache: Vec<Option<(usize, SiteId)>>,
    /// The location of all following nodes, for frontends that are not written in Rust.
    current: Option<SiteId>,
}

impl Sites {
    /// The id of a location in this program, or the [current](Self::set_current) site if one is set.
    #[inline]
    pub fn of(&mut self, location: &'static Location<'static>) -> SiteId {
        if let Some(current) = self.current {
            return current;
        }
        let address = std::ptr::from_ref(location) as usize;
        let place = (address >> 3) % CACHE;
        match self.cache.get(place) {
            Some(Some((cached, id))) if *cached == address => *id,
            _ => self.of_uncached(location, address, place),
        }
    }

    #[cold]
    fn of_uncached(&mut self, location: &'static Location<'static>, address: usize, place: usize) -> SiteId {
        let id = match self.by_location.get(&address) {
            Some(&id) => id,
            None => {
                let id = self.intern(location.into());
                self.by_location.insert(address, id);
                id
            }
        };
        self.cache.resize(CACHE, None);
        self.cache[place] = Some((address, id));
        id
    }

    /// Sets the site that replaces the locations of callers. `None` restores them.
    pub fn set_current(&mut self, site: Option<SiteId>) {
        self.current = site;
    }

    getters! {
        /// The site that replaces the locations of callers.
        current(self) -> Option<&Site> = self.current.map(|id| self.get(id));
        /// The site with this id.
        get(self, id: SiteId) -> &Site = &self.items[id.index()];
        /// All sites in the order of their ids.
        items(self) -> &[Site] = &self.items;
    }

    /// The id of a site that was read from a file.
    pub fn intern(&mut self, site: Site) -> SiteId {
        let number = self.items.iter().position(|known| *known == site).unwrap_or(self.items.len());
        if number == self.items.len() {
            self.items.push(site);
        }
        SiteId::new(number)
    }

    /// Appends a site without looking for an equal one.
    pub(crate) fn push(&mut self, site: Site) -> SiteId {
        self.items.push(site);
        SiteId::new(self.items.len() - 1)
    }

    /// Appends sites under the next ids without looking for equal ones, because a file refers to sites by position.
    pub(crate) fn extend_exact(&mut self, sites: Vec<Site>) {
        self.items.reserve_exact(sites.len());
        self.items.extend(sites);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.by_location.retain(|_, id| id.index() < len);
        self.cache.clear();
        self.current = None;
    }
}

impl PartialEq for Sites {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl FromIterator<Site> for Sites {
    fn from_iter<I: IntoIterator<Item = Site>>(sites: I) -> Self {
        Self { items: sites.into_iter().collect(), ..Self::default() }
    }
}
