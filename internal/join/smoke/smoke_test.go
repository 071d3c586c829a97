package smoke_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
)

// legs returns the legs of a node that did not pass, as "NAME RESULT".
func unpassed(n smoke.NodeReport) (all []string) {
	for _, l := range n.Legs {
		if l.Result != smoke.Passed {
			all = append(all, l.Name+" "+l.Result)
		}
	}
	return all
}

func message(n smoke.NodeReport, leg string) string {
	for _, l := range n.Legs {
		if l.Name == leg {
			return l.Message
		}
	}
	return ""
}

func TestAHealthyClusterPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		report, err := w.run(t.Context(), smoke.Options{})
		if err != nil || report.Result != smoke.Passed {
			t.Fatalf("result %q, error %v: %+v", report.Result, err, report)
		}
		var nodes []string
		for _, n := range report.Nodes {
			nodes = append(nodes, n.Name+" "+n.Result+" "+n.Build)
			if len(n.Legs) != 8 {
				t.Errorf("%s has %d legs, want 8", n.Name, len(n.Legs))
			}
		}
		if diff := cmp.Diff([]string{"win-1 passed 10.0.20348.2849", "win-2 passed 10.0.20348.2849"}, nodes); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
		if report.Server.Node != "cp" || report.Server.Address != linuxIP {
			t.Errorf("server %+v", report.Server)
		}
		w.nothingIsLeft(t, report)
	})
}

// Each leg fails alone: the legs that need it are not run, and all others pass.
func TestEachLegFailsAlone(t *testing.T) {
	onWindows := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if p.Spec.NodeName == "win-1" {
				change(p)
			}
		}
	}
	waiting := func(reason, text string) func(*corev1.Pod) {
		return onWindows(func(p *corev1.Pod) {
			p.Status.PodIP = ""
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: text}}
		})
	}
	blocks := func(from, url string, code int) func(*world) {
		return func(w *world) {
			w.network = func(pod, to string) (int, bool) { return code, pod == from && strings.HasPrefix(to, url) }
		}
	}
	afterScheduled := []string{"started notRun", "logs-and-exec notRun", "resolves notRun", "reaches-linux notRun",
		"reaches-service notRun", "reached-from-linux notRun", "reaches-api notRun"}
	afterStarted := append([]string{"started failed"}, afterScheduled[1:]...)
	afterExec := []string{"logs-and-exec failed", "resolves notRun", "reaches-linux notRun", "reaches-service notRun",
		"reaches-api notRun"}
	for name, c := range map[string]struct {
		breaks func(*world)
		want   []string
		leg    string
		says   []string
	}{
		"no node for the pod": {
			func(w *world) {
				w.scheduled = onWindows(func(p *corev1.Pod) {
					p.Spec.NodeName = ""
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
						Reason: "Unschedulable", Message: "0/3 nodes are available: 1 Insufficient memory."}}
				})
			}, append([]string{"scheduled failed"}, afterScheduled...), smoke.Scheduled,
			[]string{"not scheduled after 1m0s: Unschedulable: 0/3 nodes are available: 1 Insufficient memory."},
		},
		"no scheduler": {
			func(w *world) { w.scheduled = onWindows(func(p *corev1.Pod) { p.Spec.NodeName = "" }) },
			append([]string{"scheduled failed"}, afterScheduled...), smoke.Scheduled, []string{"does kube-scheduler run?"},
		},
		"no image for the build": {
			func(w *world) {
				w.started = waiting("ErrImagePull", "no match for platform in manifest: not found\nsecond line")
			}, afterStarted, smoke.Started,
			[]string{"ErrImagePull: no match for platform in manifest: not found (Fail", "Windows build 10.0.20348.2849"},
		},
		"no pod network on the node": {
			func(w *world) { w.started = waiting("ContainerCreating", "") }, afterStarted, smoke.Started,
			[]string{"not started after 10m0s: ContainerCreating (FailedCreatePodSandBox: plugin type=\"calico\" failed)",
				"`swdt network status`"},
		},
		"a container that ends": {
			func(w *world) {
				w.started = onWindows(func(p *corev1.Pod) {
					p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 2, Reason: "Error", Message: "unknown command netexec"}}
				})
			}, afterStarted, smoke.Started, []string{"exit code 2 (Error): unknown command netexec"},
		},
		"a kubelet whose port is closed": {
			func(w *world) {
				w.exec = func(pod string) (*cluster.ExecResult, error) {
					if pod != "windows-1" {
						return nil, nil
					}
					return nil, errors.New("dial tcp 192.168.122.220:10250: i/o timeout")
				}
			}, afterExec, smoke.LogsAndExec, []string{"exec: dial tcp 192.168.122.220:10250: i/o timeout", "port 10250"},
		},
		"a node without an address": {
			func(w *world) {
				nodes := w.client.CoreV1().Nodes()
				n, _ := nodes.Get(context.Background(), "win-1", metav1.GetOptions{})
				n.Status.Addresses = nil
				_, _ = nodes.Update(context.Background(), n, metav1.UpdateOptions{})
				w.exec = func(pod string) (*cluster.ExecResult, error) {
					if pod != "windows-1" {
						return nil, nil
					}
					return nil, errors.New("no preferred addresses found; known addresses: []")
				}
			}, afterExec, smoke.LogsAndExec, []string{"the node has no InternalIP", "`swdt join` sets one"},
		},
		"an image without curl": {
			func(w *world) {
				w.exec = func(pod string) (*cluster.ExecResult, error) {
					if pod != "windows-1" {
						return nil, nil
					}
					return &cluster.ExecResult{Code: 1, Stderr: "no such file"}, nil
				}
			}, afterExec, smoke.LogsAndExec, []string{"the image must have curl.exe"},
		},
		"no DNS": {
			blocks("windows-1", "http://server:80/", 6), []string{"resolves failed"}, smoke.Resolves,
			[]string{"http://server:80/echo: the name is not resolved (curl: (6) Could not resolve host)", "CoreDNS"},
		},
		"no route to Linux": {
			blocks("windows-1", "http://"+linuxIP, 28), []string{"reaches-linux failed"}, smoke.ReachesLinux,
			[]string{"no answer in time", "UDP 4789"},
		},
		"no kube-proxy": {
			func(w *world) {
				w.network = func(pod, to string) (int, bool) {
					return 7, pod == "windows-1" && (strings.Contains(to, serviceIP) || strings.Contains(to, "//server:"))
				}
			}, []string{"reaches-service failed"}, smoke.ReachesService, // the name is resolved all the same
			[]string{"no connection", "kube-proxy", "`swdt hns loadbalancers`"},
		},
		"a firewall on the node": {
			blocks("server", "http://10.244.1.1:", 28), []string{"reached-from-linux failed"}, smoke.ReachedFromLinux,
			[]string{"firewall"},
		},
		"no way to the API server": {
			blocks("windows-1", "https://", 35), []string{"reaches-api failed"}, smoke.ReachesAPI,
			[]string{"https://10.96.0.1:443/version: curl ended with exit code 35"},
		},
		"a proxy in the place of the API server": {
			func(w *world) { w.proxied = "windows-1" }, []string{"reaches-api failed"}, smoke.ReachesAPI,
			[]string{"the answer (HTTP 404) is not of an API server: blocked by policy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.client.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
					return true, &corev1.EventList{Items: []corev1.Event{{Type: corev1.EventTypeWarning,
						InvolvedObject: corev1.ObjectReference{Name: "windows-1"}, Reason: "FailedCreatePodSandBox",
						Message: "plugin type=\"calico\" failed\nlong trace"}}}, nil
				})
				c.breaks(w)
				report, err := w.run(t.Context(), smoke.Options{})
				var failed *smoke.FailedError
				if !errors.As(err, &failed) {
					t.Fatalf("the error is %v, a %T, want a %T", err, err, failed)
				}
				if diff := cmp.Diff(c.want, unpassed(report.Nodes[0])); diff != "" {
					t.Errorf("win-1 (-want +got):\n%s", diff)
				}
				if others := unpassed(report.Nodes[1]); len(others) > 0 {
					t.Errorf("win-2 did not pass %v", others)
				}
				for _, want := range c.says {
					if said := message(report.Nodes[0], c.leg); !strings.Contains(said, want) {
						t.Errorf("%s: %q lacks %q", c.leg, said, want)
					}
				}
				if !strings.HasPrefix(report.Nodes[0].Error, c.leg+": ") {
					t.Errorf("the node's error is %q, want one of leg %s", report.Nodes[0].Error, c.leg)
				}
				w.nothingIsLeft(t, report)
			})
		})
	}
}

