package cni

import (
	"crypto/sha256"
	_ "embed" // kubeproxy.ps1
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	// kubeProxyName is the name of kube-proxy's objects for Windows.
	kubeProxyName = cluster.KubeProxyName
	// kubeSystem is the namespace of kube-proxy's objects.
	kubeSystem = "kube-system"
)

// FlannelNetwork is the name of the HNS network that flannel's configuration makes on Windows.
const FlannelNetwork = "flannel.4096"

// kubeProxyScript starts kube-proxy. It has no settings in it: it reads the container's environment.
//
//go:embed kubeproxy.ps1
var kubeProxyScript string

const (
	kubeProxyScriptFile     = "start.ps1"
	kubeProxyKubeconfigFile = "kubeconfig.conf"
	// kubeProxyFolder is the folder of the script and the kubeconfig in the container. They are used below the
	// container's root, where the runtime has volumes on each Windows; see hcsshim, internal/jobcontainers/mounts.go.
	kubeProxyFolder = "/swdt/kube-proxy"
	// mountPoint is the root of a HostProcess container. hcsshim replaces it in commands and arguments.
	mountPoint = "%CONTAINER_SANDBOX_MOUNT_POINT%"
	// accountFolder is the folder of the account's token, seen from kubeProxyFolder.
	accountFolder = "../../var/run/secrets/kubernetes.io/serviceaccount/"
	// scriptAnnotation has the hash of the script and the kubeconfig, so that a change restarts the pods.
	scriptAnnotation = "swdt.dev/kube-proxy"
)

// KubeProxy returns the objects that run kube-proxy on Windows nodes: an account with the rights of
// system:node-proxier, which each API server has, a ConfigMap with a script and a kubeconfig, and the DaemonSet, which
// is last. The command of its HostProcess container is swdt's own, so any image that has kube-proxy.exe works, and
// neither kubeadm's ConfigMap nor the start script of an image is used: that of sig-windows-tools sets feature gates
// that Kubernetes 1.38 does not know.
func KubeProxy(w Wanted) []*unstructured.Unstructured {
	files := Labelled(newObject("v1", "ConfigMap", kubeSystem, kubeProxyName), w.Network)
	data := map[string]any{kubeProxyScriptFile: kubeProxyScript, kubeProxyKubeconfigFile: w.kubeProxyKubeconfig()}
	files.Object["data"] = data
	return append(kubeProxyAccount(w), files, w.kubeProxyDaemonSet(data))
}

// kubeProxyAccount returns the account of kube-proxy and its rights, those of the role system:node-proxier.
func kubeProxyAccount(w Wanted) []*unstructured.Unstructured {
	account := Labelled(newObject("v1", "ServiceAccount", kubeSystem, kubeProxyName), w.Network)
	binding := Labelled(newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "swdt:"+kubeProxyName),
		w.Network)
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
		"name": "system:node-proxier"}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": kubeProxyName,
		"namespace": kubeSystem}}
	return []*unstructured.Unstructured{account, binding}
}

// kubeProxyKubeconfig returns a kubeconfig for the account of the pod. Its paths are relative to the kubeconfig, since
// the root of a HostProcess container differs between versions of Windows.
func (w Wanted) kubeProxyKubeconfig() string {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "cluster",
		"clusters": []any{map[string]any{"name": "cluster", "cluster": map[string]any{
			"certificate-authority": accountFolder + "ca.crt", "server": w.apiServerURL()}}},
		"contexts": []any{map[string]any{"name": "cluster", "context": map[string]any{
			"cluster": "cluster", "user": kubeProxyName}}},
		"users": []any{map[string]any{"name": kubeProxyName, "user": map[string]any{"tokenFile": accountFolder + "token"}}},
	})
	if err != nil { // maps of texts always have a YAML form
		return ""
	}
	return string(text)
}

