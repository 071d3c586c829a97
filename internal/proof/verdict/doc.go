// Package verdict turns the results of one or several runs of Kubernetes' specs into a verdict for each
// spec, and writes them for people and programs.
//
//   - verdict.go: the verdict on a spec, from its outcomes in all runs
//   - report.go: the report of a command, and its text
//   - files.go: the files of a report; junit.go: JUnit XML; page.go, page.html: one page
//   - compare.go: two reports beside each other
//
// The texts of a report come from specs, which print what containers print. So they are hostile input:
// the terminal gets them through package ui, XML and HTML through encoders that escape them.
package verdict
