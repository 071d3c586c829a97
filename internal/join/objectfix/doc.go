// Package objectfix removes settings with which a new kubelet or kube-proxy would end from the objects of a cluster that
// have them: ConfigMaps, and the commands and variables of DaemonSets, Deployments and StatefulSets.
//
// A change is a server-side apply by a field manager of its own, of the changed fields alone. It is planned with a dry run
// of the API server, so the plan has what the API server would store. Fields of other managers are taken only with force.
//
//   - objectfix.go: plans and applies the changes of all objects
//   - edit.go: the changed fields of one object
//   - wanted.go: the object to apply, and the managers of its fields
//   - source.go: the tools that would undo a change
//   - report.go: the changes for people and for -o json
package objectfix
