// Package evidence records what happens in a cluster while Kubernetes' specs run, and writes a small
// bundle for each spec that failed: the pods and events of its namespaces, the output of its containers,
// the states of the nodes, and the logs of the nodes involved.
//
//   - evidence.go: options, bounds, and the result
//   - recorder.go: watches the namespaces of a run, and the Windows nodes
//   - namespace.go: the pods and events of one namespace; output.go: the output of containers
//   - state.go: the state of a pod or node in words; stream.go: one watch
//   - collection.go: the bundles of a run; bundle.go: the files of one bundle
//   - nodes.go: logs and diagnostics of nodes; causes.go: the likely causes of a failure
//
// e2e.test deletes the namespace of a spec as soon as the spec has ended. So the recorder watches all
// namespaces with the ID of the run while they exist, and keeps bounded records of them. When the run has
// ended, the report of Ginkgo says which specs failed, and when; a namespace that appeared while a spec ran
// is one of that spec, since the specs of a run follow each other.
//
// All texts come from containers, nodes and the API server: they are hostile input. Files get them
// redacted and printable, and no name of a file comes from them.
package evidence
