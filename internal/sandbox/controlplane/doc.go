// Package controlplane runs a real Kubernetes control plane on this machine's
// loopback interface, for `swdt sandbox up --cluster` and the end-to-end tests:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler are child
// processes, configured by kubeadm's own phases so that a real `kubeadm join`
// works against it. It needs no container, no network and no root.
//
// The programs come from lab/build.sh cluster and run on Linux.
package controlplane
