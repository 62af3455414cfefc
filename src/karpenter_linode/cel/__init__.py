"""The Common Expression Language as Kubernetes device selectors use it. Knows nothing of devices or pods."""
