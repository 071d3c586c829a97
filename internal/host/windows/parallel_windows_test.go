package windows

import (
	"errors"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
)

// Many look at services at the same time, each for a moment, as a preflight does.
func TestServicesInParallel(t *testing.T) {
	h := New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if _, err := h.Services.List(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if _, err := h.Services.Status(t.Context(), "no such service"); !errors.Is(err, host.ErrNoService) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