func (w Wanted) kubeProxyDaemonSet(files map[string]any) *unstructured.Unstructured {
	labels := map[string]any{"k8s-app": kubeProxyName}
	pod := hostProcessPod("kube-proxy", kubeProxyName, w.KubeProxyImage, []any{
		fromField("NODE_NAME", "spec.nodeName"),
		map[string]any{"name": "KUBE_NETWORK", "value": w.Network.HNSName()},
	})
	container := pod["containers"].([]any)[0].(map[string]any)
	container["command"] = []any{commandline.PowerShell}
	container["args"] = []any{"-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File",
		mountPoint + strings.ReplaceAll(kubeProxyFolder, "/", `\`) + `\` + kubeProxyScriptFile}
	container["workingDir"] = mountPoint + `\`
	container["volumeMounts"] = []any{map[string]any{"mountPath": kubeProxyFolder, "name": "files"}}
	pod["volumes"] = []any{map[string]any{"name": "files", "configMap": map[string]any{"name": kubeProxyName}}}
	pod["affinity"] = map[string]any{"nodeAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{map[string]any{
			"matchExpressions": []any{map[string]any{"key": cluster.KubeProxyLabel, "operator": "NotIn",
				"values": []any{string(cluster.KubeProxyService)}}}}}}}}
	set := daemonSet(kubeSystem, kubeProxyName, labels, pod, w.Network)
	sum := sha256.Sum256(fmt.Append(nil, files[kubeProxyScriptFile], files[kubeProxyKubeconfigFile]))
	_ = unstructured.SetNestedField(set.Object, hex.EncodeToString(sum[:8]), "spec", "template", "metadata",
		"annotations", scriptAnnotation) // cannot fail: the maps are those of daemonSet
	return set
}

// kubeProxyImage returns the published image of kube-proxy for an API server's version; "" if none is published. The
// tag has the version without what vendors add to it, such as -eks-3abc or +k3s1. The images of sig-windows-tools
// that are named after Calico are for each pod network: a job of .github/workflows/sync-kube-proxy-images.yaml makes
// one for each stable version, and none for alpha, beta and rc.
func kubeProxyImage(server string) string {
	v, err := version.ParseSemantic(server)
	if err != nil || isPreRelease(v) {
		return ""
	}
	return fmt.Sprintf("sigwindowstools/kube-proxy:v%d.%d.%d-calico-hostprocess", v.Major(), v.Minor(), v.Patch())
}

// isPreRelease reports whether a version is one of Kubernetes before its release. Vendors use the same part of a
// version for names of their own.
func isPreRelease(v *version.Version) bool {
	kind, _, _ := strings.Cut(v.PreRelease(), ".")
	return kind == "alpha" || kind == "beta" || kind == "rc"
}

// NoKubeProxyImageError reports that no image of kube-proxy for Windows is published for the cluster's version.
type NoKubeProxyImageError struct{ Version string }

func (e *NoKubeProxyImageError) Error() string {
	return fmt.Sprintf("no image of kube-proxy for Windows is published for Kubernetes %s: name an image that has "+
		"kube-proxy.exe, of at most three minor versions earlier, with --kube-proxy-image, or leave kube-proxy out with "+
		"--no-kube-proxy", e.Version)
}

// CheckKubeProxyImage returns a *NoKubeProxyImageError if there is no image for kube-proxy.
func (w Wanted) CheckKubeProxyImage(f Facts) error {
	if w.KubeProxyImage == "" {
		return &NoKubeProxyImageError{Version: f.Version}
	}
	return nil
}

// KubeProxyError reports a DaemonSet of another installer whose kube-proxy does not run on Windows nodes.
type KubeProxyError struct {
	KubeProxy cluster.KubeProxy
	Faults    []cluster.KubeProxyFault
	Network   Network // that of the cluster
}

func (e *KubeProxyError) Error() string {
	var texts []string
	for _, f := range e.Faults {
		texts = append(texts, fmt.Sprintf("%s (%s)", f.What, f.Evidence))
	}
	return fmt.Sprintf("DaemonSet %s/%s of kube-proxy does not run: %s; %s", e.KubeProxy.Namespace, e.KubeProxy.Name,
		strings.Join(texts, "; "), MendKubeProxy(e.KubeProxy, e.Network))
}

// MendKubeProxy returns the remedy for a DaemonSet of kube-proxy that does not run, in a cluster with a pod network.
func MendKubeProxy(k cluster.KubeProxy, n Network) string {
	install := []string{"network", "install", string(n)}
	switch {
	case n == "":
		return "run kube-proxy without feature gates, and without --config"
	case k.Ours:
		return "let swdt replace it: " + remedy.Command(install...)
	case k.Namespace == kubeSystem && k.Name == kubeProxyName:
		return "let swdt replace it in place: " + remedy.Command(append(install, "--force")...)
	}
	return "remove it: " + remedy.KubectlCommand("delete", "daemonset", k.Name, "-n", k.Namespace) + "; and let swdt install " +
		"its own: " + remedy.Command(install...)
}

// daemonSet returns a DaemonSet for Windows nodes.
func daemonSet(namespace, name string, labels, pod map[string]any, n Network) *unstructured.Unstructured {
	o := Labelled(newObject("apps/v1", "DaemonSet", namespace, name), n)
	o.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
	}
	return o
}

// hostProcessPod returns a pod with one container that runs on the Windows node itself, as SYSTEM.
func hostProcessPod(container, account, image string, env []any) map[string]any {
	return map[string]any{
		"os":                 map[string]any{"name": "windows"},
		"nodeSelector":       map[string]any{"kubernetes.io/os": "windows"},
		"tolerations":        []any{map[string]any{"operator": "Exists"}},
		"priorityClassName":  "system-node-critical",
		"serviceAccountName": account,
		"hostNetwork":        true,
		"securityContext": map[string]any{"windowsOptions": map[string]any{
			"hostProcess": true, "runAsUserName": `NT AUTHORITY\SYSTEM`,
		}},
		"containers": []any{map[string]any{"name": container, "image": image, "env": env}},
	}
}

// fromField returns an environment variable whose value is a field of the pod.
func fromField(name, path string) map[string]any {
	return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
}
