package cluster_test

import (
	_ "k8s.io/client-go/dynamic/fake"
	_ "k8s.io/client-go/kubernetes/fake"
)
