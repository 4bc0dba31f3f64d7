//! A cell whose number of ports is known when it is traced, not when it is compiled.
//!
//! Options of a layer add ports (an input, dropout masks), and tree layers have as many as children.
//! Stable const generics cannot count `2 * N + 1`, so the handle of such a cell is an enum over the
//! few numbers that occur. Layers stay `Copy`, and a call costs one more jump.

use autobatch_ir::{Cell, Graph, ModuleBuilder, Shape, Type, Value, f32, list};
use std::panic::Location;

/// The most ports that a cell of this crate has.
pub(crate) const MOST_PORTS: usize = 9;

/// The type of a vector port. A width that is no extent gives a stand-in: the parameter that has
/// this width was refused before, so nothing is traced any more.
pub(crate) fn vector(width: usize) -> Type {
    matrix(&[width])
}

/// The type of a port of any shape, with the same stand-in.
pub(crate) fn matrix(extents: &[usize]) -> Type {
    let elements = extents.iter().try_fold(1u64, |n, &extent| n.checked_mul(extent as u64));
    let fits = elements.is_some_and(|n| (1..=Shape::MAX_ELEMENTS).contains(&n));
    if fits { f32(extents) } else { f32([1]) }
}

/// The type of a port that takes a list of vectors.
pub(crate) fn list_of(width: usize) -> Type {
    list(vector(width))
}

macro_rules! any_cell {
    ($($variant:ident $ports:literal)*) => {
        /// A cell with one to [`MOST_PORTS`] ports, all of them values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum AnyCell<const OUT: usize> {
            /// The declaration was refused; calls give poison.
            Refused(Cell<0, OUT>),
            $($variant(Cell<$ports, OUT>),)*
        }

        impl<const OUT: usize> AnyCell<OUT> {
            /// Traces `body` once, on ports of these types.
            #[track_caller]
            pub(crate) fn trace(
                m: &mut ModuleBuilder,
                name: &str,
                ports: &[Type],
                body: impl for<'g> FnOnce(&'g Graph, &[Value<'g>]) -> [Value<'g>; OUT],
            ) -> Self {
                match ports.len() {
                    $($ports => {
                        let ports: [Type; $ports] = std::array::from_fn(|place| ports[place]);
                        Self::$variant(m.cell(name, ports, |g, values| body(g, &values)))
                    })*
                    found => {
                        let message = format!("a layer's cell has 1 to {MOST_PORTS} ports, found {found}");
                        let help = Some("use fewer children or a smaller window".to_owned());
                        m.fail(&format!("cell @{name}"), message, help, Location::caller());
                        Self::Refused(m.cell(name, [], |g, []| [g.constant(0.0); OUT]))
                    }
                }
            }

            /// Applies the cell.
            #[track_caller]
            #[inline]
            pub(crate) fn call<'g>(self, g: &'g Graph, args: &[Value<'g>]) -> [Value<'g>; OUT] {
                match self {
                    Self::Refused(cell) => g.call(cell, [] as [Value<'g>; 0]),
                    $(Self::$variant(cell) => match <[Value<'g>; $ports]>::try_from(args) {
                        Ok(args) => g.call(cell, args),
                        Err(_) => wrong_count(g, $ports, args.len(), Location::caller()),
                    })*
                }
            }
        }
    };
}

any_cell! { One 1 Two 2 Three 3 Four 4 Five 5 Six 6 Seven 7 Eight 8 Nine 9 }

#[cold]
fn wrong_count<'g, const OUT: usize>(
    g: &'g Graph,
    wanted: usize,
    found: usize,
    caller: &'static Location<'static>,
) -> [Value<'g>; OUT] {
    let message = format!("the layer takes {wanted} values, found {found}");
    let help = "layers declared with an input take one in every call, the others never do";
    [g.refuse("call", &message, help, caller); OUT]
}
