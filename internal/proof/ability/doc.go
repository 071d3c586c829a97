// Package ability tests what Windows nodes can do, for the cases of package readiness that specs of Kubernetes'
// own end-to-end tests do not prove, or not on each node.
//
//   - ability.go: a run, its options and results; node.go: the probes of a node in their order
//   - limits.go: limits of CPU time and memory; services.go: Services; volume.go: volumes of CSI drivers
//   - restart.go: restarts of kubelet, of the runtime and of the node, while pods run
//   - machine.go: the way to a node outside of its cluster, for the restarts
//   - policies.go: NetworkPolicies, measured by package netpol
//   - objects.go, pods.go: the objects of a run
//
// A probe ends with one of four results. It failed only if the node did something wrong. It is not possible if
// the cluster lacks something, and not run if the run could not try, such as after a pod that did not start.
// Each limit has a control: a container without the limit must get what the limited one is refused, since a busy
// node refuses it too.
//
// The pods are those of package smoke, and the program in them is swdt-probe, by package probepod. Package
// leftover removes the namespaces of killed runs.
package ability
