package up_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// pods plays the scheduler, the kubelets and curl for the pods of a smoke test.
type pods struct {
	image string // the image of both systems; "" for the default
	// missing is the image that no registry has for the node's Windows.
	missing string
	// noSandbox is the reason why no pod sandbox starts on the Windows node; "" if one starts.
	noSandbox string
}

// play returns a hook of the API server that changes a pod of the smoke test before it is read.
func (p *pods) play(server *apiserver.Cluster) func(apiserver.Request) apiserver.Verdict {
	return func(r apiserver.Request) apiserver.Verdict {
		if r.Verb != "get" || r.Resource != "pods" || r.Subresource != "" || !strings.HasPrefix(r.Namespace, "swdt-smoke-") {
			return apiserver.Verdict{}
		}
		o, ok := server.Object("pods", r.Namespace, r.Name)
		if !ok {
			return apiserver.Verdict{}
		}
		text, err := json.Marshal(o)
		if err != nil {
			return apiserver.Verdict{Status: 500, Message: err.Error()}
		}
		var pod corev1.Pod
		if err := json.Unmarshal(text, &pod); err != nil {
			return apiserver.Verdict{Status: 500, Message: err.Error()}
		}
		p.start(&pod)
		if text, err = json.Marshal(pod); err == nil {
			err = server.Plant(string(text))
		}
		if err != nil {
			return apiserver.Verdict{Status: 500, Message: err.Error()}
		}
		return apiserver.Verdict{}
	}
}

// start does the work of the scheduler and the kubelet.
func (p *pods) start(pod *corev1.Pod) {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	onWindows := pod.Name != "server"
	pod.Spec.NodeName, pod.Status.PodIP = "linux-1", "10.244.0.7"
	if onWindows {
		pod.Spec.NodeName, pod.Status.PodIP = "win-1", "10.244.1.7"
	}
	image := pod.Spec.Containers[0].Image
	status := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: image,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	switch {
	case onWindows && image == p.missing:
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull",
			Message: "no match for platform in manifest: not found"}}
	case onWindows && p.noSandbox != "":
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating",
			Message: p.noSandbox}}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
}

// Exec plays curl.
func (p *pods) Exec(_ context.Context, _ cluster.Pod, _ string, _ int, command ...string) (cluster.ExecResult, error) {
	if slices.Contains(command, "--version") {
		return cluster.ExecResult{Stdout: "curl 8.12.1"}, nil
	}
	if i := slices.Index(command, "--data"); i >= 0 {
		return cluster.ExecResult{Stdout: strings.TrimPrefix(command[i+1], "msg=") + "\n200 0.000021"}, nil
	}
	return cluster.ExecResult{Stdout: `{"kind":"Status"}` + "\n403 0.000021"}, nil
}

// PodLog plays the kubelets' logs.
func (p *pods) PodLog(context.Context, cluster.Pod, string, int64, int64) (string, error) {
	return "Started HTTP server on port 8080", nil
}

// nodesOfPods are the nodes of the smoke test, without the end of the Linux node's document.
const nodesOfPods = `apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{port: 443}]}
---
apiVersion: v1
kind: Node
metadata: {name: win-1, labels: {kubernetes.io/os: windows}}
status:
  nodeInfo: {operatingSystem: windows, kernelVersion: 10.0.20348.2849}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Node
metadata: {name: linux-1, labels: {kubernetes.io/os: linux}}
status:
  nodeInfo: {operatingSystem: linux}
  conditions: [{type: Ready, status: "True"}]
`

// mistakesOfPods are found by the pods of --smoke.
func mistakesOfPods() []mistake {
	const byPods = "stand-ins for the scheduler, the kubelets and the pods"
	run := func(p *pods, linux string) func(*world) {
		return func(w *world) {
			w.plant(nodesOfPods + linux)
			w.pods = p
		}
	}
	right := run(&pods{}, "spec: {}\n")
	return []mistake{
		{is: "no image of the smoke test for the node's Windows", found: inCheck, fake: byPods,
			words:  []string{"image mirror.example/agnhost:old: ErrImagePull: no match for platform in manifest", "10.0.20348.2849"},
			remedy: "--smoke-image names another one",
			plant:  run(&pods{image: "mirror.example/agnhost:old", missing: "mirror.example/agnhost:old"}, "spec: {}\n"),
			cure:   run(&pods{image: "mirror.example/agnhost:2.63.0", missing: "mirror.example/agnhost:old"}, "spec: {}\n")},
		{is: "taints that keep pods away from the only Linux node", found: inCheck, fake: byPods,
			words:  []string{"reaches-linux: no Linux node can run the server: linux-1 has the taint dedicated=db:NoSchedule"},
			remedy: "`kubectl taint nodes linux-1 dedicated:NoSchedule-` removes it",
			plant:  run(&pods{}, "spec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}\n"), cure: right},
		{is: "a pause image for another Windows", found: inCheck, fake: byPods,
			words: []string{"started: ", "pull image registry.example/pause:3.10: no match for platform in manifest"},
			remedy: "is there a pause image for Windows build 10.0.20348.2849 in spec.kubernetes.containerd.pauseImage, and " +
				"does the pod network work on the node?",
			plant: run(&pods{noSandbox: "failed to pull image registry.example/pause:3.10: no match for platform in manifest"},
				"spec: {}\n"), cure: right},
	}
}
