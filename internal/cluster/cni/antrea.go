package cni

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// The objects of Antrea. The manifest for Windows has the objects whose names contain windows.
const (
	antreaNamespace     = "kube-system"
	antreaAgent         = "antrea-agent"
	antreaController    = "antrea-controller"
	antreaWindows       = "antrea-agent-windows"
	antreaWindowsConfig = "antrea-windows-config"
	antreaConfig        = "antrea-config"
	antreaSettings      = "antrea-agent.conf" // the key of both ConfigMaps
)

// AntreaNetwork is the name of the HNS network that Antrea's agent makes on Windows.
const AntreaNetwork = "antrea-hnsnetwork"

// OfAntreaWindows reports whether an object is one of Antrea's manifest for Windows nodes.
func OfAntreaWindows(o *unstructured.Unstructured) bool {
	return slices.Contains([]string{antreaWindows, antreaWindowsConfig}, o.GetName())
}

// CheckAntrea returns a *ManifestError if the objects of the manifests are not Antrea's. linux and windows
// select the parts that they must have.
func CheckAntrea(from string, manifest []*unstructured.Unstructured, linux, windows bool) error {
	agent := find(manifest, "DaemonSet", antreaWindows)
	switch {
	case linux && find(manifest, "DaemonSet", antreaAgent) == nil:
		return &ManifestError{From: from, What: "it has no DaemonSet " + antreaAgent + " of Antrea, which antrea.yml has"}
	case windows && agent == nil:
		return &ManifestError{From: from, What: "it has no DaemonSet " + antreaWindows +
			"; Antrea has it in a second manifest, antrea-windows-with-ovs.yml"}
	case windows && find(manifest, "ConfigMap", antreaWindowsConfig) == nil:
		return &ManifestError{From: from, What: "it has no ConfigMap " + antreaWindowsConfig +
			", as Antrea for Windows has since v2.0"}
	}
	if agent == nil {
		return nil
	}
	host, _, _ := unstructured.NestedBool(agent.Object, "spec", "template", "spec", "securityContext", "windowsOptions",
		"hostProcess")
	if !host {
		return &ManifestError{From: from, What: "its DaemonSet " + antreaWindows + " is for Docker: its pods are no " +
			"HostProcess containers; Antrea v2.0 or later is for containerd"}
	}
	return nil
}

// AntreaWindowsConfigObject returns an object with the kind and name of the ConfigMap of Antrea's agents
// on Windows, without content.
func AntreaWindowsConfigObject() *unstructured.Unstructured {
	return newObject("v1", "ConfigMap", antreaNamespace, antreaWindowsConfig)
}

// AntreaConfigObject returns an object with the kind and name of Antrea's ConfigMap for Linux nodes,
// without content.
func AntreaConfigObject() *unstructured.Unstructured {
	return newObject("v1", "ConfigMap", antreaNamespace, antreaConfig)
}

// AntreaWindowsObject returns an object with the kind and name of Antrea's DaemonSet for Windows nodes,
// without content.
func AntreaWindowsObject() *unstructured.Unstructured {
	return newObject("apps/v1", "DaemonSet", antreaNamespace, antreaWindows)
}

// apiServerOf returns the API server's address of an agent of Antrea as host:port; "" if it has none.
func apiServerOf(s cluster.AntreaSettings) string {
	address := s.APIServer
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
	}
	if address == "" {
		return ""
	}
	if _, _, err := net.SplitHostPort(address); err != nil { // Antrea's client then uses the port of https
		return net.JoinHostPort(strings.Trim(address, "[]"), "443")
	}
	return address
}

// AntreaEncryptionError reports that Antrea encrypts the traffic between nodes, so that the pods of
// Windows nodes are not reached.
type AntreaEncryptionError struct{ Mode string }

func (e *AntreaEncryptionError) Error() string {
	return fmt.Sprintf("Antrea encrypts the traffic between nodes (%s), which it does not do on Windows: set "+
		"trafficEncryptionMode to none in ConfigMap %s/%s, and restart Antrea", e.Mode, antreaNamespace, antreaConfig)
}

