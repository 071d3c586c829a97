package cli

import "testing"

// The guard of the commands that need SSH holds for kubectl's plugin, too.
func TestNeedsSSHUnderEveryName(t *testing.T) {
	for _, program := range []string{"swdt", "kubectl-swdt"} {
		a := &app{env: Environment{Program: program, Getenv: func(string) string { return "" }}.complete()}
		a.root = a.rootCommand()
		for command, want := range map[string]bool{"reset": true, "status": false} {
			a.invoked, _, _ = a.root.Find([]string{command})
			if path, needs := a.invokedNeedsSSH(); path != command || needs != want {
				t.Errorf("%s %s: %q, %t", program, command, path, needs)
			}
		}
	}
}

// A command that makes a cluster does not lead the nodes through the kubeconfig that gets the new one.
func TestNewClusterIsNotTheOneOfVia(t *testing.T) {
	for _, program := range []string{"swdt", "kubectl-swdt"} {
		for command, want := range map[string]string{"up": "", "status": "/lab.conf"} {
			a := &app{env: Environment{Program: program, Getenv: func(string) string { return "" }}.complete()}
			a.root = a.rootCommand()
			a.invoked, _, _ = a.root.Find([]string{command})
			if err := a.invoked.ParseFlags([]string{"--kubeconfig", "/lab.conf"}); err != nil {
				t.Fatal(err)
			}
			if got := a.clusterOfVia().kubeconfig; got != want {
				t.Errorf("%s %s: %q, want %q", program, command, got, want)
			}
		}
	}
}

// --via decides on the kubeconfig and on the context by itself; what it leaves out is of --kubeconfig and --context.
func TestClusterOfViaPerField(t *testing.T) {
	lab, other := clusterOptions{kubeconfig: "/lab.conf", context: "lab"}, clusterOptions{kubeconfig: "/other.conf", context: "other"}
	for via, want := range map[string]clusterOptions{
		"kubernetes":                                     other,
		"kubernetes,context=lab":                         {kubeconfig: other.kubeconfig, context: lab.context},
		"kubernetes,kubeconfig=/lab.conf":                {kubeconfig: lab.kubeconfig, context: other.context},
		"kubernetes,kubeconfig=/lab.conf,context=lab":    lab,
		"kubernetes,namespace=default,shared,pull=30m0s": other,
	} {
		a := &app{env: Environment{Program: "swdt", Getenv: func(string) string { return "" }}.complete()}
		a.root = a.rootCommand()
		a.invoked, _, _ = a.root.Find([]string{"status"})
		err := a.invoked.ParseFlags([]string{"--via", via, "--kubeconfig", other.kubeconfig, "--context", other.context})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.clusterOfVia(); got != want {
			t.Errorf("%s: %+v, want %+v", via, got, want)
		}
	}
}
