#!/usr/bin/env bash
# install.sh VENV: an SGLang that serves tiny models on a CPU, in an environment of its own.
#
# No CUDA packages, no GPU, no model download: about 3.3 GB and two minutes. Needs Python 3.11
# (PYTHON names another one). Where the default torch is a CUDA build, name an index of CPU builds
# in TORCH_INDEX. A second call installs only what has changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
version=0.5.23
recipe=1                                  # count up when the steps below change
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

digest() { cat "$@" | sha256sum | cut -c1-16; }
done_before() { [ "$(cat "$venv/.done-$1" 2>/dev/null)" = "$2" ]; }
note_done() { echo "$2" > "$venv/.done-$1"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

requirements() { # of a wheel, without those that need CUDA or that no text model on a CPU uses
  "$venv/bin/python" - "$1" <<'PY'
import re, sys, zipfile
LEFT_OUT = set("""torch torchaudio torchvision torchcodec cuda-python flash-attn-4
flashinfer_python humming-kernels kernels nvidia-cutlass-dsl nvidia-mathdx nvshmem4py-cu13
quack-kernels sgl-deep-ep sgl-deep-gemm sgl-flash-mla sglang-kernel tilelang torch_memory_saver
timm deepseek-recipe tml-renderers modelscope decord2 smg-grpc-servicer""".split())
wheel = zipfile.ZipFile(sys.argv[1])
name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
for line in wheel.read(name).decode().splitlines():
    if line.startswith("Requires-Dist: ") and "extra ==" not in line:
        requirement = line.partition(": ")[2]
        if re.match(r"[A-Za-z0-9_.-]+", requirement).group(0) not in LEFT_OUT:
            print(requirement)
PY
}

install_engine() {
  echo "building an environment with SGLang $version in $venv (about two minutes) ..." >&2
  "${PYTHON:-python3.11}" -m venv --clear "$venv"
  local pip=$venv/bin/pip
  "$pip" install -q torch==2.13.0 setuptools wheel \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}
  "$pip" download -q --no-deps -d "$work" "sglang==$version"
  requirements "$work"/sglang-*.whl > "$work/requirements.txt"
  "$pip" install -q -r "$work/requirements.txt" -c "$here/constraints.txt"
  "$pip" install -q --no-deps "$work"/sglang-*.whl torchvision==0.28.0
  # That torchvision is a CUDA build: the two operators that its Python part registers are declared
  # here, so that it can be imported.
  cat >> "$venv"/lib/python3*/site-packages/torchvision/extension.py <<'PY'

if not _has_ops():
    _cpu_lib = torch.library.Library("torchvision", "DEF")
    for _n in ("nms", "qnms"):
        _cpu_lib.define(_n + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
PY
}

install_shim() {
  cp -r "$here/shim" "$work/shim"         # building writes beside the sources
  "$venv/bin/pip" install -q --no-deps --no-build-isolation --force-reinstall "$work/shim"
  SGLANG_USE_CPU_ENGINE=1 "$venv/bin/python" -c \
    "import sglang; assert sglang.__version__ == '$version', sglang.__version__"
}

engine_is="$version recipe $recipe $(digest "$here/constraints.txt")"
shim_is=$(digest "$here"/shim/pyproject.toml "$here"/shim/src/*/*.py)
if ! done_before engine "$engine_is"; then
  install_engine
  note_done engine "$engine_is"
fi
if ! done_before shim "$shim_is"; then
  install_shim
  note_done shim "$shim_is"
fi
