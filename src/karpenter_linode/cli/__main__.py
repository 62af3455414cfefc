"""``python -m karpenter_linode.cli``."""

from karpenter_linode.cli.main import main

main()
