"""The HTTP face of the embedded API server: what kubectl and other clients of Kubernetes talk to.

Requests come in through ``app``, are understood by ``requests`` and answered by one module for each idea:
``discovery``, ``openapi``, ``reads``, ``writes``, ``streams``, ``deletes``, ``subresources``, ``reviews``. Everything
works on plain JSON over ``sim.store``; nothing here waits for anything but the client.
"""
