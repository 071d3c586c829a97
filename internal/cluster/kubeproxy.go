package cluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

// KubeProxy is a DaemonSet that runs kube-proxy on Windows nodes, as far as swdt judges it.
type KubeProxy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Image     string `json:"image"`  // "" if it has no container
	Starts    bool   `json:"starts"` // its container has a command or arguments
	Ours      bool   `json:"ours"`   // swdt has made it
	// Gates has the feature gates of Windows in its command and its ConfigMaps, such as WinDSR=true.
	Gates []string `json:"gates,omitempty"`
	// Mode is the mode in ConfigMap kube-system/kube-proxy, if it reads its configuration from there.
	Mode string `json:"mode,omitempty"`
}

// networkLabel is on each object that swdt has made for a pod network.
const networkLabel = "swdt.dev/network"

// kubeProxies reads what decides whether the DaemonSets of kube-proxy on Windows nodes work. It leaves out a ConfigMap
// that it cannot read.
func (c *Cluster) kubeProxies(ctx context.Context, sets []appsv1.DaemonSet) (all []KubeProxy) {
	for _, d := range setsOnWindows(sets, "kube-proxy") {
		_, ours := d.Labels[networkLabel]
		k := KubeProxy{Namespace: d.Namespace, Name: d.Name, Image: imageOf(d), Ours: ours}
		text := c.startText(ctx, d)
		for _, one := range d.Spec.Template.Spec.Containers[:min(1, len(d.Spec.Template.Spec.Containers))] {
			k.Starts = len(one.Command)+len(one.Args) > 0
			for _, gate := range kubesettings.ImageGates(one.Image, slices.Concat(one.Command, one.Args)) {
				k.Gates = append(k.Gates, gate+"=true")
			}
		}
		for _, gate := range gatePattern().FindAllStringSubmatch(text, -1) {
			k.Gates = append(k.Gates, gate[1]+"="+gate[2])
		}
		slices.Sort(k.Gates)
		k.Gates = slices.Compact(k.Gates)
		if regexp.MustCompile(`--config[=\s"',]`).MatchString(text) {
			k.Mode = c.kubeProxyMode(ctx)
		}
		all = append(all, k)
	}
	return all
}

func gatePattern() *regexp.Regexp {
	return regexp.MustCompile(`\b(WinDSR|WinOverlay)\s*[=:]\s*(true|false)\b`)
}

// startText returns the commands and the environment of a DaemonSet's containers, and the texts of the ConfigMaps that
// they mount, but for that of kubeadm.
func (c *Cluster) startText(ctx context.Context, d appsv1.DaemonSet) string {
	var text strings.Builder
	for _, one := range d.Spec.Template.Spec.Containers {
		for _, part := range slices.Concat(one.Command, one.Args) {
			fmt.Fprintln(&text, part)
		}
		for _, variable := range one.Env {
			fmt.Fprintln(&text, variable.Value)
		}
	}
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil || volume.ConfigMap.Name == kubeProxyConfig {
			continue
		}
		data, _, err := c.configMap(ctx, d.Namespace, volume.ConfigMap.Name)
		if err != nil {
			continue
		}
		for _, content := range data {
			fmt.Fprintln(&text, content)
		}
	}
	return text.String()
}

// kubeProxyConfig is the name of kubeadm's ConfigMap of kube-proxy.
const kubeProxyConfig = "kube-proxy"

// kubeProxyMode returns the mode in kubeadm's ConfigMap; "" if it has none.
func (c *Cluster) kubeProxyMode(ctx context.Context) string {
	data, _, err := c.configMap(ctx, "kube-system", kubeProxyConfig)
	if err != nil {
		return ""
	}
	var settings struct {
		Mode string `json:"mode"`
	}
	if err := yaml.Unmarshal([]byte(data["config.conf"]), &settings); err != nil {
		return ""
	}
	return settings.Mode
}

// isOfKubeProxy reports whether an image is named kube-proxy, and its tag has the suffix.
func isOfKubeProxy(image, suffix string) bool {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	return strings.HasPrefix(name, "kube-proxy:") && strings.HasSuffix(name, suffix)
}

// KubeProxyFault is a reason why kube-proxy does not run on Windows nodes.
type KubeProxyFault struct{ What, Evidence string }

// flannelImageGone is the first minor version for which sig-windows-tools makes no image of kube-proxy for flannel
// (729ae7c, a95c9b0).
const flannelImageGone = 33

// Faults returns the reasons why the DaemonSet's kube-proxy does not run. server is the API server's version, which
// counts if the image's tag has none.
func (k KubeProxy) Faults(server string) (all []KubeProxyFault) {
	minor := minorOf(server)
	if i := strings.LastIndex(k.Image, ":"); i > strings.LastIndex(k.Image, "/") {
		if tagged := minorOf(k.Image[i+1:]); tagged > 0 {
			minor = tagged
		}
	}
	if !k.Starts && isOfKubeProxy(k.Image, "-calico-hostprocess") {
		all = append(all, KubeProxyFault{"it has no command: its image starts PowerShell without a script, which ends at once",
			"image " + k.Image})
	}
	if isOfKubeProxy(k.Image, "-flannel-hostprocess") && minor >= flannelImageGone {
		all = append(all, KubeProxyFault{"its image is not published: there is none for flannel since Kubernetes 1.33",
			"image " + k.Image})
	}
	all = append(all, gateFaults(k.Gates, minor)...)
	if k.Mode != "" && k.Mode != "kernelspace" {
		all = append(all, KubeProxyFault{"it reads a mode that kube-proxy refuses on Windows",
			"mode: " + k.Mode + " in config.conf of ConfigMap kube-system/" + kubeProxyConfig})
	}
	return all
}

// gateFaults returns the gates with which kube-proxy of a minor version ends.
func gateFaults(gates []string, minor int) (all []KubeProxyFault) {
	table, err := kubesettings.Load()
	if err != nil || minor < table.Oldest() {
		return nil
	}
	for _, gate := range gates {
		name, value, _ := strings.Cut(gate, "=")
		switch g := table.Gate(name, min(minor, table.Newest())); {
		case !g.Known:
			all = append(all, KubeProxyFault{fmt.Sprintf("it has a feature gate that kube-proxy does not know since 1.%d, and ends with",
				g.Since), gate})
		case g.Locked && value != strconv.FormatBool(g.On):
			all = append(all, KubeProxyFault{fmt.Sprintf("it turns off a feature gate that is locked since 1.%d, and ends", g.Since), gate})
		}
	}
	return all
}

// minorOf returns the minor version in a version of Kubernetes 1, such as v1.36.3-calico-hostprocess; 0 if there is none.
func minorOf(text string) int {
	v, err := version.ParseGeneric(strings.SplitN(text, "-", 2)[0])
	if err != nil || v.Major() != 1 {
		return 0
	}
	return int(v.Minor())
}
