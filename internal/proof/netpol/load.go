package netpol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/proof/policy"
)

const (
	// maxFile bounds the size of a file with policies, in bytes, and maxPolicies bounds their number.
	maxFile, maxPolicies = 1 << 20, 200
	// stdin is the path that stands for standard input.
	stdin = "-"
)

// Load reads the policies of files, and checks them. The path - stands for in. Objects of other kinds are
// skipped. The case has the name of the only file, or "policies".
func Load(paths []string, in io.Reader) (Case, error) {
	c := Case{Name: "policies"}
	if len(paths) == 1 && paths[0] != stdin {
		c.Name = filepath.Base(paths[0])
	}
	for _, path := range paths {
		found, err := loadFile(path, in)
		if err != nil {
			return c, err
		}
		if len(found) == 0 {
			return c, fmt.Errorf("%s has no NetworkPolicy of networking.k8s.io/v1", path)
		}
		c.Policies = append(c.Policies, found...)
	}
	if len(c.Policies) > maxPolicies {
		return c, fmt.Errorf("%d policies are more than %d; try them in parts", len(c.Policies), maxPolicies)
	}
	names := c.policyNames()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return c, fmt.Errorf("there are two policies %s; the second would replace the first", name)
		}
	}
	_, err := policy.New(c.Policies)
	return c, err
}

func loadFile(path string, in io.Reader) ([]networkingv1.NetworkPolicy, error) {
	if path != stdin {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the policies: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes; is it a file with policies?", path, maxFile)
	}
	var all []networkingv1.NetworkPolicy
	end := 0 // of the document in the text
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		begin := end + max(0, bytes.Index(text[end:], document))
		end = begin + len(document)
		if err == nil {
			var found []networkingv1.NetworkPolicy
			found, err = decode(document)
			all = append(all, found...)
		}
		var unknown *unknownField
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("%s:%d: %w", path, bytes.Count(text[:begin], []byte("\n"))+unknown.line(document), unknown)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, number, err)
		}
	}
}

// decode returns the policies of a document: itself, or the items of a list.
func decode(document []byte) ([]networkingv1.NetworkPolicy, error) {
	var object struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	if object.Kind == "List" || object.Kind == "NetworkPolicyList" {
		var all []networkingv1.NetworkPolicy
		for i, item := range object.Items {
			found, err := decode(item)
			var unknown *unknownField
			if errors.As(err, &unknown) {
				return nil, &unknownField{fmt.Sprintf("items[%d].%s", i, unknown.path)}
			}
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
	if object.Kind != "NetworkPolicy" || object.APIVersion != "networking.k8s.io/v1" {
		return nil, nil
	}
	var p networkingv1.NetworkPolicy
	if err := decodeStrict(document, &p); err != nil {
		return nil, err
	}
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels}
	return []networkingv1.NetworkPolicy{p}, nil
}
