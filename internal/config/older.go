package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// format is a file format of an older swdt.
type format int

const (
	otherFormat   format = iota // today's format, or not a file of any swdt
	configFormat                // kind: Config, the earliest format of the original swdt
	deploysFormat               // kind: Node with kubernetes.deploys
	clusterFormat               // kind: Cluster of the original swdt's fork; today's kind: Cluster has other fields
)

// olderFormat returns the older format of a document, or otherFormat if the document is in none.
func olderFormat(root *yaml.Node) format {
	if root.Kind != yaml.MappingNode || !isOurs(child(root, "apiVersion")) {
		return otherFormat
	}
	kind := child(root, "kind")
	switch {
	case kind == nil || kind.Kind != yaml.ScalarNode:
		return otherFormat
	case kind.Value == v1alpha1.ClusterKind && hasForkFields(root):
		return clusterFormat
	case kind.Value == "Config":
		return configFormat
	case kind.Value == v1alpha1.Kind && find(root, "spec", "kubernetes", "deploys") != nil:
		return deploysFormat
	}
	return otherFormat
}

// hasForkFields reports whether a document of kind Cluster has a field that only the fork's kind has.
func hasForkFields(root *yaml.Node) bool {
	return find(root, "spec", "workload") != nil || find(root, "spec", "calicoVersion") != nil ||
		find(root, "spec", "controlPlane", "minikube") != nil
}

// isOurs reports whether a document's API group is this project's, in any version. A
// document without an API version counts too.
func isOurs(apiVersion *yaml.Node) bool {
	group, _, _ := strings.Cut(v1alpha1.APIVersion, "/")
	return apiVersion == nil || strings.HasPrefix(apiVersion.Value, group+"/")
}

// otherMeanings warns about fields that had another meaning in the original swdt. The
// last format of the original has the same kind and version as today's. If a file has a
// field that the original does not define, the file was written for this swdt, and
// there is no warning.
func otherMeanings(file string, c chunk, root *yaml.Node) []string {
	key, value := findPair(root, "spec", "setup", "enableRDP")
	if !isFalse(value) || !onlyOriginalFields(root) {
		return nil
	}
	return []string{Problem{
		File: file, Line: c.lineNumber(key.Line), Field: "spec.setup.enableRDP",
		What:   "false turns Remote Desktop off; in the swdt of sig-windows-dev-tools it did nothing",
		Remedy: "remove the line to leave Remote Desktop as it is",
	}.String()}
}

// onlyOriginalFields reports whether the original's strict decoder would accept
// every field of a document.
func onlyOriginalFields(root *yaml.Node) bool {
	budget := maxNodes
	return onlyFields(root, originalFields(), "", &budget)
}

func onlyFields(n *yaml.Node, known map[string]bool, path string, budget *int) bool {
	n = resolveAlias(n)
	if *budget--; *budget <= 0 {
		return false
	}
	for i, inside := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 1:
		case n.Kind == yaml.SequenceNode:
			if !onlyFields(inside, known, path, budget) {
				return false
			}
		default:
			field := join(path, inside.Value)
			if !known[field] || !onlyFields(n.Content[i+1], known, field, budget) {
				return false
			}
		}
	}
	return true
}

// originalFields returns the fields of the original swdt's kind: Node.
func originalFields() map[string]bool {
	fields := map[string]bool{}
	for _, field := range strings.Fields(`
		apiVersion kind metadata metadata.name spec
		spec.credentials spec.credentials.username spec.credentials.hostname
		spec.credentials.password spec.credentials.privateKey
		spec.setup spec.setup.enableRDP spec.setup.chocoPackages
		spec.kubernetes spec.kubernetes.provisioners
		spec.kubernetes.provisioners.name spec.kubernetes.provisioners.version
		spec.kubernetes.provisioners.sourceURL spec.kubernetes.provisioners.destination
		spec.kubernetes.provisioners.overwrite`) {
		fields[field] = true
	}
	return fields
}
