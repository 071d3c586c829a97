package cni

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// kubeProxyName is the name of kube-proxy's DaemonSet for Windows.
const kubeProxyName = "kube-proxy-windows"

// FlannelNetwork is the name of the HNS network that flannel's configuration makes on Windows.
const FlannelNetwork = "flannel.4096"

// KubeProxy returns the DaemonSet that runs kube-proxy on Windows nodes as a HostProcess container.
// It uses the account and the configuration that kubeadm has made for kube-proxy on Linux. The image
// waits for the HNS network of the pod network.
func KubeProxy(w Wanted) *unstructured.Unstructured {
	labels := map[string]any{"k8s-app": kubeProxyName}
	env := []any{fromField("NODE_NAME", "spec.nodeName"), fromField("POD_IP", "status.podIP")}
	if w.Network == Flannel {
		env = append(env, map[string]any{"name": "KUBE_NETWORK", "value": FlannelNetwork})
	}
	pod := hostProcessPod("kube-proxy", "kube-proxy", w.KubeProxyImage, env)
	pod["containers"].([]any)[0].(map[string]any)["volumeMounts"] = []any{
		map[string]any{"mountPath": "/var/lib/kube-proxy", "name": "kube-proxy"},
	}
	pod["volumes"] = []any{map[string]any{"name": "kube-proxy", "configMap": map[string]any{"name": "kube-proxy"}}}
	return daemonSet("kube-system", kubeProxyName, labels, pod, w.Network)
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
