package node_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No connection leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
