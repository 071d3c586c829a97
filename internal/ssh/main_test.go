package ssh_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No connection leaves anything running behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
