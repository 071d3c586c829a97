package push

import (
	"context"
	"errors"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
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
	if err != nil || result.Result != Changed || len(result.Components) != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(b.swap.plans) != 1 {
		t.Fatalf("%d transactions", len(b.swap.plans))
	}
	parts := b.swap.plans[0].GetComponents()
	if len(parts) != 3 || parts[2].GetService() != "" || parts[2].GetPreviousSha256() != sum([]byte("version = 2\n")) {
		t.Errorf("the plan is %v", parts)
	}
	if got := string(b.node.Get(configPath)); got != "version = 3\n" {
		t.Errorf("the configuration is %q", got)
	}
	if len(asked) != 2 || asked["containerd"] != parts[0].GetStaged() || asked["kubelet"] != parts[1].GetStaged() {
		t.Errorf("asked with %v", asked)
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
	if _, err := b.push(t.Context(), options); err != nil || len(asked) != 1 || asked["containerd"] == "" {
		t.Fatalf("asked with %v: %v", asked, err)
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
	if !errors.As(err, &back) || !strings.Contains(err.Error(), "config.toml: it is in use") {
		t.Fatalf("got %v", err)
	}
	if result.Result != RolledBack || result.Components[0].Action != ActionRolledBack ||
		result.Components[1].Action != ActionRolledBack {
		t.Errorf("%+v", result)
	}
}
