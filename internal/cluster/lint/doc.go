// Package lint finds what a manifest says that Windows nodes do not do: fields that the API server rejects for Windows
// pods, fields that have no effect there, and pods that cannot start. It reads texts and contacts nothing.
//
//   - reader.go, object.go, pod.go: objects out of files, with the line and column of each field
//   - system.go: whether pods are for Windows
//   - rule.go, rules_*.go: the rules; the pages and the tests use their examples
//   - check.go, ignore.go: all rules over all objects, and the findings that their author ignores
//   - report.go, formats.go, page.go: the findings for people and for other programs, the page of the rules
//
// The rules of effect "rejected" repeat Kubernetes' own validation; the stage oracles compares both (TestAgreesWithValidation).
// Pod Security is that of k8s.io/pod-security-admission itself.
package lint
