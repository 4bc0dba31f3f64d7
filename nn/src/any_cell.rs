//! Cells whose number of ports is known at tracing, not at compile time.
//!
//! Options of a layer add ports (an input, dropout masks), and tree layers have ports per child.
//! Stable const generics cannot express `2 * N + 1`, so the handle of such a cell is an enum over the
//! few numbers that occur. Layers stay `Copy`, and a call costs one more jump.

use autobatch_ir::{Cell, Graph, ModuleBuilder, Shape, Type, Value, f32, list};
use std::panic::Location;

/// The maximum number of ports of a cell of this crate.
pub(crate) const MAX_PORTS: usize = 9;

/// The type of a vector port. An invalid width gives a placeholder: the declaration of the parameter
/// with this width has failed already, so nothing is traced.
pub(crate) fn vector(width: usize) -> Type {
    matrix(&[width])
}

/// The type of a port of any shape, with the same placeholder.
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
        /// A cell with one to [`MAX_PORTS`] ports, all of them values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum AnyCell<const OUT: usize> {
            /// The declaration failed; calls give invalid values.
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
                        let message = format!("a layer's cell has 1 to {MAX_PORTS} ports, found {found}");
                        let help = Some("use fewer children or a smaller window".to_owned());
                        m.fail(&format!("cell @{name}"), message, help, Location::caller());
                        Self::Refused(m.cell(name, [], |g, []| [g.constant(0.0); OUT]))
                    }
                }
            }

            /// Calls the cell.
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
    expected: usize,
    found: usize,
    caller: &'static Location<'static>,
) -> [Value<'g>; OUT] {
    let message = format!("the layer takes {expected} values, found {found}");
    let help = "a layer declared with an input takes one in every call; other layers take none";
    [g.refuse("call", &message, help, caller); OUT]
}
