// Package trial runs Kubernetes' end-to-end tests against a cluster with Windows nodes: it is what swdt
// e2e does.
//
//   - trial.go: a command from the list of specs to the files of the report
//   - sets.go: the named sets of specs
//   - checks.go: what a cluster lacks for a run, as findings
//   - binary.go: the program e2e.test: a path, the cache, a download or a build
//   - evidence.go: evidence of the specs that failed, by package evidence
//   - progress.go: the progress for people; history.go: durations of earlier runs, for the estimate
//
// Package suite runs the program, package verdict judges, package leftover removes namespaces.
package trial
