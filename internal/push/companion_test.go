package push

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
)

const configPath = `C:\Program Files\containerd\config.toml`

// withConfig returns the options of a push that gives containerd a new configuration. asked
// receives the staged binaries that the push passes to Companions.
func withConfig(b *bench, asked *map[string]string) Options {
	b.node.Put(configPath, []byte("version = 2\n"))
	return Options{Companions: func(_ context.Context, staged map[string]string) ([]Companion, error) {
		*asked = staged
		return []Companion{{Destination: configPath, Before: []byte("version = 2\n"), After: []byte("version = 3\n")}},
			nil
	}}
}

func TestACompanionIsPartOfTheTransaction(t *testing.T) {
	b := twoPrograms(t)
	var asked map[string]string
	result, err := b.push(t.Context(), withConfig(b, &asked))
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case len(result.Components) != 2:
		t.Fatalf("result.Components has %d elements, want 2: %v", len(result.Components), result.Components)
	}
	if len(b.swap.plans) != 1 {
		t.Fatalf("%d transactions", len(b.swap.plans))
	}
	parts := b.swap.plans[0].GetComponents()
	switch {
	case len(parts) != 3:
		t.Errorf("parts has %d elements, want 3: %v", len(parts), parts)
	case parts[2].GetService() != "":
		t.Errorf(`parts[2].GetService() is %q, want ""`, parts[2].GetService())
	case parts[2].GetPreviousSha256() != sum([]byte("version = 2\n")):
		t.Errorf("parts[2].GetPreviousSha256() is %v, want %v", parts[2].GetPreviousSha256(),
			sum([]byte("version = 2\n")))
	}
	if got := string(b.node.Get(configPath)); got != "version = 3\n" {
		t.Errorf("the configuration is %q", got)
	}
	switch {
	case len(asked) != 2:
		t.Errorf("asked has %d elements, want 2: %v", len(asked), asked)
	case asked["containerd"] != parts[0].GetStaged():
		t.Errorf(`asked["containerd"] is %v, want %v`, asked["containerd"], parts[0].GetStaged())
	case asked["kubelet"] != parts[1].GetStaged():
		t.Errorf(`asked["kubelet"] is %v, want %v`, asked["kubelet"], parts[1].GetStaged())
	}
}

// A push does not ask for companions in a dry run or if it changes nothing, nor for a binary that
// replaces none.
func TestWhenNoCompanionIsAskedFor(t *testing.T) {
	b := twoPrograms(t)
	var asked map[string]string
	options := withConfig(b, &asked)
	options.DryRun = true
	if _, err := b.push(t.Context(), options); err != nil || asked != nil {
		t.Fatalf("a dry run asked with %v: %v", asked, err)
	}
	options.DryRun = false
	if err := b.node.Files.Remove(kubeletPath); err != nil {
		t.Fatal(err)
	}
	switch _, err := b.push(t.Context(), options); {
	case err != nil:
		t.Fatal(err)
	case len(asked) != 1:
		t.Fatalf("asked has %d elements, want 1: %v", len(asked), asked)
	case asked["containerd"] == "":
		t.Fatal(`asked["containerd"] is empty`)
	}
	asked = nil
	if _, err := b.push(t.Context(), options); err != nil || asked != nil {
		t.Fatalf("a push of nothing asked with %v: %v", asked, err)
	}
}

// A transaction that does not begin leaves neither the binaries nor the companions
// beside their destinations.
func TestACompanionOfATransactionThatDoesNotBegin(t *testing.T) {
	wrong := errors.New("no configuration for this")
	for name, change := range map[string]func(b *bench, o *Options){
		"the node refuses it":   func(b *bench, _ *Options) { b.swap.refuse = errors.New("refused") },
		"it is given up":        func(_ *bench, o *Options) { o.Commit = func() bool { return false } },
		"there is no companion": func(_ *bench, o *Options) { o.Companions = failing(wrong) },
	} {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			var asked map[string]string
			options := withConfig(b, &asked)
			change(b, &options)
			if _, err := b.push(t.Context(), options); err == nil {
				t.Fatal("no error")
			}
			if got := string(b.node.Get(configPath)); got != "version = 2\n" {
				t.Errorf("the configuration is %q", got)
			}
			if left := append(b.leftovers(), leftoversOf(b.node, configPath)...); len(left) > 0 {
				t.Errorf("left: %s", strings.Join(left, ", "))
			}
			b.unlocked()
		})
	}
}

