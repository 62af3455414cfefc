"""The embedded world: virtual time, API server, kubelet, scheduler, DRA driver, Linode emulator."""
