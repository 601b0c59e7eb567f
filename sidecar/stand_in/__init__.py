"""A stand-in for a streaming text-to-speech server: the documented protocol, tones for speech.

It proves a deployment without a GPU or a license, and it serves tests. It says nothing about audio
quality or about the speed of a GPU. Standard library only, Python 3.11 or newer.

python3 -m sidecar.stand_in --port 5000 --metrics-port 8080
"""
