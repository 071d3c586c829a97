package windows

import (
	"errors"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Many goroutines read services at the same time, each briefly, as a preflight
// does.
func TestServicesInParallel(t *testing.T) {
	p := New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if _, err := p.Services.List(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if _, err := p.Services.Status(t.Context(), "no such service"); !errors.Is(err, fault.ErrNoService) {
					t.Errorf("the error is %v, want %v", err, fault.ErrNoService)
					return
				}
			}
		})
	}
	all.Wait()
}
