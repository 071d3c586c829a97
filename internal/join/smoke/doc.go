// Package smoke tests a cluster with Windows nodes from the outside: it runs a pod on each Windows node
// and a server on a Linux node, and lets them reach each other, a Service and the API server.
//
//   - smoke.go: a run; plan.go: the objects that a run would make
//   - nodes.go: the Windows nodes to test, and the Linux nodes that can run the server
//   - objects.go: the objects of a run
//   - namespace.go: the namespace of these objects, and the namespaces that killed runs left
//   - legs.go: the legs of a node in their order; pods.go: waiting for pods
//   - probe.go: requests between pods
//   - report.go: the result
//   - share.go: what other proofs of a cluster use of it: pods, and the wait for them
//
// A leg is one fact, such as "the pod reaches a Service". Legs that do not need each other run even if
// another one failed, so that a result shows how far the fault reaches. A leg that cannot run is "not
// run", with the reason, and never counts as passed.
//
// The requests between pods are commands in the containers: an image needs a server for HTTP (netexec of
// Kubernetes' test image agnhost) and curl, and no shell. curl has documented exit codes, and prints
// whether the name was resolved. So no error text is matched. ADR 36 has the alternatives.
//
// A Windows pod resolves only names of one part, such as "server", and fully qualified names:
// Windows does not append the cluster's domain to "kubernetes.default.svc". swdt, outside of the
// cluster, does not know that domain. So the pods reach the API server by the address of its
// Service.
package smoke
