//! Methods for a frontend in another language: it names lines of its own, and takes faults where they happen.

use crate::graph::emit::Graph;
use crate::graph::error::EmitError;
use crate::graph::site::Site;
use crate::id::SiteId;
use std::panic::Location;

/// Methods for frontends that are not written in Rust.
impl Graph {
    /// Removes the first fault and returns it, for frontends that report a fault where it happens. Poison
    /// values from before the call stay poison.
    pub fn take_fault(&self) -> Option<EmitError> {
        self.inner.borrow_mut().take_fault()
    }

    /// Declares a line of a program that is not written in Rust, for [`set_site`](Self::set_site).
    pub fn declare_site(&self, site: Site) -> SiteId {
        self.inner.borrow_mut().declare_site(site)
    }

    /// Emits nodes that name this line instead of their own, for library code that emits after its caller returned, such as
    /// the body of a future. A line that a frontend set stays.
    pub fn at<R>(&self, line: &'static Location<'static>, emit: impl FnOnce() -> R) -> R {
        let set = self.inner.borrow_mut().set_default_site(line);
        let emitted = emit();
        if set {
            self.set_site(None);
        }
        emitted
    }

    /// Sets the line that all following nodes and faults name instead of the caller's. `None` restores the
    /// caller's. [`clear`](Self::clear) forgets the line and all declared ones.
    pub fn set_site(&self, site: Option<SiteId>) {
        self.inner.borrow_mut().set_site(site);
    }
}
