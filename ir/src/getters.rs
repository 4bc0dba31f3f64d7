//! Tables of getters.

/// Declares public methods that return one expression over `&self`: `name(self, arguments) -> type = expression`.
macro_rules! getters {
    ($(
        $(#[$doc:meta])*
        $name:ident($this:ident $(, $argument:ident: $type:ty)*) -> $result:ty = $value:expr;
    )*) => {$(
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name(&$this $(, $argument: $type)*) -> $result {
            $value
        }
    )*};
}
pub(crate) use getters;
