package programmed

import (
	"fmt"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// A finding names its first known defects, and all with -o wide.
func TestAWideFindingHasAllDefects(t *testing.T) {
	f := kubeproxy.Finding{}
	for i := range maxDefects + 3 {
		f.Defects = append(f.Defects, kubeproxy.Defect{Title: fmt.Sprint("defect ", i)})
	}
	for wide, want := range map[bool]int{false: maxDefects, true: maxDefects + 3} {
		if got := len(entry(f, wide).Notes); got != want {
			t.Errorf("wide %t: %d notes, want %d", wide, got, want)
		}
	}
}
