// Specs stands for Kubernetes' e2e.test: it is a real suite of Ginkgo, which accepts the flags of
// e2e.test that swdt passes, and has one spec for each way in which a spec can end. A spec that needs
// the cluster makes a namespace with the labels of e2e.test.
//
// The spec of pods runs a pod on the node SPECS_NODE, and waits until it is Running for SPECS_PATIENCE,
// such as 5s.
//
// The environment also changes the suite: SPECS_STATE is a folder in which the flaky spec counts its runs,
// SPECS_SETUP=fail lets the preparation of the suite fail, SPECS_VERSION is the version that --version
// prints.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// result is Ginkgo's view of a test of Go.
type result struct{ failed bool }

func (r *result) Fail() { r.failed = true }

var (
	kubeconfig = flag.String("kubeconfig", "", "path of the kubeconfig")
	version    = flag.Bool("version", false, "print the version")
	runID      = newID()
)

func main() {
	ignored := []string{"context", "provider", "node-os-distro", "non-blocking-taints", "report-dir", "e2e-output-dir",
		"repo-root", "kube-test-repo-list", "allowed-not-ready-nodes", "minStartupPods", "system-pods-startup-timeout",
		"node-schedulable-timeout", "system-daemonsets-startup-timeout", "num-nodes"}
	for _, name := range ignored {
		flag.String(name, "", "a flag of e2e.test, without effect")
	}
	for _, name := range []string{"prepull-images", "dump-logs-on-failure", "disable-log-dump", "delete-namespace",
		"delete-namespace-on-failure"} {
		flag.Bool(name, false, "a flag of e2e.test, without effect")
	}
	flag.Parse()
	if *version {
		text := os.Getenv("SPECS_VERSION")
		if text == "" {
			text = "v1.36.3"
		}
		fmt.Println(text)
		return
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unknown additional command line arguments: %s", flag.Args())
		os.Exit(1)
	}
	suite, reporter := ginkgo.GinkgoConfiguration()
	if len(suite.FocusStrings)+len(suite.SkipStrings) == 0 && suite.LabelFilter == "" {
		suite.SkipStrings = []string{`\[Flaky\]|\[Feature:.+\]`}
	}
	suite.RandomizeAllSpecs = true
	fmt.Fprintf(os.Stderr, "I1123 10:00:00.000000 1 e2e.go:109] Starting e2e run %q on Ginkgo node 1\n", runID)
	r := &result{}
	ginkgo.RunSpecs(r, "Kubernetes e2e suite", suite, reporter)
	if r.failed {
		os.Exit(1)
	}
}

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var _ = ginkgo.BeforeSuite(func() {
	if os.Getenv("SPECS_SETUP") == "fail" {
		ginkgo.Fail("no node is schedulable")
	}
})

var _ = ginkgo.Describe("[sig-windows] Outcomes", ginkgo.Label("sig-windows"), func() {
	ginkgo.It("should pass [Conformance]", ginkgo.Label("Conformance"), func() {
		ginkgo.GinkgoWriter.Println("all is well")
		time.Sleep(20 * time.Millisecond)
	})
	ginkgo.It("should fail", func() {
		ginkgo.GinkgoWriter.Println("STEP: creating a pod")
		ginkgo.Fail("pod pod-1 is not Running after 5m0s: FailedCreatePodSandBox")
	})
	ginkgo.It("should skip itself", func() { ginkgo.Skip("Only supported for providers [gce] (not skeleton)") })
	ginkgo.It("should panic", func() {
		panic("assignment to entry in nil map")
	})
	ginkgo.It("should sometimes fail [Flaky]", ginkgo.Label("Flaky"), func() {
		if runs()%2 == 1 {
			ginkgo.Fail("timed out waiting for the condition")
		}
	})
	ginkgo.It("should be printed harmlessly [Hostile]", func() {
		ginkgo.GinkgoWriter.Println("\x1b]0;evil\a\x1b[2J</script><script>alert(1)</script>\u202e")
		ginkgo.GinkgoWriter.Println("------------------------------\n[sig-windows] Outcomes should fail\n• [0.001 seconds]")
		ginkgo.GinkgoWriter.Printf("I1123 10:00:00.000000 1 e2e.go:109] Starting e2e run %q on Ginkgo node 1\n", newID())
		ginkgo.Fail("\x1b[31m</script><img src=x onerror=alert(1)>]]>&\x00")
	})
	ginkgo.It("should never end [Slow]", ginkgo.Label("Slow"), func(ctx context.Context) {
		name, err := makeNamespace(ctx, "endless")
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		ginkgo.DeferCleanup(func(ctx context.Context) error { return deleteNamespace(ctx, name) })
		<-ctx.Done()
	})
	ginkgo.It("should wait forever [Endless]", func(ctx context.Context) { <-ctx.Done() })
	ginkgo.It("should leave its namespace [Stubborn]", func(ctx context.Context) {
		if _, err := makeNamespace(ctx, "stubborn"); err != nil {
			ginkgo.Fail(err.Error())
		}
	})
	ginkgo.It("should end the program [Crash]", func() { os.Exit(3) })
})

var _ = ginkgo.Describe("[sig-network] DNS", ginkgo.Label("sig-network"), func() {
	ginkgo.It("should provide DNS for the cluster [Conformance]", ginkgo.Label("Conformance"), func() {})
	ginkgo.It("should provide DNS on Linux [LinuxOnly]", ginkgo.Label("LinuxOnly"), func() {})
})

var _ = ginkgo.Describe("[sig-storage] Volumes", ginkgo.Label("sig-storage"), func() {
	ginkgo.It("should be read", func() {})
})

var _ = ginkgo.Describe("[sig-node] Pods", ginkgo.Label("sig-node"), func() {
	ginkgo.It("should run on a node [Pods]", func(ctx context.Context) {
		node, patience := os.Getenv("SPECS_NODE"), 10*time.Second
		if text := os.Getenv("SPECS_PATIENCE"); text != "" {
			var err error
			if patience, err = time.ParseDuration(text); err != nil {
				ginkgo.Fail(err.Error())
			}
		}
		namespace, err := makeNamespace(ctx, "pods")
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		ginkgo.DeferCleanup(func(ctx context.Context) error { // e2e.test deletes it at once, too
			return errors.Join(deletePod(ctx, namespace, "app"), deleteNamespace(ctx, namespace))
		})
		if err := makePod(ctx, namespace, "app", node); err != nil {
			ginkgo.Fail(err.Error())
		}
		phase, err := awaitRunning(ctx, namespace, "app", patience)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		if phase != "Running" {
			ginkgo.Fail(fmt.Sprintf("pod app is not Running after %s: it is %s", patience, phase))
		}
	})
})

// runs counts the runs of the flaky spec.
func runs() int {
	folder := os.Getenv("SPECS_STATE")
	if folder == "" {
		ginkgo.Fail("SPECS_STATE is not set")
	}
	for n := 1; n < 1000; n++ {
		file, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("run-%d", n)), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		file.Close()
		return n
	}
	ginkgo.Fail("too many runs")
	return 0
}

// namespaceName returns a name as e2e.test makes it.
func namespaceName(base string) string { return base + "-" + strings.Split(newID(), "-")[0] }
