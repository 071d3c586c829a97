package cni

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// MaxManifest is the size of the largest manifest that is read, in bytes. Calico's has 1.7 MB.
const MaxManifest = 16 << 20

// maxObjects is the number of objects that one manifest may have.
const maxObjects = 1000

// ManifestError reports a manifest that swdt does not apply.
type ManifestError struct {
	From     string // the file or URL
	Document int    // counted from 1; 0: the manifest as a whole
	What     string
	Err      error // may be nil
}

func (e *ManifestError) Error() string {
	at := e.From
	if e.Document > 0 {
		at = fmt.Sprintf("%s: document %d", e.From, e.Document)
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v; use the manifest as its project publishes it", at, e.What, e.Err)
	}
	return fmt.Sprintf("%s: %s; use the manifest as its project publishes it", at, e.What)
}

func (e *ManifestError) Unwrap() error { return e.Err }

// Parse returns the objects of a manifest in YAML, in order. Its errors are *ManifestErrors, which
// contain from, the name of the manifest.
func Parse(from string, data []byte) ([]*unstructured.Unstructured, error) {
	if len(data) > MaxManifest {
		return nil, &ManifestError{From: from, What: fmt.Sprintf("it has more than %d MB", MaxManifest>>20)}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var all []*unstructured.Unstructured
	seen := map[Ref]bool{}
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &ManifestError{From: from, Document: n, What: "it cannot be read", Err: err}
		}
		if n > maxObjects {
			return nil, &ManifestError{From: from, What: fmt.Sprintf("it has more than %d documents", maxObjects)}
		}
		o, err := parseObject(document)
		if err != nil {
			return nil, &ManifestError{From: from, Document: n, What: "it is not an object of Kubernetes", Err: err}
		}
		if o == nil {
			continue
		}
		if ref := RefOf(o); seen[ref] {
			return nil, &ManifestError{From: from, Document: n, What: ref.String() + " is in it twice"}
		}
		seen[RefOf(o)] = true
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, &ManifestError{From: from, What: "it has no objects"}
	}
	return all, nil
}

// parseObject returns nil for a document without content, such as a comment.
func parseObject(document []byte) (*unstructured.Unstructured, error) {
	content, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil, nil
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(content); err != nil {
		return nil, err
	}
	_, err = schema.ParseGroupVersion(o.GetAPIVersion())
	switch {
	case err != nil:
		return nil, err
	case o.GetAPIVersion() == "":
		return nil, errors.New("apiVersion is missing")
	case o.IsList():
		return nil, errors.New("it is a list")
	case o.GetName() == "":
		return nil, errors.New("metadata.name is missing")
	}
	return o, nil
}

// Ref names an object in a cluster.
type Ref struct {
	Group     string `json:"group"` // "" is the core group
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"` // "" if the kind has no namespaces
	Name      string `json:"name"`
}

// RefOf returns the name of an object.
func RefOf(o *unstructured.Unstructured) Ref {
	return Ref{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// String returns the name for people, such as ConfigMap kube-system/kube-proxy.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// find returns the object with this kind and name, or nil.
func find(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range all {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}