func failing(err error) func(context.Context, map[string]string) ([]Companion, error) {
	return func(context.Context, map[string]string) ([]Companion, error) { return nil, err }
}

// The push does not mistake the outcome of a companion for that of a component.
func TestACompanionThatCannotTakeItsPlace(t *testing.T) {
	b := twoPrograms(t)
	var asked map[string]string
	options := withConfig(b, &asked)
	b.swap.outcome = &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK,
		FailedComponent: "config.toml", Message: "it is in use",
		Components: []*agentv1.ComponentOutcome{
			{Name: "containerd", Action: agentv1.SwapAction_SWAP_ACTION_ROLLED_BACK},
			{Name: "kubelet", Action: agentv1.SwapAction_SWAP_ACTION_ROLLED_BACK},
			{Name: "config.toml", Action: agentv1.SwapAction_SWAP_ACTION_FAILED},
		}}
	result, err := b.push(t.Context(), options)
	var back *RolledBackError
	switch {
	case !errors.As(err, &back):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, back)
	case !strings.Contains(err.Error(), "config.toml: it is in use"):
		t.Fatalf("err.Error() lacks %q:\n%s", "config.toml: it is in use", err.Error())
	}
	switch {
	case result.Result != RolledBack:
		t.Errorf("result.Result is %v, want %v", result.Result, RolledBack)
	case result.Components[0].Action != ActionRolledBack:
		t.Errorf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionRolledBack)
	case result.Components[1].Action != ActionRolledBack:
		t.Errorf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionRolledBack)
	}
}

// A node that does not become Ready gets the files of the transaction back along with its binaries and command lines,
// also if the transaction only restarted a service.
func TestCompanionsAreTakenBack(t *testing.T) {
	for name, change := range map[string]func(b *bench, o *Options){
		"with new binaries": func(*bench, *Options) {},
		"with arguments": func(b *bench, _ *Options) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].Args = []string{"--windows-service", "--v=7"}
		},
		"with a restart": func(b *bench, o *Options) {
			if _, err := b.push(t.Context(), Options{}); err != nil {
				t.Fatal(err)
			}
			o.Force = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			b.doc.Node.Spec.Kubernetes.Join.NodeName = "win-1"
			var asked map[string]string
			options := withConfig(b, &asked)
			change(b, &options)
			options.Cluster = &fakeCluster{bench: b, ready: &cluster.NodeWaitError{Name: "win-1", Missing: []string{"Ready"},
				Err: context.DeadlineExceeded}}
			kubelet, line := b.node.Get(kubeletPath), b.swap.commandLines["kubelet"]
			_, err := b.push(t.Context(), options)
			if back, ok := errors.AsType[*RolledBackError](err); !ok || !back.Complete() {
				t.Fatalf("the error is %v", err)
			}
			if got := string(b.node.Get(configPath)); got != "version = 2\n" {
				t.Errorf("the configuration is %q", got)
			}
			if !slices.Equal(kubelet, b.node.Get(kubeletPath)) {
				t.Error("the new kubelet stays")
			}
			forth, back := b.swap.plans[len(b.swap.plans)-2].GetComponents(), b.swap.plans[len(b.swap.plans)-1].GetComponents()
			if i := len(forth) - 2; forth[i].GetCommandLine() != "" && back[i].GetCommandLine() != line {
				t.Errorf("kubelet's command line is %q, want %q", back[i].GetCommandLine(), line)
			}
			b.unlocked()
		})
	}
}
