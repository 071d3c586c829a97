//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// proxy returns the node with its kube-proxy.
func (n upNode) proxy() proxyNode { return proxyNode{cluster: n.cluster, config: n.config} }

// installNetwork installs the pod network of the Linux node under flannel's names, and chooses kube-proxy as a service.
func (n upNode) installNetwork(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../lab/kind/default-cni.yaml")
	if err != nil {
		t.Fatal(err)
	}
	daemonSet := strings.Replace(string(text), "{name: lab-cni, namespace: kube-system}",
		"{name: kube-flannel-ds, namespace: kube-flannel}", 1)
	n.proxy().installFlannel(t, "service", daemonSet)
}

// runFlannel runs the program that stands for flanneld.exe on the node, with the addresses of the Node objects, and brings
// the CNI plugin that flannel uses.
func (n upNode) runFlannel(t *testing.T) {
	t.Helper()
	ok(t, "cp", "-c", n.config, lab(t, "pods/lab-flannel.exe"), `node:C:\lab\lab-flannel.exe`)
	ok(t, "cp", "-c", n.config, lab(t, "node/host-local.exe"), `node:C:\lab\cni\host-local.exe`)
	subnet := func(node string) string {
		return n.kubectl(t, "get", "node", node, "-o", "jsonpath={.spec.podCIDR}")
	}
	n.exec(t, `C:\lab\lab-flannel.exe`, "-subnet", subnet("wine-1"), "-address", upGateway,
		subnet("dev-control-plane")+"="+upControlPlane)
}

// threeServices has a Service for its cluster IP alone, one with a node port, and one with all other addresses and only local
// backends, and the Deployments behind them. The first two have pods of Linux, the third pods of both.
const threeServices = `
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {os: linux}, sessionAffinity: ClientIP,
  ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web-node}, spec: {selector: {os: linux}, type: NodePort,
  ports: [{port: 81, targetPort: 8080, nodePort: 30081}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web-local}, spec: {selector: {app: web}, type: LoadBalancer,
  externalTrafficPolicy: Local, externalIPs: [203.0.113.7], ports: [{port: 82, targetPort: 8080, nodePort: 30082}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: linux}, spec: {replicas: 0,
  selector: {matchLabels: {app: web, os: linux}}, template: {metadata: {labels: {app: web, os: linux}}, spec: {
    nodeSelector: {kubernetes.io/os: linux}, terminationGracePeriodSeconds: 1,
    containers: [{name: web, image: %[1]s, args: [netexec, --http-port=8080, --udp-port=-1]}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: windows}, spec: {replicas: 0,
  selector: {matchLabels: {app: web, os: windows}}, template: {metadata: {labels: {app: web, os: windows}}, spec: {
    nodeSelector: {kubernetes.io/os: windows}, tolerations: [{key: os, operator: Exists}], terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    containers: [{name: web, image: %[1]s, args: [netexec, --http-port=8080, --udp-port=-1]}]}}}}
`

// ingressIP is the address that a cloud would give web-local.
const ingressIP = "203.0.113.8"

// programsServices holds all objects of HNS against the table of kube-proxy's rules, field by field, while the backends of
// three Services come and go. The service kube-proxy that the join has made is the maker of each load balancer, and of each
// endpoint but those of the node's own pods.
func (n upNode) programsServices(t *testing.T) {
	t.Helper()
	n.apply(t, fmt.Sprintf(threeServices, n.image))
	n.kubectl(t, "patch", "service", "web-local", "--subresource=status", "--type=merge", "-p",
		`{"status": {"loadBalancer": {"ingress": [{"ip": "`+ingressIP+`"}]}}}`)
	n.expectHNS(t)
	n.scale(t, 2, 1)
	n.expectHNS(t)
	n.scale(t, 0, 0)
	n.expectHNS(t)
	n.kubectl(t, "delete", "deployment,service", "linux", "windows", "web", "web-node", "web-local", "--ignore-not-found")
	n.expectHNS(t)
}

// scale sets the numbers of pods on Linux and on Windows, and waits for the pods.
func (n upNode) scale(t *testing.T, linux, windows int) {
	t.Helper()
	for name, count := range map[string]int{"linux": linux, "windows": windows} {
		n.kubectl(t, "scale", "deployment", name, fmt.Sprintf("--replicas=%d", count))
	}
	within(t, commandLimit, fmt.Sprintf("%d pods on Linux and %d on Windows", linux, windows), func() error {
		for name, count := range map[string]int{"linux": linux, "windows": windows} {
			if ready := n.backends(t, "os="+name); len(ready) != count {
				return fmt.Errorf("on %s: %v", name, ready)
			}
		}
		if all := strings.Fields(n.kubectl(t, "get", "pods", "-o", "name")); len(all) != linux+windows {
			return fmt.Errorf("pods: %v", all)
		}
		return nil
	})
}

// expectNoHNS checks that down has removed flannel's network with all that kube-proxy and the network plugin made in it.
func (n upNode) expectNoHNS(t *testing.T) {
	t.Helper()
	o, err := readHNS(n.proxy().hns())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.networks)+len(o.endpoints)+len(o.balancers) > 0 {
		t.Errorf("down left objects of HNS: %+v", o)
	}
}
