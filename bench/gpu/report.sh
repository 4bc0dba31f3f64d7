#!/bin/sh
# Reports on the GPU of this machine: ./report.sh [--device gpu:1] [--json FILE]. It calls no other program than the one beside
# it, so it needs no PATH.
here=${0%/*}
[ "$here" = "$0" ] && here=.
here=$(cd "$here" && pwd) || exit 1

any() {
    for file in "$@"; do
        [ -e "$file" ] && return 0
    done
    return 1
}

# The system's loader of Vulkan, else the one beside this script.
if ! any /usr/lib/*/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/lib/libvulkan.so.1 /usr/local/lib/libvulkan.so.1; then
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib
    export LD_LIBRARY_PATH
fi

# An NVIDIA driver whose description is missing, as in containers.
if [ -z "$VK_DRIVER_FILES$VK_ICD_FILENAMES$VK_ADD_DRIVER_FILES" ] &&
    ! any /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json &&
    any /usr/lib/*/libEGL_nvidia.so.0 /usr/lib64/libEGL_nvidia.so.0 /usr/lib/libEGL_nvidia.so.0; then
    VK_DRIVER_FILES=$here/icd/nvidia_icd.json
    VK_ICD_FILENAMES=$VK_DRIVER_FILES
    export VK_DRIVER_FILES VK_ICD_FILENAMES
fi

case " $* " in
    *" --json"*) ;;
    *) set -- --json gpu-report.json "$@" ;;
esac
exec "$here/autobatch" doctor --gpu "$@"
