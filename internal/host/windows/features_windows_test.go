package windows

import (
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
)

// Wine has a dism.exe that does nothing: that is a machine which cannot tell, and
// not one without the feature.
func TestFeaturesThatCannotBeTold(t *testing.T) {
	if simulated() != "wine" {
		t.Skip("Windows can tell")
	}
	if state, err := New().Features.State(t.Context(), "Containers"); !errors.Is(err, host.ErrNotSupported) {
		t.Errorf("got %q, %v", state, err)
	}
}
