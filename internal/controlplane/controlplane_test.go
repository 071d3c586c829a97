package controlplane

import (
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	bin, err := DefaultBinaries()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c, err := Start(t.Context(), Options{Binaries: bin, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(began), c.Server(), c.Kubeconfig())
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
