package cluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
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

// publishedScript is the script of the images of sig-windows-tools, which sets the gates below; see
// github.com/kubernetes-sigs/sig-windows-tools 401ee6f, hostprocess/calico/kube-proxy/start.ps1.
const publishedScript = "kube-proxy/start.ps1"

// kubeProxies reads what decides whether the DaemonSets of kube-proxy on Windows nodes work. It leaves out a ConfigMap
// that it cannot read.
func (c *Cluster) kubeProxies(ctx context.Context, sets []appsv1.DaemonSet) (all []KubeProxy) {
	for _, d := range setsOnWindows(sets, "kube-proxy") {
		_, ours := d.Labels[networkLabel]
		k := KubeProxy{Namespace: d.Namespace, Name: d.Name, Image: imageOf(d), Ours: ours}
		text := c.startText(ctx, d)
		for _, one := range d.Spec.Template.Spec.Containers[:min(1, len(d.Spec.Template.Spec.Containers))] {
			k.Starts = len(one.Command)+len(one.Args) > 0
			if strings.Contains(strings.ReplaceAll(text, `\`, "/"), publishedScript) && isPublishedImage(one.Image) {
				k.Gates = append(k.Gates, "WinDSR=true")
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

// isPublishedImage reports whether an image is one of sig-windows-tools, or a mirror of one.
func isPublishedImage(image string) bool {
	return isOfKubeProxy(image, "-calico-hostprocess") || isOfKubeProxy(image, "-flannel-hostprocess")
}

// isOfKubeProxy reports whether an image is named kube-proxy, and its tag has the suffix.
func isOfKubeProxy(image, suffix string) bool {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	return strings.HasPrefix(name, "kube-proxy:") && strings.HasSuffix(name, suffix)
}

// KubeProxyFault is a reason why kube-proxy does not run on Windows nodes.
type KubeProxyFault struct{ What, Evidence string }

// The first minor versions of Kubernetes 1 in which a setting ends kube-proxy, or an image does not exist.
const (
	// gatesLocked: WinDSR and WinOverlay cannot be turned off (kubernetes/kubernetes#132108, #133042).
	gatesLocked = 34
	// gatesGone: they do not exist (kubernetes/kubernetes#142125).
	gatesGone = 38
	// flannelImageGone: sig-windows-tools makes no image of kube-proxy for flannel (729ae7c, a95c9b0).
	flannelImageGone = 33
)

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
	for _, gate := range k.Gates {
		switch {
		case minor >= gatesGone:
			all = append(all, KubeProxyFault{"it has a feature gate that kube-proxy does not know since 1.38, and ends with",
				gate})
		case minor >= gatesLocked && strings.HasSuffix(gate, "=false"):
			all = append(all, KubeProxyFault{"it turns off a feature gate that is locked since 1.34, and ends", gate})
		}
	}
	if k.Mode != "" && k.Mode != "kernelspace" {
		all = append(all, KubeProxyFault{"it reads a mode that kube-proxy refuses on Windows",
			"mode: " + k.Mode + " in config.conf of ConfigMap kube-system/" + kubeProxyConfig})
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
