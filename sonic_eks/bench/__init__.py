"""Load test of a streaming text-to-speech service, and what its figures become.

What drives load (`process`, `driver`, `websocket`, `http`) needs the standard library, websockets
and h11 only, so that it also runs from a ConfigMap on a plain Python image.
"""
