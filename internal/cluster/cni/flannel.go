package cni

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	flannelNamespace = "kube-flannel"
	flannelConfig    = "kube-flannel-cfg"
	flannelDaemonSet = "kube-flannel-ds"
	// flannelWindows is the DaemonSet for Windows. It is in kube-system, since its image reads
	// kubeadm's ConfigMaps from that namespace.
	flannelWindows = "kube-flannel-ds-windows-amd64"
)

// The VXLAN identifier and UDP port that Windows requires. On Linux, flannel's defaults differ.
const (
	windowsVNI  = 4096
	windowsPort = 4789
)

// CheckFlannel returns a *ManifestError if the manifest is not flannel's.
func CheckFlannel(from string, manifest []*unstructured.Unstructured) error {
	switch {
	case find(manifest, "DaemonSet", flannelDaemonSet) == nil:
		return &ManifestError{From: from, What: "it has no DaemonSet " + flannelDaemonSet + " of flannel"}
	case find(manifest, "ConfigMap", flannelConfig) == nil:
		return &ManifestError{From: from, What: "it has no ConfigMap " + flannelConfig}
	}
	return nil
}

// FlannelConfig makes an object suitable for Windows if the object is flannel's ConfigMap; it
// ignores any other object. live is the present ConfigMap, or nil. If live is nil, FlannelConfig
// sets the pods' addresses and the VXLAN numbers of Windows. Otherwise it takes the settings
// of live and changes only the backend, and only if the backend does not work with Windows.
func FlannelConfig(w Wanted, o, live *unstructured.Unstructured) error {
	if o.GetKind() != "ConfigMap" || o.GetName() != flannelConfig {
		return nil
	}
	from := o
	if live != nil {
		from = live
	}
	text, _, _ := unstructured.NestedString(from.Object, "data", "net-conf.json")
	settings := map[string]any{}
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return fmt.Errorf("read net-conf.json in %s: %w; correct it, or delete the ConfigMap", RefOf(from), err)
	}
	if suitableFlannel(settings) && live != nil {
		return unstructured.SetNestedField(o.Object, text, "data", "net-conf.json")
	}
	if live == nil {
		settings["Network"] = w.PodCIDR.String()
	}
	backend, _ := settings["Backend"].(map[string]any)
	if backend == nil {
		backend = map[string]any{}
	}
	backend["Type"], backend["VNI"], backend["Port"] = "vxlan", windowsVNI, windowsPort
	settings["Backend"] = backend
	changed, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(o.Object, string(changed)+"\n", "data", "net-conf.json")
}

// suitableFlannel reports whether flannel's settings work with Windows nodes.
func suitableFlannel(settings map[string]any) bool {
	backend, _ := settings["Backend"].(map[string]any)
	kind, _ := backend["Type"].(string)
	if strings.EqualFold(kind, "host-gw") {
		return true
	}
	return strings.EqualFold(kind, "vxlan") && backend["VNI"] == float64(windowsVNI) &&
		backend["Port"] == float64(windowsPort)
}

// FlannelConfigObject returns an object with the kind and name of flannel's ConfigMap, without
// content.
func FlannelConfigObject() *unstructured.Unstructured {
	return newObject("v1", "ConfigMap", flannelNamespace, flannelConfig)
}

// FlannelConfigAsIs returns the fields of flannel's present ConfigMap that swdt must apply again
// to remain their owner: all fields if swdt created the ConfigMap, otherwise none. live may be
// nil.
func FlannelConfigAsIs(live *unstructured.Unstructured) *unstructured.Unstructured {
	o := Labelled(FlannelConfigObject(), Flannel)
	if live == nil || !isOurs(live) {
		return o
	}
	o.SetLabels(live.GetLabels())
	o.Object["data"] = live.DeepCopy().Object["data"]
	return o
}

// FlannelWindows returns the objects that run flannel on Windows nodes. config is flannel's
// ConfigMap, with the settings that all nodes share.
func FlannelWindows(image string, config *unstructured.Unstructured) []*unstructured.Unstructured {
	account := Labelled(newObject("v1", "ServiceAccount", "kube-system", "flannel"), Flannel)
	binding := Labelled(newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "flannel-windows"), Flannel)
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
		"name": "flannel"}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "flannel",
		"namespace": "kube-system"}}
	shared := Labelled(newObject("v1", "ConfigMap", "kube-system", flannelConfig), Flannel)
	shared.Object["data"] = config.Object["data"]
	windows := Labelled(newObject("v1", "ConfigMap", "kube-system", "kube-flannel-windows-cfg"), Flannel)
	windows.Object["data"] = map[string]any{"cni-conf-containerd.json": flannelCNI()}

	pod := hostProcessPod("kube-flannel", "flannel", image, []any{
		fromField("POD_NAME", "metadata.name"), fromField("POD_NAMESPACE", "metadata.namespace"),
	})
	mounts, volumes := []any{}, []any{}
	for _, m := range []struct{ name, path, source string }{
		{"flannel-cfg", "/etc/kube-flannel/", flannelConfig},
		{"flannel-windows-cfg", "/etc/kube-flannel-windows/", "kube-flannel-windows-cfg"},
		{"kubeadm-config", "/etc/kubeadm-config/", "kubeadm-config"},
		{"kube-proxy", "/flannel-config-file", "kube-proxy"},
	} {
		mounts = append(mounts, map[string]any{"name": m.name, "mountPath": m.path})
		volumes = append(volumes, map[string]any{"name": m.name, "configMap": map[string]any{"name": m.source}})
	}
	pod["containers"].([]any)[0].(map[string]any)["volumeMounts"] = mounts
	pod["volumes"] = volumes
	labels := map[string]any{"app": "flannel", "tier": "node"}
	return []*unstructured.Unstructured{account, binding, shared, windows,
		daemonSet("kube-system", flannelWindows, labels, pod, Flannel)}
}

// flannelCNI returns the plugin's configuration on Windows, which the image completes with the
// addresses of the node.
func flannelCNI() string {
	policy := func(value map[string]any) map[string]any {
		return map[string]any{"Name": "EndpointPolicy", "Value": value}
	}
	settings := func(kind string, fields map[string]any) map[string]any {
		return policy(map[string]any{"Type": kind, "Settings": fields})
	}
	configuration := map[string]any{
		"name": FlannelNetwork, "cniVersion": "0.3.0", "type": "flannel",
		"capabilities": map[string]any{"portMappings": true, "dns": true},
		"delegate": map[string]any{"type": "sdnoverlay", "AdditionalArgs": []any{
			settings("OutBoundNAT", map[string]any{"Exceptions": []any{}}),
			settings("SDNROUTE", map[string]any{"DestinationPrefix": "", "NeedEncap": true}),
			settings("ProviderAddress", map[string]any{"ProviderAddress": ""}),
		}},
	}
	text, err := json.MarshalIndent(configuration, "", "  ")
	if err != nil { // maps of texts always have a JSON form
		return ""
	}
	return string(text) + "\n"
}

// FlannelImage returns the name of flannel's published image for Windows in a version.
func FlannelImage(version string) string {
	return "sigwindowstools/flannel:" + version + "-hostprocess"
}
