package config

import (
	"io"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Convert turns node files of older swdts into today's format. The older formats are kind:
// Config, kind: Node with kubernetes.deploys, and kind: Cluster with its spec.workload, which
// becomes a Cluster and a Node.
// With the new file, today's swdt does what the older swdt did with the old file, although
// some fields have another meaning today. Documents in today's format stay as they are. Comments at
// the top list the fields whose meaning has changed, and the fields that today's swdt does not have,
// each with its line and the reason. Convert reads the file with this path, or r if the path is
// Stdin. The error is an *Error.
func Convert(file string, r io.Reader) ([]byte, error) {
	data, problem := read(file, r)
	if problem != nil {
		return nil, asError([]Problem{*problem})
	}
	text, problem := decodeText(file, data)
	if problem != nil {
		return nil, asError([]Problem{*problem})
	}
	var converted []string
	var problems []Problem
	for _, c := range splitDocuments(text) {
		document, problem := convertDocument(file, c)
		if problem != nil {
			problems = append(problems, *problem)
		} else if document != "" {
			converted = append(converted, document)
		}
	}
	if len(converted) == 0 && len(problems) == 0 {
		problems = append(problems, noNode([]string{file}))
	}
	return []byte(strings.Join(converted, "---\n")), asError(problems)
}

// convertDocument returns "" for a document without content.
func convertDocument(file string, c chunk) (string, *Problem) {
	root, problem := parseYAML(file, c)
	if problem != nil || root == nil {
		return "", problem
	}
	switch olderFormat(root) {
	case clusterFormat:
		return convertCluster(newOlder(file, c, root)), nil
	case configFormat, deploysFormat:
		return convertOriginal(newOlder(file, c, root)), nil
	}
	if problem := checkKind(file, c, root); problem != nil {
		return "", problem
	}
	if rdp := find(root, "spec", "setup", "enableRDP"); isFalse(rdp) && onlyOriginalFields(root) {
		return convertOriginal(newOlder(file, c, root)), nil
	}
	lines := c.lines
	if isDocumentStart(lines[0]) && strings.TrimSpace(lines[0]) == "---" {
		lines = lines[1:]
	}
	return strings.TrimRight(strings.Join(lines, ""), "\n") + "\n", nil
}

// convertOriginal converts the formats of the original swdt: kind: Config, and kind:
// Node, which had kubernetes.deploys at first and provisioners later.
func convertOriginal(o *older) string {
	o.take("kind")
	provisioners := o.takeProvisioners("spec", "kubernetes", "deploys")
	if provisioners == nil {
		provisioners = o.takeProvisioners("spec", "kubernetes", "provisioners")
	}
	return o.write(o.object(
		"apiVersion", o.take("apiVersion"),
		"kind", scalar(v1alpha1.Kind),
		"metadata", o.object("name", o.take("metadata", "name"), "labels", o.take("metadata", "labels")),
		"spec", o.object(
			"credentials", o.object(
				"username", o.take("spec", "credentials", "username"),
				"hostname", o.take("spec", "credentials", "hostname"),
				"privateKey", o.take("spec", "credentials", "privateKey"),
				"password", o.take("spec", "credentials", "password"),
			),
			"setup", o.object(
				"enableRDP", o.takeEnableRDP("spec", "setup", "enableRDP"),
				"chocoPackages", o.take("spec", "setup", "chocoPackages"),
			),
			"kubernetes", o.object("provisioners", provisioners),
		),
	))
}
