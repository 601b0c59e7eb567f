"""kubectl for a process that stands for a pod: does to it what kubectl does to a pod.

`installed` puts it on the PATH. Its port-forward has the ways of kubectl 1.23 and later: it prints
a line for each connection, and when one connection fails it ends, with all the others
(kubernetes/kubernetes#103526, kubernetes/kubectl#1169).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it starts for every call, so nothing that it does not need
    import pytest

SCRIPT = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.standin.kubectl import main
main({state!r})
"""


@dataclass
class Standin:
    """What it stands for, and what it is to do wrong.

    Attributes
    ----------
    pid, port : int
        The process that is the pod's container, and where it serves.
    pre_stop : bool
        Whether the container has a preStop hook.
    hook_path : str
        What it asks of the gate.
    spec, metadata : dict
        What is in the pod's, besides.
    others : list of str
        Pods of the same owner that are ready.
    no_programs : list of str
        Programs that the image does not have.
    fails : dict
        By command: what it says before it ends with status 1.
    answers : dict
        By command: what it prints instead, as if all were well.
    silent : list of str
        Commands that never say or do anything.
    chatter : int
        Bytes that a port-forward prints for each connection, besides.
    breaks_at : int
        Connection with which a port-forward loses the pod, whatever the pod does; 0: none.
    dies_with_process_1 : bool
        Whether `exec` ends as what runs in a container does that ends.
    """

    folder: str
    pid: int
    port: int = 5000
    pre_stop: bool = True
    hook_path: str = "/drain"
    spec: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    no_programs: list[str] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    chatter: int = 0
    breaks_at: int = 0
    dies_with_process_1: bool = False

    @property
    def asked(self) -> list[list[str]]:
        """Arguments of each call, without the namespace."""
        log = Path(self.folder, "asked")
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line)["arguments"][2:] for line in lines]

    @property
    def marked(self) -> bool:
        """Whether the pod was deleted."""
        return Path(self.folder, "marked").exists()

    @property
    def environments(self) -> list[dict[str, str]]:
        """Environment of each call."""
        lines = Path(self.folder, "asked").read_text().splitlines()
        return [json.loads(line)["environment"] for line in lines]

    @property
    def pids(self) -> list[int]:
        """Process of each call."""
        lines = Path(self.folder, "asked").read_text().splitlines()
        return [json.loads(line)["pid"] for line in lines]


def installed(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Standin:
    """Make it the kubectl of this process and those that it starts."""
    folder = Path(standin.folder)
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(json.dumps(asdict(standin)))
    program = folder / "kubectl"
    state = str(folder / "state.json")
    program.write_text(
        SCRIPT.format(
            python=sys.executable, root=str(Path(__file__).resolve().parents[2]), state=state
        )
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return standin


def main(state: str) -> None:
    """Carry out one call."""
    standin = Standin(**json.loads(Path(state).read_text()))
    arguments = sys.argv[1:]
    with Path(standin.folder, "asked").open("a") as log:
        said = {"arguments": arguments, "environment": dict(os.environ), "pid": os.getpid()}
        log.write(json.dumps(said) + "\n")
    assert arguments[:2] == ["--namespace", "sonic"], arguments
    verb, *rest = arguments[2:]
    if verb in standin.silent:
        signal.pause()
    if verb in standin.fails:
        sys.exit(standin.fails[verb])
    if verb in standin.answers:
        print(standin.answers[verb])
        return
    {"get": get, "delete": delete, "exec": exec_, "port-forward": port_forward}[verb](standin, rest)


def runs(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def get(standin: Standin, arguments: list[str]) -> None:
    """Print the pod, or all pods."""
    state = {"running": {}} if runs(standin.pid) else {"terminated": {"exitCode": 0}}
    hook: dict[str, Any] = (
        {"preStop": {"httpGet": {"path": standin.hook_path}}} if standin.pre_stop else {}
    )
    owner = {"ownerReferences": [{"uid": "owner", "controller": True}]}
    going = {"deletionTimestamp": "2026-11-30T00:00:00Z"} if standin.marked else {}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "worker-1", "uid": "1", **owner, **going, **standin.metadata},
        "spec": {
            "containers": [{"name": "worker", "lifecycle": hook}, {"name": "b"}],
            **standin.spec,
        },
        "status": {
            "containerStatuses": [
                {"name": "b", "restartCount": 4, "state": {"waiting": {}}},
                {"name": "worker", "restartCount": 0, "state": state},
            ],
        },
    }
    if arguments[0] == "pod":
        assert arguments == ["pod", "worker-1", "--ignore-not-found", "-o", "json"], arguments
        print(json.dumps(pod))
        return
    assert arguments == ["pods", "-o", "json"], arguments
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    others: list[dict[str, Any]] = [
        {"metadata": {"name": name, "uid": name, **owner}, "status": ready}
        for name in standin.others
    ]
    stranger = {"metadata": {"name": "stranger", "uid": "s"}, "status": ready}
    starting = {"metadata": {"name": "worker-9", "uid": "9", **owner}, "status": {}}
    print(json.dumps({"kind": "List", "items": [pod, stranger, starting, *others]}))


def delete(standin: Standin, arguments: list[str]) -> None:
    """Mark it as going; without a preStop hook that lasts this is SIGTERM."""
    assert arguments[:3] == ["pod", "worker-1", "--wait=false"], arguments
    Path(standin.folder, "marked").touch()
    if not standin.pre_stop or standin.hook_path == "/begin-drain":
        os.kill(standin.pid, signal.SIGTERM)


def exec_(standin: Standin, arguments: list[str]) -> None:
    """Run a program in the container."""
    assert arguments[:4] == ["worker-1", "-c", "worker", "--"], arguments
    command = arguments[4:]
    if command[0] in standin.no_programs:
        said = f'exec: "{command[0]}": executable file not found in $PATH: unknown'
        sys.exit(f"error: Internal error occurred: OCI runtime exec failed: exec failed: {said}")
    assert command in (["sh", "-c", "kill -TERM 1"], ["kill", "-TERM", "1"]), command
    os.kill(standin.pid, signal.SIGTERM)
    if standin.dies_with_process_1:
        print("command terminated with exit code 137", file=sys.stderr)
        sys.exit(137)


def port_forward(standin: Standin, arguments: list[str]) -> None:
    """Forward connections until one of them fails."""
    assert arguments[0:2] == ["--address", "127.0.0.1"], arguments
    assert arguments[2:] == ["pod/worker-1", ":5000"], arguments
    if not runs(standin.pid):
        sys.exit("error: unable to forward port because pod is not running. Current status=Failed")
    asyncio.run(_forward(standin))


async def _forward(standin: Standin) -> None:
    connections = itertools.count(1)

    async def serve(near: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        print(f"Handling connection for {port}", flush=True)
        print("x" * standin.chatter, file=sys.stderr, flush=True)
        try:
            if next(connections) == standin.breaks_at:
                raise OSError("error creating error stream: Timeout occurred")
            far, far_writer = await asyncio.open_connection("127.0.0.1", standin.port)
            await asyncio.gather(_copy(near, far_writer), _copy(far, writer))
        except OSError as error:
            reason = str(error) if error.errno != 111 else "connect: connection refused"
            print(f"E1130 an error occurred forwarding {port} -> 5000: {reason}", file=sys.stderr)
            print("error: lost connection to pod", file=sys.stderr, flush=True)
            os._exit(1)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(f"Forwarding from 127.0.0.1:{port} -> 5000", flush=True)
    await listener.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
