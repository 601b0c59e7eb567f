# Shared by the set-up scripts; sourced, not run.

log=.setup.log

# fail MESSAGE: say why in one line and stop.
fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

# step DESCRIPTION COMMAND...: run a command; of its output show only the reason of a failure,
# which leaves out what the description has in brackets.
step() {
    description=$1
    shift
    printf 'setup: %s\n' "$description" >&2
    if ! "$@" >"$log" 2>&1; then
        # pip's and npm's own reason, else the last line that is not empty.
        reason=$(grep -iE '^(npm )?error' "$log" | tail -n 1)
        [ -n "$reason" ] || reason=$(grep . "$log" | tail -n 1)
        fail "${description%% (*} failed: $reason (all of it in $log)"
    fi
    rm -f "$log"
}

# pip_install ARGUMENT...: install into .venv, prebuilt packages only.
pip_install() {
    .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check "$@"
}

# node_runs PROGRAM: whether that Node.js starts and is new enough for the CDK and jsii.
node_runs() {
    "$1" -e 'process.exit(parseInt(process.versions.node, 10) >= 22 ? 0 : 1)' 2>/dev/null
}
