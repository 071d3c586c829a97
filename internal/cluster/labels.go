package cluster

import kubeletapis "k8s.io/kubelet/pkg/apis"

var _ = kubeletapis.IsKubeletLabel
