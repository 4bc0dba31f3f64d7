#!/usr/bin/env bash
# Builds the planner of the inspector's page: page/inspector.wasm. Needs `rustup target add wasm32-unknown-unknown`.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd .. && pwd)
# The file names places in the sources. They must not depend on the machine.
flags="--remap-path-prefix=$root=."
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    flags+=" --remap-path-prefix=$registry=crates"
done
RUSTFLAGS="$flags" cargo build --release --locked --manifest-path wasm/Cargo.toml \
    --target wasm32-unknown-unknown --target-dir "$root/target/wasm"
cp "$root/target/wasm/wasm32-unknown-unknown/release/autobatch_inspector_wasm.wasm" page/inspector.wasm
if grep -aq -e "$root" -e "$HOME" page/inspector.wasm; then
    echo 'page/inspector.wasm names a folder of this machine' >&2
    exit 1
fi
ls -l page/inspector.wasm