// AntreaForWindows makes an object suitable for Windows if the object is the ConfigMap of Antrea's agents
// on Windows; it ignores any other object. live is the present ConfigMap, or nil. linux is the ConfigMap
// for Linux nodes, whose tunnels those of Windows must equal. AntreaForWindows changes only settings that
// do not work, and keeps the comments.
func AntreaForWindows(w Wanted, o, live, linux *unstructured.Unstructured) error {
	if RefOf(o) != RefOf(AntreaWindowsConfigObject()) {
		return nil
	}
	others, _, err := antreaSettingsOf(linux)
	if err != nil {
		return err
	}
	if others.Encryption != "none" {
		return &AntreaEncryptionError{Mode: others.Encryption}
	}
	from := o
	if live != nil {
		from = live
	}
	settings, text, err := antreaSettingsOf(from)
	if err != nil {
		return err
	}
	if changes := w.antreaChanges(settings, others); len(changes) > 0 {
		if text, err = withSettings(text, changes); err != nil {
			return notAntreaSettings(from, err)
		}
	}
	return unstructured.SetNestedField(o.Object, text, "data", antreaSettings)
}

// antreaSettingsOf returns the settings of a ConfigMap, and their text. o may be nil.
func antreaSettingsOf(o *unstructured.Unstructured) (s cluster.AntreaSettings, text string, err error) {
	if o != nil {
		text, _, _ = unstructured.NestedString(o.Object, "data", antreaSettings)
	}
	if s, err = cluster.ReadAntreaSettings(text); err != nil {
		err = notAntreaSettings(o, err)
	}
	return s, text, err
}

func notAntreaSettings(o *unstructured.Unstructured, err error) error {
	return fmt.Errorf("read %s in %s: %w; correct it, or delete the ConfigMap", antreaSettings, RefOf(o), err)
}

// antreaSetting is a setting with the value that Windows nodes need.
type antreaSetting struct {
	path  []string
	value any
}

// antreaChanges returns the settings of Windows nodes that do not work, with the values that do. others
// are the settings of Linux nodes.
func (w Wanted) antreaChanges(is, others cluster.AntreaSettings) (all []antreaSetting) {
	server := net.JoinHostPort(w.APIServerHost, fmt.Sprint(w.APIServerPort))
	if apiServerOf(is) != server {
		all = append(all, antreaSetting{[]string{"kubeAPIServerOverride"}, server})
	}
	if is.TunnelType != others.TunnelType {
		all = append(all, antreaSetting{[]string{"tunnelType"}, others.TunnelType})
	}
	if is.TunnelPort != others.TunnelPort {
		all = append(all, antreaSetting{[]string{"tunnelPort"}, others.TunnelPort})
	}
	if is.Proxy.Enable != nil && !*is.Proxy.Enable {
		all = append(all, antreaSetting{[]string{"antreaProxy", "enable"}, true})
	}
	if !is.Proxy.All {
		all = append(all, antreaSetting{[]string{"antreaProxy", "proxyAll"}, true})
	}
	return all
}

// withSettings returns a text in YAML with some settings changed. It keeps comments and the order.
func withSettings(text string, changes []antreaSetting) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return "", err
	}
	if document.Kind == 0 { // the text is empty, or has only comments
		document = yaml.Node{Kind: yaml.DocumentNode, HeadComment: document.HeadComment,
			Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	for _, c := range changes {
		at := document.Content[0]
		for _, key := range c.path {
			at = fieldOf(at, key)
		}
		if err := at.Encode(c.value); err != nil {
			return "", err
		}
	}
	var changed strings.Builder
	encoder := yaml.NewEncoder(&changed)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(&document), encoder.Close())
	return changed.String(), err
}

// fieldOf returns the value of a key of a mapping. It adds the key if it is missing, and makes a mapping
// of a node that is none.
func fieldOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		mapping.Kind, mapping.Tag, mapping.Value, mapping.Content = yaml.MappingNode, "!!map", "", nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	// The new key comes first: at the end, it would be between the last key and the comments of that key.
	value := &yaml.Node{}
	mapping.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value}, mapping.Content...)
	return value
}

// AntreaWindowsConfigAsIs returns the fields of the present ConfigMap of Antrea's agents on Windows that
// swdt must apply again to remain their owner: all fields if swdt created the ConfigMap, otherwise none.
func AntreaWindowsConfigAsIs(live *unstructured.Unstructured) *unstructured.Unstructured {
	o := Labelled(AntreaWindowsConfigObject(), Antrea)
	if live != nil && isOurs(live) {
		o.SetLabels(live.GetLabels())
		o.Object["data"] = live.DeepCopy().Object["data"]
	}
	return o
}

// antreaAPIServer returns the API server's address in the ConfigMap of Antrea's agents on Windows as
// host:port; "" if there is none.
func (s *Server) antreaAPIServer(ctx context.Context) (string, error) {
	live, err := s.Get(ctx, AntreaWindowsConfigObject())
	if err != nil || live == nil {
		return "", err
	}
	settings, _, err := antreaSettingsOf(live)
	if err != nil {
		return "", nil // the step that applies the ConfigMap reports it
	}
	return apiServerOf(settings), nil
}