// An image that does not exist is not waited for as long as a slow pull may take.
func TestAFailingPullEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begin := newWorld(t), time.Now()
		w.started = func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		}
		report, err := w.run(t.Context(), smoke.Options{Wait: time.Hour})
		if took := time.Since(begin); err == nil || took > 3*time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
		if said := message(report.Nodes[0], smoke.ReachesLinux); said != "needs started" {
			t.Errorf("reaches-linux: %q", said)
		}
		if report.Server.Result != smoke.Failed || !strings.Contains(report.Server.Message, "--linux-image") {
			t.Errorf("server %+v", report.Server)
		}
	})
}

func TestNodesThatCannotBeTested(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, c := range map[string]struct {
		nodes   []*corev1.Node
		options smoke.Options
		says    []string // in the error
		want    []string // unpassed legs of the first node
		reason  string   // why they did not pass
	}{
		"no Windows node": {
			nodes: []*corev1.Node{node("lin", "linux")}, says: []string{"no Windows node; `swdt join` adds one"},
		},
		"no Windows node is Ready": {
			nodes: []*corev1.Node{node("lin", "linux"), node("win-1", "windows", notReady)},
			says: []string{"no Windows node is Ready: win-1 is NotReady (KubeletNotReady): cni plugin not initialized",
				"`swdt network status`"},
		},
		"a wrong name": {
			nodes:   []*corev1.Node{node("lin", "linux"), node("win-1", "windows")},
			options: smoke.Options{Nodes: []string{"lin"}},
			says:    []string{"no Windows node lin: its nodes are lin (linux), win-1 (windows)"},
		},
		"labels of no node": {
			nodes:   []*corev1.Node{node("win-1", "windows")},
			options: smoke.Options{Selector: labels.SelectorFromSet(labels.Set{"pool": "a"})},
			says:    []string{"has the labels pool=a"},
		},
		"one is NotReady": {
			nodes:  []*corev1.Node{node("lin", "linux"), node("win-1", "windows", notReady), node("win-2", "windows")},
			says:   []string{"1 of 16 legs failed, 7 were not run: win-1: scheduled;"},
			want:   []string{"scheduled failed"},
			reason: "the node is NotReady (KubeletNotReady): cni plugin not initialized",
		},
		"one is cordoned": {
			nodes: []*corev1.Node{node("lin", "linux"), node("win-1", "windows", cordoned), node("win-2", "windows")},
			says:  []string{"1 of 16 legs failed"}, want: []string{"scheduled failed"}, reason: "`kubectl uncordon win-1`",
		},
		"no Linux node": {
			nodes:  []*corev1.Node{node("win-1", "windows")},
			says:   []string{"3 of 8 legs were not run: win-1: reaches-linux"},
			want:   []string{"reaches-linux notRun", "reaches-service notRun", "reached-from-linux notRun"},
			reason: "the cluster has no Linux node",
		},
		"a Linux node that has just become Ready": {
			nodes: []*corev1.Node{node("lin", "linux", tainted("node.kubernetes.io/not-ready")),
				node("win-1", "windows", notReady), node("win-2", "windows")},
			says: []string{"1 of 16 legs failed"}, want: []string{"scheduled failed"}, reason: "NotReady",
		},
		"a tainted Linux node": {
			nodes:  []*corev1.Node{node("lin", "linux", tainted("gpu")), node("win-1", "windows")},
			says:   []string{"3 of 8 legs were not run: win-1: reaches-linux"},
			want:   []string{"reaches-linux notRun", "reaches-service notRun", "reached-from-linux notRun"},
			reason: "no Linux node can run the server: lin has the taint gpu:NoSchedule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.nodes...)
				report, err := w.run(t.Context(), c.options)
				for _, want := range c.says {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want %q", err, want)
					}
				}
				if c.want == nil {
					if len(w.created) > 0 {
						t.Errorf("made %v for nothing", w.created)
					}
					return
				}
				got := unpassed(report.Nodes[0])
				if diff := cmp.Diff(c.want, got[:min(len(got), len(c.want))]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				leg := strings.Fields(c.want[0])[0]
				if said := message(report.Nodes[0], leg); !strings.Contains(said, c.reason) {
					t.Errorf("%s: %q lacks %q", leg, said, c.reason)
				}
				w.nothingIsLeft(t, report)
			})
		})
	}
}

