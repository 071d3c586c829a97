package join_test

import (
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
)

func TestResetRestoresWhatSetupHasRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		const key = `HKLM\SYSTEM\CurrentControlSet\Services\hns\State`
		on := uint32(1)
		spec := v1alpha1.Setup{Registry: []v1alpha1.RegistryValue{{Key: key, Name: "EnableCompartmentNamespace", DWord: &on}}}
		before := l.state()
		if _, err := plan.Run(t.Context(), setup.Steps(l.Node.Node, spec, setup.Options{}),
			plan.Options{Machine: l.Node.Node}, ui.Discard{}); err != nil {
			t.Fatal(err)
		}
		l.mustJoin()
		if is, err := l.Machine.Process("look").Registry.Get(key, "EnableCompartmentNamespace"); err != nil || is.Integer != 1 {
			t.Fatalf("after the join: %+v, %v", is, err)
		}
		for _, dryRun := range []bool{true, false} {
			result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, join.ResetOptions{DryRun: dryRun}, l.story)
			if err != nil {
				t.Fatalf("reset: %v\n%s", err, table(result.Steps))
			}
			if last := result.Steps[len(result.Steps)-1]; last.Name != "registry" || last.Change != "restore EnableCompartmentNamespace" {
				t.Errorf("the last step is %+v", last)
			}
		}
		if is, err := l.Machine.Process("look").Registry.Get(key, "EnableCompartmentNamespace"); err == nil {
			t.Errorf("after the reset: %+v", is)
		}
		l.isAsBefore(before)
	})
}
