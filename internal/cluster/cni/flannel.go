package cni

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	flannelNamespace = "kube-flannel"
	flannelConfig    = "kube-flannel-cfg"
	flannelDaemonSet = "kube-flannel-ds"
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

// NoWindowsFlannelError reports that nothing runs flannel on the Windows nodes of the cluster.
type NoWindowsFlannelError struct {
	// Ours names a DaemonSet of flannel for Windows that an earlier swdt has made, whose image is not published any
	// more; "" if there is none.
	Ours string
}

func (e *NoWindowsFlannelError) Error() string {
	why := "nothing was changed: no image of flannel for Windows is published since 2025, neither by flannel nor by " +
		"sig-windows-tools (kubernetes-sigs/sig-windows-tools#385)"
	if e.Ours != "" {
		namespace, name, _ := strings.Cut(e.Ours, "/")
		return fmt.Sprintf("install flannel: %s; an earlier swdt has made DaemonSet %s with such an image, remove it: %s; %s",
			why, e.Ours, remedy.KubectlCommand("delete", "daemonset", name, "-n", namespace), flannelRemedy())
	}
	return fmt.Sprintf("install flannel: %s; %s", why, flannelRemedy())
}

func flannelRemedy() string {
	return "choose Calico (" + remedy.Command("network", "install", "calico") + ") in a cluster without a pod network, or run " +
		"flanneld.exe of flannel's release on each Windows node yourself, and install the rest with " +
		remedy.Command("network", "install", "flannel", "--no-windows-flannel")
}

// CheckWindowsFlannel returns a *NoWindowsFlannelError unless the cluster has a flannel for Windows that another
// installer has made.
func CheckWindowsFlannel(f Facts) error {
	none := &NoWindowsFlannelError{}
	if f.Networks.Flannel == nil {
		return none
	}
	for _, name := range f.Networks.Flannel.WindowsDaemonSets {
		if !slices.Contains(f.Ours, name) {
			return nil
		}
		none.Ours = name
	}
	return none
}
