# Write a model with a new cell in a crate of its own, and train it.
mkdir own && cd own
cp -r "$AUTOBATCH/tests/errands/own_cell/src" .
sed "s|@AUTOBATCH@|$AUTOBATCH|" "$AUTOBATCH/tests/errands/own_cell/Cargo.toml.in" > Cargo.toml
# The versions of all dependencies are those of the repository, so that nothing is downloaded.
cp "$AUTOBATCH/Cargo.lock" .
cargo run --quiet --offline
# The program's graphs and plans can be inspected.
AUTOBATCH_DUMP=dump cargo run --quiet --offline > /dev/null
ls dump | sed 's/.*\.//' | sort -u
