// Package cni installs and removes the pod networks that Windows nodes need: Calico by its
// operator, flannel, and Antrea. It adds the settings that Windows requires, and kube-proxy for Windows.
//
//   - release.go: the published manifests, with their hashes
//   - manifest.go: parsing a manifest
//   - facts.go: the facts about a cluster that decide about the objects
//   - settings.go: the user's settings, completed by the facts
//   - calico.go, flannel.go, antrea.go, kubeproxy.go, kubeproxyform.go: the wanted objects, as functions of facts and settings
//   - programs.go: the objects that the cluster already has
//   - server.go, difference.go: comparing objects with the cluster and applying them by
//     server-side apply
//   - remove.go: removing these objects
//   - ready.go: conditions to wait for, each with the reason why it does not hold
//   - affinity.go: strictAffinity of Calico's address management
//
// swdt applies with the field manager "swdt" and labels the objects that it creates. So a field
// that another manager owns is a conflict, and removal finds exactly the things that swdt made.
package cni
