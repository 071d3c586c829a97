package config

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// OfNames returns documents for nodes by the names of their Nodes: those of known, and new ones for the others.
// complete sets how they are reached. The error is an *Error.
func OfNames(names []string, known map[string]Document, complete func([]Document) []Document) ([]Document, error) {
	var documents []Document
	for _, name := range names {
		if d, ok := known[name]; ok {
			documents = append(documents, d)
			continue
		}
		d := Document{File: Stdin}
		d.Node.APIVersion, d.Node.Kind = v1alpha1.APIVersion, v1alpha1.Kind
		d.Node.Metadata.Name = name
		v1alpha1.SetDefaults(&d.Node)
		documents = append(documents, d)
	}
	documents = complete(documents)
	var problems []Problem
	for _, d := range documents {
		for _, p := range v1alpha1.Validate(&d.Node) {
			field := strings.TrimPrefix(p.Field, "spec.credentials.kubernetes.")
			if field == "node" || p.Field == "metadata.name" {
				problems = append(problems, Problem{Field: "--node", What: p.What, Remedy: p.Remedy})
				break
			}
			problems = append(problems, Problem{Field: "--via " + field, What: p.What, Remedy: p.Remedy})
		}
	}
	return documents, asError(problems)
}

// OfSSH returns a document for a machine that SSH reaches, by the name that the user typed: user@host, a host or host:port,
// or a Host of ~/.ssh/config. The document's name is the host, with a port other than SSH's own. The error is an *Error.
func OfSSH(typed string) (Document, error) {
	user, hostname := "", typed
	if i := strings.LastIndex(typed, "@"); i >= 0 {
		user, hostname = typed[:i], typed[i+1:]
	}
	host, port, err := v1alpha1.HostPort(hostname)
	if err != nil || strings.HasSuffix(user, "@") || strings.HasPrefix(typed, "@") {
		what := fmt.Sprintf("%q names no machine", typed)
		if err != nil {
			what += ": " + err.Error()
		}
		return Document{}, &Error{[]Problem{{Field: "--node", What: what,
			Remedy: "write a node of the node file, user@host, host:port or a Host of ~/.ssh/config"}}}
	}
	name := host
	if port != 0 && port != v1alpha1.DefaultPort {
		name = fmt.Sprintf("%s-%d", host, port)
	}
	d := Document{File: Stdin}
	d.Node.APIVersion, d.Node.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	d.Node.Metadata.Name = nameOf(name)
	d.Node.Spec.Credentials.Username, d.Node.Spec.Credentials.Hostname = user, hostname
	v1alpha1.SetDefaults(&d.Node)
	var problems []Problem
	for _, p := range v1alpha1.Validate(&d.Node) {
		problems = append(problems, Problem{Field: "--node", What: fmt.Sprintf("%q: %s", typed, p.What), Remedy: p.Remedy})
	}
	return d, asError(problems)
}

// nameOf returns a text as a name of a node: with - in place of the colons of an IPv6 address and the like.
func nameOf(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, text)
	if trimmed := strings.Trim(name, "-._"); trimmed != "" {
		return trimmed
	}
	return name
}
