#!/usr/bin/env bash
# Makes a folder that reports on the GPU of another Linux machine, and packs it. That machine needs a driver and nothing else.
#
#     bench/gpu/bundle.sh [--program FILE] [FOLDER]
#
# Without --program it builds the command line: against glibc 2.28 if cargo-zigbuild is installed (`pip install cargo-zigbuild
# ziglang`), else against the glibc of this machine. A build with musl could not load drivers. FOLDER is target/gpu-report.
# A FOLDER that exists is replaced only if it is such a bundle.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/../.."

program=
folder=$PWD/target/gpu-report
most=$((40 << 20))
while [ $# -gt 0 ]; do
    case $1 in
        --program) program=${2:?--program needs a file}; shift 2 ;;
        -*) echo "unknown option $1; see the head of $0" >&2; exit 2 ;;
        *) folder=$1; shift ;;
    esac
done
# Paths are relative to the folder of the caller.
case $folder in /*) ;; *) folder=$from/$folder ;; esac
case $program in '' | /*) ;; *) program=$from/$program ;; esac
if [ -e "$folder" ] && ! [ -e "$folder/report.sh" ]; then
    echo "$folder exists and is no bundle; name another folder" >&2
    exit 1
fi

if [ -z "$program" ]; then
    export CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false
    built=${CARGO_TARGET_DIR:-target}
    if command -v cargo-zigbuild >/dev/null; then
        triple=$(uname -m)-unknown-linux-gnu
        cargo zigbuild --release -p autobatch-cli --features gpu --locked --target "$triple.2.28"
        program=$built/$triple/release/autobatch
    else
        echo 'cargo-zigbuild is not installed: the bundle needs a glibc as new as that of this machine' >&2
        cargo build --release -p autobatch-cli --features gpu --locked
        program=$built/release/autobatch
    fi
fi

rm -rf "$folder"
mkdir -p "$folder/lib" "$folder/icd"
cp "$program" "$folder/autobatch"
cp bench/gpu/report.sh bench/gpu/README.txt "$folder"
cp bench/gpu/nvidia_icd.json "$folder/icd"
# A loader of Vulkan, for machines whose driver came without one.
loader=
for place in /usr/lib/*/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/lib/libvulkan.so.1; do
    [ -z "$loader" ] && [ -e "$place" ] && loader=$place
done
if [ -n "$loader" ]; then
    cp -L "$loader" "$folder/lib/libvulkan.so.1"
else
    echo 'this machine has no libvulkan.so.1: the bundle depends on that of the other machine' >&2
fi
if [ -n "${program##*/debug/*}" ]; then
    bytes=$(find "$folder" -type f -exec cat {} + | wc -c)
    if [ "$bytes" -gt "$most" ]; then
        echo "the bundle has $bytes bytes, more than $most" >&2
        exit 1
    fi
    tar -czf "$folder.tar.gz" -C "$(dirname "$folder")" "$(basename "$folder")"
    echo "$folder.tar.gz: $(wc -c <"$folder.tar.gz") bytes, $bytes unpacked"
fi
