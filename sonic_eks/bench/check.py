"""One generation before the load, to see whether this is the service and takes the key."""

from __future__ import annotations

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.process import transport_of
from sonic_eks.bench.record import Failure, Generation, Outcome
from sonic_eks.bench.texts import TEXTS
from sonic_eks.errors import BAD_INPUT, PROBLEM_FOUND, SonicEksError, shown

_PATHS = {
    Protocol.WEBSOCKET: "/tts/websocket",
    Protocol.SSE: "/tts/sse",
    Protocol.BYTES: "/tts/bytes",
}


async def check_service(target: Target) -> None:
    """Have one short text said.

    Raises
    ------
    SonicEksError
        Exit status 2 for what the caller gave (address, key, model), 1 for a service that
        does not answer.
    """
    transport = transport_of(target)
    generation = Generation(0, "sonic-eks-check", TEXTS[0], False, 0.0)
    try:
        reservation = await transport.reserve()
        try:
            await reservation.generate(generation)
        finally:
            reservation.release()
    except Failure as failure:
        raise _explained(target, failure, failure.said(target.key)) from None
    finally:
        await transport.close()


def _explained(target: Target, failure: Failure, said: str) -> SonicEksError:
    url = shown(target.url)
    if failure.outcome is Outcome.UNREACHABLE:
        return SonicEksError(
            f"{url}: cannot be reached: {said}; is the address right, and is this machine in the"
            " VPC or connected to it?"
        )
    if failure.status in (401, 403):
        return SonicEksError(f"{url}: the API key was refused ({said}); give the service's own key")
    if failure.status in (404, 405, 426):
        path = _PATHS[target.protocol]
        return SonicEksError(f"{url}: no service of this protocol at {path} ({said})")
    if failure.status is not None and 300 <= failure.status < 400:
        return SonicEksError(
            f"{url}: answers with a redirect ({said}), and none is followed; give the address"
            " that it leads to"
        )
    if failure.outcome in (Outcome.TIMEOUT, Outcome.REJECTED):
        return SonicEksError(
            f"{url}: the first generation failed: {said}; is the service idle?",
            exit_status=PROBLEM_FOUND,
        )
    return SonicEksError(
        f"{url}: speaks something else, or does not know model or voice: {said}",
        exit_status=BAD_INPUT,
    )
