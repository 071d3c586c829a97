package kubeproxy_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

func TestKindsHaveWords(t *testing.T) {
	for _, kind := range kubeproxy.Kinds() {
		if kind.Words() == "" {
			t.Errorf("kind %s has no words", kind)
		}
	}
	for _, p := range plantedDefects() {
		for _, want := range p.want {
			if want.kind.Words() == "" {
				t.Errorf("kind %s of %s is not listed", want.kind, p.name)
			}
		}
	}
}