// The texts of a hostile pod or node neither control the terminal nor flood the result.
func TestHostileTextsAreBoundedAndPrintable(t *testing.T) {
	flood := "\x1b]0;owned\x07\u202e" + strings.Repeat("A", 1<<20)
	for name, breaks := range map[string]func(*world){
		"exec": func(w *world) {
			w.exec = func(string) (*cluster.ExecResult, error) { return nil, errors.New(flood) }
		},
		"curl": func(w *world) {
			w.exec = func(string) (*cluster.ExecResult, error) {
				return &cluster.ExecResult{Code: 1, Stdout: flood, Stderr: flood}, nil
			}
		},
		"another server": func(w *world) {
			w.exec = func(string) (*cluster.ExecResult, error) {
				return &cluster.ExecResult{Stdout: flood + "\n200 0.1"}, nil
			}
		},
		"image": func(w *world) {
			w.started = func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName", Message: flood}}
			}
		},
		"exit": func(w *world) {
			w.started = func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Message: flood, Reason: flood}}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				breaks(w)
				report, err := w.run(t.Context(), smoke.Options{})
				if err == nil {
					t.Fatal("nothing failed")
				}
				for _, n := range report.Nodes {
					for _, l := range n.Legs {
						if len(l.Message) > 3000 || strings.ContainsAny(l.Message, "\x1b\x07\u202e") {
							t.Errorf("%s has %d bytes: %.80q", l.Name, len(l.Message), l.Message)
						}
					}
				}
			})
		})
	}
}

// The pods have neither rights nor a token.
func TestPodsAreUnprivileged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		report, err := w.run(t.Context(), smoke.Options{Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := w.client.CoreV1().Pods(report.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 3 {
			t.Fatalf("%d pods: %v", len(pods.Items), err)
		}
		for _, p := range pods.Items {
			token, nonRoot := p.Spec.AutomountServiceAccountToken, p.Spec.SecurityContext.RunAsNonRoot
			if token == nil || *token || nonRoot == nil || !*nonRoot || p.Spec.HostNetwork || len(p.Spec.Volumes) > 0 {
				t.Errorf("pod %s: %+v", p.Name, p.Spec)
			}
		}
	})
}
