// Package controlplane runs a real Kubernetes control plane on this machine's loopback interface,
// for `swdt sandbox up --cluster` and the end-to-end tests. etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler are child processes. kubeadm's own phases configure
// them, so that a real `kubeadm join` works. The control plane needs no container, no network and
// no root.
//
// The programs come from lab/build.sh cluster and run on Linux.
package controlplane
