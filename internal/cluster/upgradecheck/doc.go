// Package upgradecheck finds what an upgrade of Kubernetes or containerd breaks on Windows nodes, before it begins: a
// feature gate that the new program does not know ends it, and so does a flag that it no longer has.
//
// It has two halves. A Reader collects settings out of command lines, configuration files, scripts and objects, with the
// place of each. Check holds them against the table of package kubesettings and the rules below. Neither contacts
// anything.
//
//   - setting.go: a setting, and its place
//   - reader.go, document.go, container.go, script.go, file.go: settings out of texts
//   - check.go: the targets, and all rules in order
//   - rules_gates.go, rules_flags.go, rules_fields.go, rules_containerd.go, rules_release.go, rules_versions.go: the rules
//   - report.go: the findings for people and for -o json
//
// How each program reacts is read from its source: component-base/featuregate/feature_gate.go, cmd/kubelet/app/server.go
// and cmd/kube-proxy/app/options.go, the same from Kubernetes 1.33 to 1.38.0-beta.0.
package upgradecheck
