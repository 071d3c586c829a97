// Package manifests holds the objects of a fleet's installation. The files are also a kustomization: see
// deploy/kustomization.yaml. The definitions of the kinds are generated from api/fleet/v1alpha1.
package manifests

import (
	"embed"
	"fmt"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

//go:embed *.yaml
var files embed.FS

// Namespace is the namespace of the installation.
const Namespace = "swdt-fleet"

// Settings are the values in which installations differ. An empty one stays as it is in the manifests.
type Settings struct {
	ControllerImage string
	NodeImage       string
	// APIServer is the host and port at which the nodes reach the API server; "": at the address of its
	// Service, for which the node needs a working kube-proxy.
	APIServer string
	// ControllerNodes is a label selector of the Linux nodes on which the controller may run; "": the nodes of the
	// control plane. Root of such a node can drain all Windows nodes, and start each rollout on all of its nodes at once.
	ControllerNodes string
	// APIPorts are the TCP ports of the API server's endpoints, which the controller must reach.
	APIPorts []int32
}

// ControlPlane selects the nodes of the control plane, and LinuxNodes each Linux node.
const (
	ControlPlane = "node-role.kubernetes.io/control-plane"
	LinuxNodes   = "kubernetes.io/os=linux"
)

// Flags returns the flags of `swdt fleet install` for the settings that are set, and their values.
func (s Settings) Flags() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, flag := range [][2]string{{"--controller-image", s.ControllerImage}, {"--agent-image", s.NodeImage},
			{"--api-server", s.APIServer}, {"--controller-nodes", s.ControllerNodes}} {
			if flag[1] != "" && !yield(flag[0], flag[1]) {
				return
			}
		}
	}
}

// names returns the files in the order in which they are applied.
func names() []string {
	return []string{"fleet.swdt.dev_noderollouts.yaml", "fleet.swdt.dev_nodestates.yaml", "namespace.yaml",
		"controller-policy.yaml", "controller.yaml", "node.yaml"}
}

// Objects returns the objects of the installation, in the order in which they are applied.
func Objects(settings Settings) ([]*unstructured.Unstructured, error) {
	environment, err := settings.environment()
	if err != nil {
		return nil, err
	}
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
			setContainer(o, settings.ControllerImage, nil)
			if err := setNodes(o, settings.ControllerNodes); err != nil {
				return nil, err
			}
		case "DaemonSet":
			setContainer(o, settings.NodeImage, environment)
		case "NetworkPolicy":
			if err := allowPorts(o, settings.APIPorts); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// YAML returns the objects of the installation as a stream of YAML documents.
func YAML(settings Settings) ([]byte, error) {
	objects, err := Objects(settings)
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

// Check returns an *APIServerError if the settings name no address of an API server, and a *SelectorError if they
// select no nodes.
func (s Settings) Check() error {
	if _, err := s.environment(); err != nil {
		return err
	}
	_, err := expressions(s.ControllerNodes)
	return err
}

// SelectorError is returned for a text that is no label selector.
type SelectorError struct {
	Text string
	Err  error
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("%q selects no nodes: %v; write labels as kubectl's -l does, such as pool=trusted", e.Text, e.Err)
}

func (e *SelectorError) Unwrap() error { return e.Err }

// expressions returns a label selector as the expressions of a node affinity.
func expressions(selector string) (all []any, err error) {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return nil, &SelectorError{selector, err}
	}
	operators := map[selection.Operator]corev1.NodeSelectorOperator{
		selection.In: corev1.NodeSelectorOpIn, selection.Equals: corev1.NodeSelectorOpIn,
		selection.DoubleEquals: corev1.NodeSelectorOpIn, selection.NotIn: corev1.NodeSelectorOpNotIn,
		selection.NotEquals: corev1.NodeSelectorOpNotIn, selection.Exists: corev1.NodeSelectorOpExists,
		selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist, selection.GreaterThan: corev1.NodeSelectorOpGt,
		selection.LessThan: corev1.NodeSelectorOpLt,
	}
	for _, r := range requirements {
		expression := map[string]any{"key": r.Key(), "operator": string(operators[r.Operator()])}
		if values := r.Values().List(); len(values) > 0 {
			expression["values"] = anything(values)
		}
		all = append(all, expression)
	}
	return all, nil
}

func anything(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// setNodes sets the nodes on which a workload may run. The manifest's own stay if the selector is empty.
func setNodes(o *unstructured.Unstructured, selector string) error {
	wanted, err := expressions(selector)
	if err != nil || selector == "" {
		return err
	}
	terms := []any{map[string]any{"matchExpressions": wanted}}
	return unstructured.SetNestedSlice(o.Object, terms, "spec", "template", "spec", "affinity", "nodeAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
}

// environment returns the variables that make a client use the API server of the settings. The kubelet sets
// those that a pod does not set itself.
func (s Settings) environment() ([]any, error) {
	if s.APIServer == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(s.APIServer)
	if number, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || host == "" || number == 0 {
		return nil, &APIServerError{Text: s.APIServer}
	}
	return []any{
		map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": host},
		map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": port},
	}, nil
}

// APIServerError is returned for an address that is not a host and a port.
type APIServerError struct{ Text string }

func (e *APIServerError) Error() string {
	return fmt.Sprintf("%q is no address of an API server: write HOST:PORT", e.Text)
}

// allowPorts adds TCP ports to those that a policy lets out, if they are missing.
func allowPorts(policy *unstructured.Unstructured, ports []int32) error {
	rules, _, err := unstructured.NestedSlice(policy.Object, "spec", "egress")
	if err != nil || len(rules) == 0 {
		return err
	}
	rule, _ := rules[0].(map[string]any)
	allowed, _ := rule["ports"].([]any)
	for _, port := range ports {
		one := map[string]any{"port": int64(port), "protocol": "TCP"}
		if !slices.ContainsFunc(allowed, func(other any) bool { return equality.Semantic.DeepEqual(other, any(one)) }) {
			allowed = append(allowed, one)
		}
	}
	rule["ports"] = allowed
	return unstructured.SetNestedSlice(policy.Object, rules, "spec", "egress")
}

// setContainer sets the image of a workload's only container, and adds to its environment.
func setContainer(o *unstructured.Unstructured, image string, environment []any) {
	path := strings.Split("spec.template.spec.containers", ".")
	containers, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || len(containers) != 1 {
		return
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return
	}
	if image != "" {
		container["image"] = image
	}
	if present, ok := container["env"].([]any); ok {
		container["env"] = append(present, environment...)
	}
	_ = unstructured.SetNestedSlice(o.Object, containers, path...) // the path was read just before
}
