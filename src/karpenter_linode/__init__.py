"""karpenter-linode: a Karpenter-compatible node autoscaler for Linode Kubernetes Engine."""
