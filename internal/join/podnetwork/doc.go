// Package podnetwork installs, checks and removes the pod network of a cluster with Windows nodes,
// as plans of steps that use package cni. The steps change the cluster and contact no node.
//
//   - install.go: the run of an installation and its steps; antrea.go: the steps of Antrea; manifest.go:
//     obtaining the manifest
//   - apply.go: the step that applies objects; await.go: the steps that wait for the cluster
//   - status.go: the state of an installation; remove.go: the inverse of an installation
//   - report.go: the results
package podnetwork
