#!/usr/bin/env bash
# Build wheel and sdist, install each in clean environments, and use what was installed: the light core first, with the
# pip lines of what is absent, then everything but torch and Dask. `tools/check_wheel.sh PYTHON...`, by default python3.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
pythons=("${@:-python3}")
# those of the core that take seconds and read nothing of the repository; all with TESTS=tests
tests="${TESTS:-tests/test_groups.py tests/test_path.py tests/test_preprocess.py tests/tables tests/persistence}"

"${pythons[0]}" -m venv "$work/build"
"$work/build/bin/pip" install -qq --disable-pip-version-check build
"$work/build/bin/python" -m build --outdir "$work/dist" "$root" >/dev/null
wheel="$(ls "$work"/dist/*.whl)"
sdist="$(ls "$work"/dist/*.tar.gz)"
cd "$work" # nothing of the working tree is imported from here

check() { # PYTHON, what to install
  rm -rf "$work/env"
  "$1" -m venv "$work/env"
  "$work/env/bin/pip" install -qq --disable-pip-version-check "$2"
}

for python in "${pythons[@]}"; do
  "$python" --version
  check "$python" "$wheel"
  "$work/env/bin/python" "$root/tools/smoke_core.py"
  "$work/env/bin/pip" install -qq --disable-pip-version-check "${wheel}[cli,plot,formula]" pytest hypothesis
  PATH="$work/env/bin:$PATH" python "$root/tools/smoke_extras.py"
  rm -rf tests && cp -r "$root/tests" tests
  "$work/env/bin/python" -m pytest -q --import-mode=importlib -o pythonpath=tests $tests
done
check "${pythons[0]}" "$sdist"
"$work/env/bin/python" "$root/tools/smoke_core.py"
echo "wheel and sdist: fine"
