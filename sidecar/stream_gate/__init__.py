"""Stream gate: holds a pod's preStop hook until the pod's live audio streams are over.

It runs beside the server as a native sidecar and only watches: no byte of audio passes through it.
The kubelet calls ``GET /drain`` as the main container's preStop hook and stops the container when
the answer comes. What is live is read from one of two places:

- the pod's own TCP sockets (``--watch-port``), by NETLINK_SOCK_DIAG with INET_DIAG_INFO: open
  connections, and active streams, which are connections that moved more than 64 bytes of payload
  within ``--idle-seconds``. It needs no privilege. Where netlink is refused, /proc/net/tcp and
  tcp6 give the connections alone; each then counts as active, and ``sonic_gate_source`` says so;
- a load metric of the server (``--load-url``), for workers that take all work over one socket.

A drain ends when the propagation time is over and either no connection from before its end is
left or nothing has been active for ``--idle-seconds``; else at the budget.

Standard library only, Python 3.11 or newer, one thread. Answers /drain, /metrics, /ready, /live.
"""
