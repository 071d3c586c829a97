// Package suite runs Kubernetes' own end-to-end tests: the program e2e.test, or any other program that
// Ginkgo has made and that accepts e2e.test's flags.
//
//   - binary.go: the program and its version
//   - selection.go: the filters of specs; list.go: the specs that match
//   - run.go: one run, as a child process; child_*.go: its end
//   - report.go: Ginkgo's JSON report, as results of specs
//   - output.go: the output of a run while it is written: the current spec, the run's ID
//
// A Binary lists and runs specs, each time in a process of its own. The results of a run come from
// Ginkgo's JSON report alone. The output only feeds the progress display, since a spec prints text of
// containers, which can imitate every line of Ginkgo.
//
// The output goes to a file, which the process itself writes. So the ID of the run, with which e2e.test
// labels its namespaces, is on disk before the first namespace exists, even if swdt is killed.
package suite
