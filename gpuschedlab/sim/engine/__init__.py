"""The compiled kernels: arrays in, arrays changed. Nothing outside `gpuschedlab.sim` imports them."""
