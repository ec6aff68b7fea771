# Makes .venv in the checkout with the package and the extras named in $extras installed; sourced by demo and test.
# Leaves $python, the environment's interpreter. Nothing is installed again while pyproject.toml is unchanged. uv installs in
# a fifth of pip's time; where it cannot (an index that only pip is told of), pip does.
root=$(cd "$(dirname "$0")/.." && pwd)
host=
for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        host=$candidate
        break
    fi
done
if [ -z "$host" ]; then
    echo "Python 3.11 or newer is needed (set PYTHON to one)" >&2
    exit 1
fi
venv=${AGENT_MAILBOX_VENV:-$root/.venv}
python=$venv/bin/python
stamp=$venv/.installed$extras
if [ ! -x "$python" ]; then
    "$host" -m venv "$venv" || {
        echo "could not make a virtual environment (on Debian: apt-get install python3-venv)" >&2
        exit 1
    }
fi
if ! cmp -s "$root/pyproject.toml" "$stamp"; then
    pip() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }
    { pip uv && "$python" -m uv pip install --quiet --python "$python" --editable "$root$extras"; } 2>/dev/null ||
        pip --editable "$root$extras"
    cp "$root/pyproject.toml" "$stamp"
fi
