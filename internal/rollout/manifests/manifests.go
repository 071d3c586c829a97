// Package manifests holds the objects of a fleet's installation. The files are also a kustomization: see
// deploy/kustomization.yaml. The definitions of the kinds are generated from api/fleet/v1alpha1.
package manifests

import (
	"embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

//go:embed *.yaml
var files embed.FS

// Namespace is the namespace of the installation.
const Namespace = "swdt-fleet"

// Images are the images of the two programs. An empty image stays as it is in the manifests.
type Images struct{ Controller, Node string }

// names returns the files in the order in which they are applied.
func names() []string {
	return []string{"fleet.swdt.dev_noderollouts.yaml", "fleet.swdt.dev_nodestates.yaml", "namespace.yaml",
		"controller.yaml", "node.yaml"}
}

// Objects returns the objects of the installation, in the order in which they are applied.
func Objects(images Images) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names() {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the manifest %s: %w", name, err)
		}
		objects, err := cni.Parse(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, o := range all {
		switch o.GetKind() {
		case "Deployment":
			setImage(o, images.Controller)
		case "DaemonSet":
			setImage(o, images.Node)
		}
	}
	return all, nil
}

// YAML returns the objects of the installation as a stream of YAML documents.
func YAML(images Images) ([]byte, error) {
	objects, err := Objects(images)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all = append(append(all, "---\n"...), text...)
	}
	return all, nil
}

// setImage sets the image of a workload's only container.
func setImage(o *unstructured.Unstructured, image string) {
	path := strings.Split("spec.template.spec.containers", ".")
	containers, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || len(containers) != 1 || image == "" {
		return
	}
	if container, ok := containers[0].(map[string]any); ok {
		container["image"] = image
		_ = unstructured.SetNestedSlice(o.Object, containers, path...) // the path was read just before
	}
}
