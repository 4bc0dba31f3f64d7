# Train, interrupt, resume. The resumed run ends with the bits of a run without interruption.
train="autobatch train names --count 200 --hidden 8 --threads 1"
$train --epochs 3 --save whole.safetensors > whole.log
$train --epochs 1 --save part.safetensors > part.log
$train --epochs 3 --resume part.safetensors --save rest.safetensors > rest.log
# A file ends with its arrays. The header before them also holds the times of the epochs.
arrays() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"; }
cmp <(arrays whole.safetensors) <(arrays rest.safetensors) && echo 'equal bits'
# Ctrl-C in the middle of an epoch writes a checkpoint and says how to continue.
$train --epochs 100000 --save interrupted.safetensors > interrupted.log 2>&1 &
while [ ! -e interrupted.safetensors ]; do sleep 0.1; done
kill -INT $!
wait $! || echo "exit code $?"
grep -o 'autobatch train names.*' interrupted.log | tail -1
