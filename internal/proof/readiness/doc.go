// Package readiness says whether a cluster with Windows nodes is ready for work: a list of cases, each of
// which proves one thing, and a run of these cases.
//
//   - cases.yaml: the cases, as data; case.go: their meaning; load.go: reading them
//   - choice.go: choosing cases; list.go: the list of cases
//   - spec.go: the specs of Kubernetes' own end-to-end tests that a case selects
//   - run.go: a run; facts.go: what a cluster lacks for a case; probes.go: swdt's own tests
//   - e2etest.go: the specs of a run, in one process of e2e.test
//   - report.go: the result of a run; sonobuoy.go: the same for Sonobuoy
//   - speclist: recorded lists of specs, and recordspecs, which records them
//
// A case is proved by specs of e2e.test or by a probe of swdt. The tests of this package apply each
// selection to the recorded spec lists of two Kubernetes versions. They fail for a case that selects no
// spec, other specs than it should, or a spec for Linux alone. ADR 38 has the alternatives.
package readiness
