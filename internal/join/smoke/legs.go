package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The legs of a node, in their order.
const (
	Scheduled        = "scheduled"
	Started          = "started"
	LogsAndExec      = "logs-and-exec"
	Resolves         = "resolves"
	ReachesLinux     = "reaches-linux"
	ReachesService   = "reaches-service"
	ReachedFromLinux = "reached-from-linux"
	ReachesAPI       = "reaches-api"
)

func legNames() []string {
	return []string{Scheduled, Started, LogsAndExec, Resolves, ReachesLinux, ReachesService, ReachedFromLinux, ReachesAPI}
}

// leg is one fact of a node.
type leg struct {
	name  string
	tries string   // what the leg does, for the progress output
	needs []string // legs that must have passed
	// needsServer reports whether the leg needs the server on Linux.
	needsServer bool
	run         func(ctx context.Context) error
}

// nodeTest is the test of one node.
type nodeTest struct {
	*run
	node    cluster.Node
	pod     cluster.Pod
	live    *corev1.Pod // the pod as it was when it had started; nil before
	linuxIP string      // the address of the server on Linux; empty until a leg needs the server
	r       ui.Reporter
}

// testNode runs the legs of a node.
func (w *run) testNode(ctx context.Context, n cluster.Node, pod string, r ui.Reporter) NodeReport {
	t := &nodeTest{run: w, node: n, pod: cluster.Pod{Namespace: w.namespace, Name: pod}, r: r}
	report := NodeReport{Outcome: fleet.Outcome{Name: n.Name, Result: Passed}, Build: n.KernelVersion, Pod: pod,
		Image: w.Image}
	for _, l := range t.legs() {
		begin := time.Now()
		done := Leg{Name: l.name}
		done.Result, done.Message = t.result(ctx, l, report.Legs)
		if done.Result != NotRun {
			done.Seconds = time.Since(begin).Seconds()
		}
		report.Legs = append(report.Legs, done)
		switch done.Result {
		case Passed:
			r.Info("leg %s passed", l.name)
		case Failed:
			r.Warn("leg %s failed: %s", l.name, done.Message)
		}
	}
	return report.ended()
}

// legs returns the legs of the node.
func (t *nodeTest) legs() []leg {
	running := []string{Started, LogsAndExec}
	return []leg{
		{name: Scheduled, tries: "making a pod and waiting until it is scheduled", run: t.schedule},
		{name: Started, tries: "waiting until the pod has started", needs: []string{Scheduled}, run: t.start},
		{name: LogsAndExec, tries: "reading the pod's log and running a command in it", needs: []string{Started},
			run: func(ctx context.Context) error { return t.withoutAddress(t.logsAndExec(ctx, t.pod, windows)) }},
		{name: Resolves, tries: "resolving the name of the Service in the pod", needs: running, run: t.resolves},
		{name: ReachesLinux, tries: "reaching the Linux pod from the pod", needs: running, needsServer: true,
			run: t.reachesLinux},
		{name: ReachesService, tries: "reaching the Service from the pod", needs: running, needsServer: true,
			run: t.reachesService},
		{name: ReachedFromLinux, tries: "reaching the pod from the Linux pod", needs: []string{Started}, needsServer: true,
			run: t.reachedFromLinux},
		{name: ReachesAPI, tries: "reaching the API server from the pod", needs: running, run: t.reachesAPI},
	}
}

// withoutAddress adds the likely cause to the error of a leg that needs the API server to reach kubelet.
func (t *nodeTest) withoutAddress(err error) error {
	if err == nil || t.node.InternalIP() != "" {
		return err
	}
	return fmt.Errorf("the node has no InternalIP, so the API server does not reach its kubelet: `swdt join` sets one; %w", err)
}

// result runs a leg, and returns the leg's result and message. It does not run the leg if another
// leg that must pass first has not passed, if the leg needs the server and the server does not run,
// or if ctx has ended.
func (t *nodeTest) result(ctx context.Context, l leg, before []Leg) (result, message string) {
	for _, b := range before {
		if b.Result != Passed && slices.Contains(l.needs, b.Name) {
			return NotRun, "needs " + b.Name
		}
	}
	if l.needsServer {
		address, err := t.server.await(ctx)
		if err != nil {
			return NotRun, shortened(err.Error(), maxMessage)
		}
		t.linuxIP = address
	}
	if ctx.Err() != nil {
		return NotRun, "interrupted"
	}
	t.r.Step("%s", l.tries)
	err := l.run(ctx)
	switch {
	case err == nil:
		return Passed, ""
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded): // Ctrl-C
		return NotRun, "interrupted"
	}
	return Failed, shortened(err.Error(), maxMessage)
}

func (t *nodeTest) schedule(ctx context.Context) error {
	if err := unfit(t.node); err != nil {
		return err
	}
	pod := windowsPod(t.namespace, t.pod.Name, t.Image, t.node)
	_, err := t.c.Clientset().CoreV1().Pods(t.namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return t.refused("make pod "+t.pod.Name, "pods", err)
	}
	_, err = t.awaitPod(ctx, t.pod, "scheduled", t.scheduleLimit(), isScheduled, t.r)
	return err
}

func (t *nodeTest) start(ctx context.Context) (err error) {
	at := &starting{build: t.node.KernelVersion, flag: t.ImageFlag}
	t.live, err = t.awaitPod(ctx, t.pod, "started", t.Wait, at.look, t.r)
	return err
}

func (t *nodeTest) resolves(ctx context.Context) error {
	q := echo(t.pod, windows, hostPort(serverName, servicePort))
	return t.reach(ctx, q, func(a answer) error {
		if a.resolved && a.code != 0 { // another leg shows whether the Service is reached
			return nil
		}
		return q.wrong(a)
	}, "does CoreDNS run (`kubectl -n kube-system get pods -l k8s-app=kube-dns`), and does the node's kubelet have "+
		"clusterDNS and clusterDomain?")
}

func (t *nodeTest) reachesLinux(ctx context.Context) error {
	q := echo(t.pod, windows, hostPort(t.linuxIP, serverPort))
	return t.reach(ctx, q, q.wrong, "does the pod network connect Windows and Linux nodes (VXLAN: UDP 4789)? "+
		"`swdt network status` shows it")
}

func (t *nodeTest) reachesService(ctx context.Context) error {
	q := echo(t.pod, windows, hostPort(t.service, servicePort))
	return t.reach(ctx, q, q.wrong, "does kube-proxy run on the node? `swdt hns loadbalancers` shows its rules")
}

func (t *nodeTest) reachedFromLinux(ctx context.Context) error {
	q := echo(t.server.pod, linux, hostPort(t.live.Status.PodIP, serverPort))
	return t.reach(ctx, q, q.wrong, "does the node's firewall or a policy of its pod network block the pod's port?")
}

func (t *nodeTest) reachesAPI(ctx context.Context) error {
	url, err := address(ctx, t.c)
	if err != nil {
		return err
	}
	q := request{from: t.pod, system: windows, url: url}
	return t.reach(ctx, q, q.notFromAPI, "does kube-proxy run on the node, and does the node reach the API server?")
}
