// Package netpol compares what the pod network of a cluster does with what NetworkPolicies mean, in a
// truth table: each pod tries to reach each port of each other pod, before and after the policies.
//
//   - model.go: the pods and ports of a table, and the standard ones
//   - derive.go: pods and ports that show what policies of a user mean
//   - case.go, cases.yaml: the standard policies; load.go: policies of files; unknown.go: their unknown fields
//   - table.go: cells, and tables for people
//   - explain.go: what policies mean, without a cluster
//   - netpol.go: a run; objects.go: its objects; session.go: the probes in its pods
//   - measure.go: from attempts to a verdict on each cell
//   - report.go, page.go: the result
//
// Package policy computes what the policies mean. Package netprobe is the program in the pods. The pods
// are those of package smoke, and package leftover removes the namespaces of killed runs.
package netpol
